"""The library of an owner: the built-in tools, and those kept in the store."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from opposable.app.spec_loader import SpecLoader, ToolPermissions
from opposable.app.tool_factory import DEFAULT_ALLOWED_FUNCTIONS, create_builtin_tools
from opposable.domain.errors import BadInput
from opposable.domain.records import get_utc_now
from opposable.domain.specs import AgentToolBinding, AnyToolSpec, Registration
from opposable.settings import Settings
from opposable.store.factory import open_store
from opposable.tools.library import ToolLibrary
from opposable.tools.tool_names import find_nearest_names

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


def permissions_from_settings(settings: Settings, *, allow_programs: bool = True) -> ToolPermissions:
    """What tools may reach."""
    return ToolPermissions(
        roots=tuple(root.resolve() for root in settings.roots),
        private_hosts=settings.private_hosts,
        api_hosts=settings.api_hosts,
        allowed_modules=(*DEFAULT_ALLOWED_FUNCTIONS, *settings.modules),
        allow_programs=allow_programs,
    )


@asynccontextmanager
async def open_default_store(settings: Settings) -> AsyncIterator["Store"]:
    """The store, closed at the end; a SQLite file is made where there is none. Raises: `BadInput`, `StoreError`."""
    url = database_url(settings)
    if url.startswith("sqlite:///"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    async with open_store(url, valkey_url=settings.redis_url.get_secret_value().strip() or None) as store:
        yield store


def store_exists(settings: Settings) -> bool:
    """Whether anything can have been kept yet: a SQLite file that is not there holds nothing."""
    url = database_url(settings)
    return not url.startswith("sqlite:///") or Path(url.removeprefix("sqlite:///")).exists()


async def load_stored_specs(store: "Store") -> tuple[AnyToolSpec, ...]:
    """The specs of all kept tools, each after those it depends on; a row that is no tool is passed over."""
    found: list[AnyToolSpec] = []
    after = ""
    while True:
        page = await store.tools.list(after=after, limit=500)
        found += page.items
        after = page.next_cursor
        if not after:
            return tuple(resolve_dependencies(found, found))


def resolve_dependencies(specs: Sequence[AnyToolSpec], available: Sequence[AnyToolSpec]) -> list[AnyToolSpec]:
    """The specs, each after those of itself and of the `known` that it depends on."""
    by_id = {spec.tool_id: spec for spec in (*available, *specs)}
    found: dict[str, AnyToolSpec] = {}
    begun: set[str] = set()
    ahead = [(spec.tool_id, False) for spec in reversed(specs)]
    while ahead:
        tool_id, ready = ahead.pop()
        if ready:
            found[tool_id] = by_id[tool_id]
        elif tool_id in by_id and tool_id not in begun:
            begun.add(tool_id)
            ahead.append((tool_id, True))
            ahead += [(one, False) for one in reversed(by_id[tool_id].dependencies)]
    return list(found.values())


def _create_builtin_library(settings: Settings) -> ToolLibrary:
    """A library to try tools in: with the built-in ones, which tools may depend on."""
    return ToolLibrary(create_builtin_tools([root.resolve() for root in settings.roots]))


@asynccontextmanager
async def open_spec_loader(
    settings: Settings, library: ToolLibrary
) -> AsyncIterator[tuple[SpecLoader, list[Registration]]]:
    """The library with the kept tools put into it, and what came of each; closed at the end.

    Tools of the same id as a built-in one are passed over.
    """
    if not store_exists(settings):
        async with SpecLoader(library, permissions_from_settings(settings)) as box:
            yield box, []
        return
    async with (
        open_default_store(settings) as store,
        SpecLoader(library, permissions_from_settings(settings), pins=store.pins) as box,
    ):
        specs = await load_stored_specs(store)
        yield box, [await box.load(spec) for spec in specs if spec.enabled and library.get_spec(spec.tool_id) is None]


async def save_tools(settings: Settings, specs: Sequence[AnyToolSpec], *, replace: bool = False) -> list[Registration]:
    """Keep the tools that can be used, and tell what came of each.

    An MCP server that is not reached now is kept all the same: its tools come when it is. Raises: `StoreError`.
    """
    came = []
    library, given = _create_builtin_library(settings), {spec.tool_id for spec in specs}
    async with (
        open_default_store(settings) as store,
        SpecLoader(library, permissions_from_settings(settings), pins=store.pins) as box,
    ):
        for spec in resolve_dependencies(specs, await load_stored_specs(store)):
            if spec.tool_id not in given:
                await box.load(spec, replace=True)
                continue
            if not replace and await store.tools.get(spec.tool_id) is not None:
                told = f"There is a tool {spec.tool_id!r} already; give it another id, or replace it."
                came.append(Registration(tool_id=spec.tool_id, set_aside={spec.tool_id: told}))
                continue
            registration = await box.load(spec, replace=True)
            try:
                if registration.has_tools or box.get_server(spec.tool_id) is not None:
                    await store.tools.save(spec)
            except BadInput as error:
                registration = Registration(tool_id=spec.tool_id, set_aside={spec.tool_id: str(error)})
            came.append(registration)
    return came


@dataclass(frozen=True, slots=True)
class StoredToolHealth:
    """How a kept tool is: whether it can be used now, the reason when not, and its calls of the last day."""

    tool_id: str
    enabled: bool
    ok: bool
    reason: str = ""
    calls: int = 0
    failures: int = 0


async def check_tool_health(settings: Settings, tool_id: str = "") -> list[StoredToolHealth]:
    """How the kept tools are, or the one of that id. Raises: `BadInput` when there is none, `StoreError`."""
    library = _create_builtin_library(settings)
    async with (
        open_default_store(settings) as store,
        SpecLoader(library, permissions_from_settings(settings), pins=store.pins) as box,
    ):
        kept = await load_stored_specs(store)
        asked = [spec for spec in kept if not tool_id or spec.tool_id == tool_id]
        if tool_id and not asked:
            raise BadInput(await _unknown_tool_message(store, tool_id))
        tallies = await store.executions.get_statistics_by_tool(get_utc_now() - timedelta(days=1))
        found = []
        for spec in resolve_dependencies(asked, kept):
            came = await box.load(spec, replace=True) if spec.enabled else Registration(tool_id=spec.tool_id)
            if spec not in asked:
                continue
            own = [
                tally for name, tally in tallies.items() if name == spec.tool_id or name.startswith(f"{spec.tool_id}.")
            ]
            reason = "; ".join(f"{name}: {why}" for name, why in came.set_aside.items())
            calls, failures = sum(one.calls for one in own), sum(one.failures for one in own)
            found.append(StoredToolHealth(spec.tool_id, spec.enabled, came.has_tools, reason, calls, failures))
        return found


async def delete_tool(settings: Settings, tool_id: str) -> None:
    """Forget a kept tool. Raises: `BadInput` when there is none."""
    async with open_default_store(settings) as store:
        if not await store.tools.delete(tool_id):
            raise BadInput(await _unknown_tool_message(store, tool_id))


async def set_tool_enabled(settings: Settings, tool_id: str, *, enabled: bool) -> None:
    """Switch a kept tool on or off. Raises: `BadInput` when there is none."""
    async with open_default_store(settings) as store:
        if not await store.tools.set_enabled(tool_id, enabled):
            raise BadInput(await _unknown_tool_message(store, tool_id))


async def _unknown_tool_message(store: "Store", tool_id: str) -> str:
    ids = [spec.tool_id for spec in await load_stored_specs(store)]
    near = find_nearest_names(tool_id, ids)
    told = f"Did you mean {near[0]}?" if near else f"Kept are: {', '.join(ids[:20])}." if ids else "None is kept yet."
    return f"No tool named {tool_id!r} is kept. {told}"


async def get_agent_bindings(settings: Settings, agent_id: str) -> tuple[AgentToolBinding, ...]:
    """The tools bound to a kept agent. Raises: `BadInput` when there is no such agent."""
    async with open_default_store(settings) as store:
        record = await store.agents.get(agent_id)
    if record is None:
        raise BadInput(f"No agent {agent_id!r} is kept.")
    return record.spec.tools
