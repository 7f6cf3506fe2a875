"""Stored tools: the specs in the store, loaded, saved and checked."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from opposable.app.allowed_files import FILE_NAME, AllowedFiles
from opposable.app.default_store import open_default_store, open_existing_store, user_state_directory
from opposable.app.spec_loader import SpecLoader, ToolPermissions
from opposable.app.tool_factory import DEFAULT_ALLOWED_FUNCTIONS, create_builtin_library
from opposable.domain.errors import BadInput
from opposable.domain.records import get_utc_now, load_all_pages
from opposable.domain.specs import AgentToolBinding, AnyToolSpec, FunctionToolSpec, McpServerSpec, Registration
from opposable.settings import Settings
from opposable.tools.library import ToolLibrary
from opposable.tools.tool_names import find_nearest_names, to_safe_name

if TYPE_CHECKING:
    from opposable.store.store import Store

COMMAND_LINE = "command line"
"""The name under which the command line saves tools and decides approvals; over HTTP it is that of an API key."""


def permissions_from_settings(settings: Settings) -> ToolPermissions:
    """Return the permissions of tools that the settings grant."""
    return ToolPermissions(
        roots=tuple(root.resolve() for root in settings.roots),
        private_hosts=settings.private_hosts,
        api_hosts=settings.api_hosts,
        allowed_modules=(*DEFAULT_ALLOWED_FUNCTIONS, *settings.modules),
        allowed_files=open_allowed_files(),
    )


def open_allowed_files() -> AllowedFiles:
    """Return the Python files that the owner allowed to run.

    They are in the user's state folder, or in OPPOSABLE_HOME from the environment. A `.env` file does not count: it
    may belong to a foreign project, which must not bring its own permissions.
    """
    home = os.environ.get("OPPOSABLE_HOME")
    return AllowedFiles((Path(home) if home else user_state_directory()) / FILE_NAME)


async def load_stored_specs(store: "Store") -> tuple[AnyToolSpec, ...]:
    """Load the specs of all stored tools, each after its dependencies.

    Invalid rows are skipped.
    """
    specs = await load_all_pages(lambda after: store.tools.list(after=after, limit=500))
    return tuple(resolve_dependencies(specs, specs))


def resolve_dependencies(specs: Sequence[AnyToolSpec], available: Sequence[AnyToolSpec]) -> list[AnyToolSpec]:
    """Return the specs, each after its dependencies.

    A dependency is included if it is in `specs` or `available`.
    """
    by_id = {spec.tool_id: spec for spec in (*available, *specs)}
    ordered: dict[str, AnyToolSpec] = {}
    visited: set[str] = set()
    pending = [(spec.tool_id, False) for spec in reversed(specs)]
    while pending:
        tool_id, is_ready = pending.pop()
        if is_ready:
            ordered[tool_id] = by_id[tool_id]
        elif tool_id in by_id and tool_id not in visited:
            visited.add(tool_id)
            pending.append((tool_id, True))
            pending += [(dependency, False) for dependency in reversed(by_id[tool_id].dependencies)]
    return list(ordered.values())


@asynccontextmanager
async def open_spec_loader(
    settings: Settings, library: ToolLibrary
) -> AsyncIterator[tuple[SpecLoader, dict[str, str]]]:
    """Load the enabled stored tools into the library; closed at the end.

    Tools with the id of a registered tool are skipped.

    Yields:
        The loader, and the ids of the stored tools that cannot be used, each with the reason.
    """
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_existing_store(settings))
        pins = store.pins if store is not None else None
        loader = await stack.enter_async_context(SpecLoader(library, permissions_from_settings(settings), pins=pins))
        specs = await load_stored_specs(store) if store is not None else ()
        enable = "it is disabled. To enable it: opposable tools enable"
        unusable = {spec.tool_id: f"{enable} {spec.tool_id}" for spec in specs if not spec.enabled}
        for spec in specs:
            if spec.enabled and library.get_spec(spec.tool_id) is None:
                registration = await loader.load(spec)
                if library.get_spec(spec.tool_id) is None:
                    reasons = [reason.removeprefix(f"{spec.tool_id}: ") for reason in registration.rejected.values()]
                    unusable[spec.tool_id] = "; ".join(reasons) or "it offers no tool"
        yield loader, unusable


async def save_tools(
    settings: Settings, specs: Sequence[AnyToolSpec], *, replace: bool = False, force: bool = False
) -> list[Registration]:
    """Store the tools that can be used, and return the registration of each.

    Args:
        settings: The settings, with the store.
        specs: The tools to store.
        replace: Whether to replace stored tools with the same id. Functions of the same Python file are replaced, and
            a spec that equals the stored one needs no replacement.
        force: Whether to also store MCP servers that cannot be reached now. Their tools are registered once they can.

    Raises:
        StoreError: The store cannot be opened or written.
    """
    registrations = []
    library = create_builtin_library(settings)
    new_ids = {spec.tool_id for spec in specs}
    async with (
        open_default_store(settings) as store,
        SpecLoader(library, permissions_from_settings(settings), pins=store.pins) as loader,
    ):
        for spec in resolve_dependencies(specs, await load_stored_specs(store)):
            if spec.tool_id not in new_ids:
                await loader.load(spec, replace=True)
                continue
            stored = await store.tools.get(spec.tool_id)
            if stored is not None and _are_of_one_file(spec, stored):
                is_approval_needed = spec.needs_approval or stored.needs_approval
                spec = spec.model_copy(update={"enabled": stored.enabled, "needs_approval": is_approval_needed})
            elif stored is not None and stored != spec and not replace:
                reason = f"A tool {spec.tool_id!r} is already stored. Pass --replace, or use another id."
                registrations.append(Registration(tool_id=spec.tool_id, rejected={spec.tool_id: reason}))
                continue
            if not spec.enabled and (stored == spec or isinstance(spec, McpServerSpec)):  # without a connection
                registration = Registration(tool_id=spec.tool_id, accepted=(to_safe_name(spec.tool_id),))
            else:
                registration = await loader.load(spec, replace=True)
            server = loader.get_server(spec.tool_id)
            try:
                if registration.has_tools or (force and server is not None):
                    await store.tools.save(spec, saved_by=COMMAND_LINE)
                elif server is not None and stored != spec:
                    reason = (server.health.reason or "it offers no tool").removeprefix(f"{spec.tool_id}: ").rstrip(".")
                    reason += ". The server is not stored. Pass --force to store it nevertheless."
                    registration = Registration(tool_id=spec.tool_id, rejected={spec.tool_id: reason})
            except BadInput as error:
                registration = Registration(tool_id=spec.tool_id, rejected={spec.tool_id: str(error)})
            registrations.append(registration)
    return registrations


def _are_of_one_file(spec: AnyToolSpec, other: AnyToolSpec) -> bool:
    return (
        isinstance(spec, FunctionToolSpec)
        and isinstance(other, FunctionToolSpec)
        and spec.file is not None
        and spec.module_path == other.module_path
    )


@dataclass(frozen=True, slots=True)
class StoredToolHealth:
    """The health of a stored tool.

    Attributes:
        ok: Whether it can be used now.
        reason: Why it cannot be used.
        calls: The number of its calls in the last 24 hours.
        failures: How many of these calls failed.
    """

    tool_id: str
    enabled: bool
    ok: bool
    reason: str = ""
    calls: int = 0
    failures: int = 0


async def check_tool_health(settings: Settings, tool_id: str = "") -> list[StoredToolHealth]:
    """Check all stored tools, or the one with the given id.

    Raises:
        BadInput: No stored tool has the id.
        StoreError: The store cannot be opened.
    """
    library = create_builtin_library(settings)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_existing_store(settings))
        if store is None:
            if tool_id:
                raise BadInput(_describe_unknown_tool(tool_id, ()))
            return []
        loader = await stack.enter_async_context(
            SpecLoader(library, permissions_from_settings(settings), pins=store.pins)
        )
        stored = await load_stored_specs(store)
        selected = [spec for spec in stored if not tool_id or spec.tool_id == tool_id]
        if tool_id and not selected:
            raise BadInput(await _unknown_tool_message(store, tool_id))
        statistics_by_tool = await store.executions.get_statistics_by_tool(get_utc_now() - timedelta(days=1))
        report = []
        for spec in resolve_dependencies(selected, stored):
            registration = await loader.load(spec, replace=True) if spec.enabled else Registration(tool_id=spec.tool_id)
            if spec not in selected:
                continue
            statistics = [
                tool_statistics
                for name, tool_statistics in statistics_by_tool.items()
                if name == spec.tool_id or name.startswith(f"{spec.tool_id}.")
            ]
            reason = "; ".join(
                f"{name}: {problem.removeprefix(f'{name}: ')}" for name, problem in registration.rejected.items()
            )
            calls = sum(tool_statistics.calls for tool_statistics in statistics)
            failures = sum(tool_statistics.failures for tool_statistics in statistics)
            report.append(StoredToolHealth(spec.tool_id, spec.enabled, registration.has_tools, reason, calls, failures))
        return report


async def delete_tool(settings: Settings, tool_id: str) -> None:
    """Delete a stored tool. With the last function of a Python file, its permission to run is withdrawn.

    Raises:
        BadInput: No stored tool has the id.
    """
    async with open_default_store(settings) as store:
        spec = await require_stored_tool(store, tool_id)
        await store.tools.delete(tool_id)
        others = await load_stored_specs(store)
    if isinstance(spec, FunctionToolSpec) and spec.file and not any(_are_of_one_file(spec, other) for other in others):
        open_allowed_files().revoke(spec.file)


async def set_tool_enabled(settings: Settings, tool_id: str, *, enabled: bool) -> None:
    """Enable or disable a stored tool.

    Raises:
        BadInput: No stored tool has the id.
    """
    async with open_default_store(settings) as store:
        if not await store.tools.set_enabled(tool_id, enabled):
            raise BadInput(await _unknown_tool_message(store, tool_id))


async def require_stored_tool(store: "Store", tool_id: str) -> AnyToolSpec:
    """Return the spec of a stored tool.

    Raises:
        BadInput: No stored tool has the id.
    """
    spec = await store.tools.get(tool_id)
    if spec is None:
        raise BadInput(await _unknown_tool_message(store, tool_id))
    return spec


async def _unknown_tool_message(store: "Store", tool_id: str) -> str:
    return _describe_unknown_tool(tool_id, [spec.tool_id for spec in await load_stored_specs(store)])


def _describe_unknown_tool(tool_id: str, ids: Sequence[str]) -> str:
    hint = f"Stored tools: {', '.join(ids[:20])}." if ids else "No tool is stored yet."
    if suggestions := find_nearest_names(tool_id, ids):
        hint = f"Did you mean {suggestions[0]}?"
    return f"No tool named {tool_id!r} is stored. {hint}"


async def get_agent_bindings(settings: Settings, agent_id: str) -> tuple[AgentToolBinding, ...]:
    """Return the tools bound to a stored agent.

    Raises:
        BadInput: No stored agent has the id.
    """
    async with open_existing_store(settings) as store:
        record = await store.agents.get(agent_id) if store is not None else None
    if record is None:
        raise BadInput(f"No agent named {agent_id!r} is stored. Create it over the API, or check its id.")
    return record.spec.tools
