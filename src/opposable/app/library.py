"""The library of an owner: the built-in tools, and those kept in the store."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from opposable.domain.specs import AnyToolSpec, Registration
from opposable.settings import Settings
from opposable.store.opening import open_store
from opposable.tools.build import ALLOWED
from opposable.tools.library import ToolLibrary
from opposable.tools.toolbox import Reach, Toolbox

if TYPE_CHECKING:
    from opposable.store.store import Store


def state_directory(settings: Settings) -> Path:
    """Where state is kept that no database URL puts elsewhere: `home`, or the user's data folder."""
    if settings.home is not None:
        return settings.home
    base = os.environ.get("XDG_DATA_HOME") or (os.environ.get("LOCALAPPDATA") if os.name == "nt" else "")
    return Path(base) / "opposable" if base else Path.home() / ".local" / "share" / "opposable"


def database_url(settings: Settings) -> str:
    """Where the store is: the URL that was set, else a SQLite file."""
    given = settings.database_url.get_secret_value().strip()
    return given or f"sqlite:///{(state_directory(settings) / 'opposable.sqlite').absolute()}"


def reach_of(settings: Settings, *, programs: bool = True) -> Reach:
    """What tools may reach."""
    return Reach(
        roots=tuple(root.resolve() for root in settings.roots),
        private_hosts=settings.private_hosts,
        api_hosts=settings.api_hosts,
        modules=(*ALLOWED, *settings.modules),
        programs=programs,
    )


@asynccontextmanager
async def kept_store(settings: Settings) -> AsyncIterator["Store"]:
    """The store, closed at the end; a SQLite file is made where there is none. Raises: `BadInput`, `StoreError`."""
    url = database_url(settings)
    if url.startswith("sqlite:///"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    async with open_store(url, valkey=settings.redis_url.get_secret_value().strip() or None) as store:
        yield store


def is_kept(settings: Settings) -> bool:
    """Whether anything can have been kept yet: a SQLite file that is not there holds nothing."""
    url = database_url(settings)
    return not url.startswith("sqlite:///") or Path(url.removeprefix("sqlite:///")).exists()


async def kept_specs(store: "Store") -> tuple[AnyToolSpec, ...]:
    """The specs of all kept tools; a row that is no tool is passed over."""
    found: list[AnyToolSpec] = []
    after = ""
    while True:
        page = await store.tools.list(after=after, limit=500)
        found += page.items
        after = page.next
        if not after:
            return tuple(found)


@asynccontextmanager
async def toolbox(settings: Settings, library: ToolLibrary) -> AsyncIterator[tuple[Toolbox, list[Registration]]]:
    """The library with the kept tools put into it, and what came of each; closed at the end.

    Tools of the same id as a built-in one are passed over.
    """
    if not is_kept(settings):
        async with Toolbox(library, reach_of(settings)) as box:
            yield box, []
        return
    async with kept_store(settings) as store, Toolbox(library, reach_of(settings), pins=store.pins) as box:
        specs = await kept_specs(store)
        yield box, [await box.add(spec) for spec in specs if spec.enabled and library.get(spec.tool_id) is None]
