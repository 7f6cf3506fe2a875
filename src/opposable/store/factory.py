"""A store opened by its URL, and closed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from opposable.domain.errors import BadInput

if TYPE_CHECKING:  # SQLAlchemy takes half a second: it is loaded when a store is opened
    from opposable.store.store import Store

_EXTRA_MODULES = {
    "store": ("sqlalchemy", "alembic", "aiosqlite", "limits"),
    "postgres": ("psycopg",),
    "valkey": ("valkey",),
}


@asynccontextmanager
async def open_store(url: str, *, valkey_url: str | None = None) -> AsyncIterator["Store"]:
    """The store at `sqlite:///PATH` or `postgresql://…`, its schema brought up to date; closed at the end.

    With `valkey` (`valkey://…` or `redis://…`) conversations and rate limits are kept there instead.
    Raises: `BadInput` for a URL that cannot be used or an extra that is not installed, `StoreTooNew`,
    `StoreUnavailable`.
    """
    _require_extra("store")
    if url.strip().lower().startswith("postgres"):
        _require_extra("postgres")
    if valkey_url is not None:
        _require_extra("valkey")
    from opposable.store.store import connect_store

    async with connect_store(url, valkey_url) as store:
        yield store


def is_store_installed(url: str) -> bool:
    """Whether what a store at this URL needs is installed."""
    extras = ("store", "postgres") if url.strip().lower().startswith("postgres") else ("store",)
    return not any(_list_missing_modules(extra) for extra in extras)


def _list_missing_modules(extra: str) -> list[str]:
    return [name for name in _EXTRA_MODULES[extra] if find_spec(name) is None]


def _require_extra(extra: str) -> None:
    missing = _list_missing_modules(extra)
    if missing:
        raise BadInput(
            f'This store needs the extra "{extra}" ({", ".join(missing)} is missing): pip install "opposable[{extra}]".'
        )
