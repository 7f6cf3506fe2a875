"""A store opened by its URL, and closed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from opposable.domain.errors import BadInput

if TYPE_CHECKING:  # SQLAlchemy takes half a second: it is loaded when a store is opened
    from opposable.store.store import Store

_EXTRAS = {
    "store": ("sqlalchemy", "alembic", "aiosqlite", "limits"),
    "postgres": ("psycopg",),
    "valkey": ("valkey",),
}


@asynccontextmanager
async def open_store(url: str, *, valkey: str | None = None) -> AsyncIterator["Store"]:
    """The store at `sqlite:///PATH` or `postgresql://…`, its schema brought up to date; closed at the end.

    With `valkey` (`valkey://…` or `redis://…`) conversations and rate limits are kept there instead.
    Raises: `BadInput` for a URL that cannot be used or an extra that is not installed, `StoreTooNew`,
    `StoreUnavailable`.
    """
    _need("store")
    if url.strip().lower().startswith("postgres"):
        _need("postgres")
    if valkey is not None:
        _need("valkey")
    from opposable.store.store import opened

    async with opened(url, valkey) as store:
        yield store


def can_open(url: str) -> bool:
    """Whether what a store at this URL needs is installed."""
    extras = ("store", "postgres") if url.strip().lower().startswith("postgres") else ("store",)
    return not any(_missing(extra) for extra in extras)


def _missing(extra: str) -> list[str]:
    return [name for name in _EXTRAS[extra] if find_spec(name) is None]


def _need(extra: str) -> None:
    missing = _missing(extra)
    if missing:
        raise BadInput(
            f'This store needs the extra "{extra}" ({", ".join(missing)} is missing): pip install "opposable[{extra}]".'
        )
