"""The command that serves agents, tools and models."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Annotated

import typer

from opposable.app.models import open_model
from opposable.cli.options import err, read_settings
from opposable.cli.rendering import DownloadBar, style_text
from opposable.models.base import Model
from opposable.models.factory import MODEL_NAME_FORMS
from opposable.settings import Settings

ModelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        help=f"Which model: {MODEL_NAME_FORMS}; may be given again, the first is the one asked. Default: OPPOSABLE_MODEL, else local.",
        show_default=False,
    ),
]


def serve(
    model: ModelsOption = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that serve side by side.")] = 1,
    api_key_env: Annotated[
        str, typer.Option(metavar="NAME", help="The environment variable with the key that clients must bear.")
    ] = "OPPOSABLE_SERVE_KEY",
) -> None:
    """Serve agents with their tools, and models to any OpenAI client, until Ctrl-C.

    Example: opposable serve --model local
    """
    from opposable.web import server
    from opposable.web.multiprocess import run_workers

    settings = read_settings()
    asked = model or [settings.model]
    key = server.read_api_key(api_key_env)
    with asyncio.Runner(loop_factory=server.get_loop_factory()) as runner:
        name = runner.run(_check_startup(settings, asked, host, key))
        listening = server.open_listening_socket(host, port)
        tell = partial(_print_ready, name, server.get_base_url(host, listening))
        if workers == 1:
            runner.run(_serve_until_stopped(settings, asked, host, key, listening, tell))
    if workers > 1:
        run_workers(partial(_run_worker, asked, host, key), listening, workers, tell)
    err.print("Stopped.")


async def _check_startup(settings: Settings, model_names: Sequence[str], host: str, key: str) -> str:
    """Whether all can be served; the name of the first model. Raises: `OpposableError`."""
    from opposable.app.stored_tools import open_default_store
    from opposable.web import server
    from opposable.web.middleware.authentication import is_loopback

    if not key and not is_loopback(host):
        async with open_default_store(settings) as store:
            server.require_key_unless_loopback(host, key, has_stored_keys=bool(await store.keys.list()))
    async with _open_models(settings, model_names) as models:
        return next(iter(models))


async def _serve_until_stopped(
    settings: Settings,
    model_names: Sequence[str],
    host: str,
    key: str,
    listen_socket: socket.socket,
    on_ready: Callable[[], None],
) -> None:
    from opposable.service.service import open_service
    from opposable.web import server
    from opposable.web.telemetry.logs import log_to_stderr

    log_to_stderr(settings.log)
    async with _open_models(settings, model_names) as models, open_service(settings, models) as service:
        served = server.create_app(service, api_key=key)
        since = await server.serve(served, host, 0, lambda url: on_ready(), listening_socket=listen_socket)
        service.runner.grace_seconds = max(0.0, server.GRACE_SECONDS - since)


def _run_worker(
    model_names: Sequence[str], host: str, key: str, listen_socket: socket.socket, on_ready: Callable[[], None]
) -> None:
    """What each of several processes does."""
    from opposable.web import server

    with asyncio.Runner(loop_factory=server.get_loop_factory()) as runner:
        runner.run(_serve_until_stopped(read_settings(), model_names, host, key, listen_socket, on_ready))


def _print_ready(name: str, url: str) -> None:
    err.print(style_text(f"{name} is served at {url}"))


@asynccontextmanager
async def _open_models(settings: Settings, model_names: Sequence[str]) -> AsyncIterator[dict[str, Model]]:
    """The models by the names clients call them, closed at the end."""
    from opposable.web import server

    models: dict[str, Model] = {}
    async with AsyncExitStack() as stack:
        with DownloadBar(err) as bar:
            for one in model_names:
                opened = await open_model(settings, one, bar)
                stack.push_async_callback(opened.aclose)
                models |= dict.fromkeys(server.get_model_names(one, opened), opened)
        yield models
