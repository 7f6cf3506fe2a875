"""The command `serve`: agents, tools and models over HTTP."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import SecretStr

from opposable.app.default_store import open_existing_store, require_postgresql
from opposable.app.gateway_config import GatewayConfig, load_gateway_config, open_configured_models
from opposable.app.models import open_model
from opposable.cli.function_files import review_changed_files
from opposable.cli.options import AssistOption, DownloadOption, err, read_settings
from opposable.cli.rendering import DownloadBar, style_text
from opposable.domain.errors import BadInput
from opposable.models.base import Model
from opposable.settings import Settings

LogFormat = Literal["text", "json"]
ServedPartOption = Literal["gateway", "agents", "skills"]


@dataclass(frozen=True, slots=True)
class ServedSelection:
    """What a server serves: models by name or by configuration, and the part of the service."""

    model_names: tuple[str, ...]
    config: GatewayConfig | None
    only: ServedPartOption | None

    @property
    def has_console(self) -> bool:
        """Whether the console is served."""
        return self.only in (None, "agents")


ModelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        help="Model (repeatable) (default: OPPOSABLE_MODEL, local)",
        show_default=False,
    ),
]
ConfigOption = Annotated[Path | None, typer.Option(help="Models with aliases and fallbacks (YAML)", show_default=False)]


def serve(
    model: ModelsOption = None,
    host: Annotated[str, typer.Option(help="Address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on (0: any free port)")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Number of server processes")] = 1,
    api_key_env: Annotated[
        str, typer.Option(metavar="NAME", help="Environment variable with the API key of clients")
    ] = "OPPOSABLE_SERVE_KEY",
    config: ConfigOption = None,
    only: Annotated[
        ServedPartOption | None, typer.Option(help="Serve only this part of the service", show_default=False)
    ] = None,
    durable: Annotated[bool, typer.Option("--durable", help="Let `opposable worker` processes execute chats")] = False,
    assist: AssistOption = None,
    download: DownloadOption = False,
    log_format: Annotated[
        LogFormat | None, typer.Option(help="Format of the log (default: OPPOSABLE_LOG, text)", show_default=False)
    ] = None,
) -> None:
    """Serve agents, tools and models over HTTP.

    OpenAI clients can use the models. The first --model is the default model. Ctrl-C stops the server.

    Example: opposable serve --model local
    """
    from uvicorn.loops.auto import auto_loop_factory  # lazy: needs the extra "serve"

    from opposable.web import http_server, server  # lazy: needs the extra "serve"
    from opposable.web.multiprocess import run_workers  # lazy: needs the extra "serve"
    from opposable.web.telemetry.logs import log_to_stderr  # lazy: needs the extra "serve"

    review_changed_files()
    settings = read_service_settings(log_format, assist)
    log_to_stderr(settings.log)
    if durable:
        require_postgresql(settings)
    model_names = () if only == "skills" else tuple(model or [settings.model])
    served = ServedSelection(model_names, load_config(model, config), only)
    api_key = server.read_api_key(api_key_env)
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        name = runner.run(_check_startup(settings, served, host, api_key, allow_download=download))
        listen_socket = http_server.open_listening_socket(host, port)
        on_ready = partial(_report_ready, settings, served, name, http_server.get_base_url(host, listen_socket))
        if workers == 1:
            runner.run(_serve_until_stopped(settings, served, host, api_key, durable, listen_socket, on_ready))
    if workers > 1:
        run_worker = partial(_run_worker, served, host, api_key, durable, log_format, assist)
        run_workers(run_worker, listen_socket, workers, on_ready)
    _report(settings, "Stopped.")


def load_config(model_names: Sequence[str] | None, path: Path | None) -> GatewayConfig | None:
    """Return the configuration of the option --config, None without one. Raises: `BadInput`, also with --model."""
    if model_names and path:
        raise BadInput("--model and --config exclude each other. Name the models in the file.")
    return load_gateway_config(path) if path else None


def read_service_settings(log_format: LogFormat | None = None, assist: AssistOption = None) -> Settings:
    """Read the settings, with the variables that hosting platforms set for a service.

    Only the environment counts for these, not `.env`: there they belong to another program.
    """
    settings = read_settings(assist=assist)
    urls = {"database_url": os.environ.get("DATABASE_URL", ""), "redis_url": os.environ.get("REDIS_URL", "")}
    missing = {
        name: SecretStr(url) for name, url in urls.items() if url and not getattr(settings, name).get_secret_value()
    }
    return settings.model_copy(update=missing | ({"log": log_format} if log_format else {}))


async def _check_startup(
    settings: Settings, served: ServedSelection, host: str, key: str, *, allow_download: bool
) -> str:
    """Check that everything can be served, and return the name of the first model. A skill host has no models.

    Raises:
        OpposableError: A model cannot be opened, or the server would be open to other machines without a key.
    """
    from opposable.web import server  # lazy: needs the extra "serve"
    from opposable.web.middleware.authentication import is_loopback  # lazy: needs the extra "serve"

    if not key and not is_loopback(host):
        async with open_existing_store(settings) as store:
            has_stored_keys = store is not None and bool(await store.keys.list())
            server.require_key_unless_loopback(host, key, has_stored_keys=has_stored_keys)
    await _report_unknown_keys(settings, served)
    async with open_models(settings, served.model_names, served.config, allow_download=allow_download) as models:
        return next(iter(models), "The skill host")


async def _report_unknown_keys(settings: Settings, served: ServedSelection) -> None:
    """Warn of key names in the configuration that no API key has: a misspelt name would limit no key."""
    listed = set(served.config.keys) if served.config is not None else set()
    if not listed:
        return
    async with open_existing_store(settings) as store:
        keys = await store.keys.list() if store is not None else ()
    for name in sorted(listed - {key.name for key in keys if key.revoked_at is None}):
        message = (
            f"Warning: no API key is named {name!r}, whose models the configuration limits. Other keys may use all."
        )
        _report(settings, message, key=name)


async def _serve_until_stopped(
    settings: Settings,
    served: ServedSelection,
    host: str,
    key: str,
    durable: bool,
    listen_socket: socket.socket,
    on_ready: Callable[[], None],
) -> None:
    from opposable.service.service import open_service  # lazy: needs the extra "serve"
    from opposable.web import http_server, server  # lazy: needs the extra "serve"
    from opposable.web.telemetry.logs import log_to_stderr  # lazy: needs the extra "serve"

    log_to_stderr(settings.log)
    async with (
        open_models(settings, served.model_names, served.config) as models,
        open_service(settings, models, is_durable=durable) as service,
    ):
        allowed_models = served.config.keys if served.config else None
        application = server.create_app(service, api_key=key, only=served.only, allowed_models=allowed_models)
        seconds_stopping = await http_server.serve(
            application, host, 0, lambda url: on_ready(), listening_socket=listen_socket
        )
        service.runner.grace_seconds = max(0.0, http_server.GRACE_SECONDS - seconds_stopping)


def _run_worker(
    served: ServedSelection,
    host: str,
    key: str,
    durable: bool,
    log_format: LogFormat | None,
    assist: AssistOption,
    listen_socket: socket.socket,
    on_ready: Callable[[], None],
) -> None:
    """Serve in one of several processes."""
    from uvicorn.loops.auto import auto_loop_factory  # lazy: needs the extra "serve"

    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        settings = read_service_settings(log_format, assist)
        runner.run(_serve_until_stopped(settings, served, host, key, durable, listen_socket, on_ready))


def _report_ready(settings: Settings, served: ServedSelection, name: str, url: str) -> None:
    url = url if served.model_names or served.config else url.removesuffix("/v1")
    _report(settings, f"{name} is served at {url}", url=url)
    if not served.has_console:
        return
    console_url = f"{url.removesuffix('/v1')}/"
    _report(settings, f"The console is at {console_url}", url=console_url)


def _report(settings: Settings, message: str, **fields: str) -> None:
    """Print a message, or log it where every line must be JSON."""
    if settings.log == "json":
        logging.getLogger("opposable.serve").info(message, extra=fields)
    else:
        err.print(style_text(message))


@asynccontextmanager
async def open_models(
    settings: Settings,
    model_names: Sequence[str],
    config: GatewayConfig | None = None,
    *,
    allow_download: bool = False,
) -> AsyncIterator[dict[str, Model]]:
    """Open the models under the names that clients use, those of a configuration if given; closed at the end."""
    from opposable.web import server  # lazy: needs the extra "serve"

    models: dict[str, Model] = {}
    async with AsyncExitStack() as stack:
        with DownloadBar(err, allow_download=allow_download) as bar:
            if config is not None:
                models |= await stack.enter_async_context(open_configured_models(settings, config, bar))
            for model_name in () if config is not None else model_names:
                opened_model = await open_model(settings, model_name, bar)
                stack.push_async_callback(opened_model.aclose)
                models |= dict.fromkeys(server.get_model_names(model_name, opened_model), opened_model)
        yield models
