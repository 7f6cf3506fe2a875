"""The store of the command line and the service: its URL in the settings, opened and closed."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_data_path

from opposable.domain.errors import BadInput, StoreMissing
from opposable.settings import Settings
from opposable.store.creation import StoreCreation
from opposable.store.factory import open_store

if TYPE_CHECKING:
    from opposable.store.store import Store


def state_directory(settings: Settings) -> Path:
    """Return the folder for state: `home` if set, else the user's data folder."""
    return settings.home or user_state_directory()


def user_state_directory() -> Path:
    """Return the user's data folder of the program."""
    return user_data_path("opposable", appauthor=False)


def database_url(settings: Settings) -> str:
    """Return the URL of the store (default: a SQLite file in the state folder)."""
    configured_url = settings.database_url.get_secret_value().strip()
    return configured_url or f"sqlite:///{(state_directory(settings) / 'opposable.sqlite').absolute()}"


def require_postgresql(settings: Settings) -> str:
    """Return the URL of the store, which durable runs and batches need to be PostgreSQL.

    Raises:
        BadInput: The store is a SQLite file.
    """
    url = database_url(settings)
    if not url.lower().startswith("postgres"):
        raise BadInput(
            "Durable runs and batches need PostgreSQL, and the store is a SQLite file. "
            "Set OPPOSABLE_DATABASE_URL to postgresql://USER:PASSWORD@HOST/DATABASE."
        )
    return url


@asynccontextmanager
async def open_default_store(
    settings: Settings, *, create: StoreCreation = "if_empty", uses_valkey: bool = False
) -> AsyncIterator["Store"]:
    """Open the store and close it at the end. See `open_store` for when a missing one is created.

    Only with `uses_valkey`, conversations and rate limits are those of `redis_url`. What needs neither works without
    that server.

    Raises:
        BadInput: The URL is invalid.
        StoreError: The store cannot be opened.
    """
    valkey_url = (settings.redis_url.get_secret_value().strip() or None) if uses_valkey else None
    async with open_store(database_url(settings), valkey_url=valkey_url, create=create) as store:
        yield store


@asynccontextmanager
async def open_existing_store(settings: Settings, *, uses_valkey: bool = False) -> AsyncIterator["Store | None"]:
    """Open the store as `open_default_store`. Yield None if it is missing: nothing is created.

    Raises:
        BadInput: The URL is invalid.
        StoreError: The store cannot be opened.
    """
    if not _may_store_exist(settings):
        yield None
        return
    async with AsyncExitStack() as stack:
        try:
            store = await stack.enter_async_context(
                open_default_store(settings, create="never", uses_valkey=uses_valkey)
            )
        except StoreMissing:
            store = None
        yield store


def _may_store_exist(settings: Settings) -> bool:
    """Return False if the SQLite file is missing. This saves the import of SQLAlchemy, and needs no extra."""
    url = database_url(settings)
    try:
        return not url.startswith("sqlite:///") or Path(url.removeprefix("sqlite:///")).expanduser().exists()
    except RuntimeError:  # ~USER of an unknown user, which opening the store reports
        return True
