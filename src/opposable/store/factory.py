"""Opening of a store by its URL, after a check of the installed extras."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from opposable.domain.errors import BadInput
from opposable.store.creation import StoreCreation

if TYPE_CHECKING:  # importing SQLAlchemy takes half a second, so it waits until a store is opened
    from opposable.store.store import Store

_EXTRA_MODULES = {
    "store": ("sqlalchemy", "alembic", "aiosqlite"),
    "postgres": ("psycopg",),
    "valkey": ("valkey", "limits"),
}


@asynccontextmanager
async def open_store(
    url: str, *, valkey_url: str | None = None, create: StoreCreation = "if_empty"
) -> AsyncIterator["Store"]:
    """Open the store at a URL, upgrade its schema, and close it at the end.

    Args:
        url: `sqlite:///PATH` or `postgresql://USER:PASSWORD@HOST/DATABASE`.
        valkey_url: `valkey://…` or `redis://…`. Conversations and rate limits are then stored there.
        create: Whether to create a missing store: `never`, `if_empty` (only in a database without tables of other
            programs), or `always`. On PostgreSQL, the tables are created in the schema `opposable`.

    Raises:
        BadInput: The URL cannot be used, or an extra is not installed.
        StoreMissing: The database holds no store, and `create` does not allow to create one.
        StoreTooNew: A newer version of Opposable wrote the schema.
        StoreUnavailable: The database does not answer.
    """
    _require_extra("store")
    if url.strip().lower().startswith("postgres"):
        _require_extra("postgres")
    if valkey_url is not None:
        _require_extra("valkey")
    from opposable.store.store import connect_store  # lazy: imports SQLAlchemy

    async with connect_store(url, valkey_url, create) as store:
        yield store


def is_store_installed(url: str) -> bool:
    """Return whether the packages for a store at this URL are installed."""
    extras = ("store", "postgres") if url.strip().lower().startswith("postgres") else ("store",)
    return not any(_list_missing_modules(extra) for extra in extras)


def _list_missing_modules(extra: str) -> list[str]:
    return [name for name in _EXTRA_MODULES[extra] if find_spec(name) is None]


def _require_extra(extra: str) -> None:
    missing = _list_missing_modules(extra)
    if missing:
        raise BadInput(
            f'The store needs the extra "{extra}" ({", ".join(missing)} is missing). Run: pip install "opposable[{extra}]".'
        )
