"""An MCP server as its owner has it: its connection, the tools that may be called, and those set aside."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opposable.domain.errors import BadInput, ToolRefused, ToolUnavailable
from opposable.domain.records import Pin, canonical_sha256, now
from opposable.domain.specs import McpServerSpec, Registration
from opposable.tools.mcp.connection import Connection, State
from opposable.tools.mcp.mcp_tool import McpTool, made, names_of, usable
from opposable.tools.mcp.tool_pinning import MemoryPins, PinStore, canonical

if TYPE_CHECKING:
    from mcp.types import Tool as ServerTool

MOST_TOOLS = 2_000
"""Tools taken of one server."""

OnTools = Callable[[str, tuple[McpTool, ...]], None]
"""Told a server's id and all its callable tools, each time they are not the same as before."""


@dataclass(frozen=True, slots=True)
class Health:
    """How a server stands: `reason` says why it is down, `set_aside` why which of its tools cannot be called."""

    state: State
    reason: str
    tools: tuple[str, ...]
    set_aside: Mapping[str, str]


class McpServer:
    """A server whose tools are offered for as long as it is open, whatever becomes of the connection meanwhile.

    A tool seen for the first time is pinned (`spec.pin`), one that is not what was accepted is set aside until
    `accept` is called. `on_tools` is told of every change of the callable tools.
    """

    def __init__(self, spec: McpServerSpec, pins: PinStore | None = None, on_tools: OnTools | None = None) -> None:
        self.spec = spec
        self._pins = pins if pins is not None else MemoryPins()
        self._on_tools = on_tools
        self._connection = Connection(spec, self._listed)
        self._listing: list[ServerTool] = []
        self._malformed: dict[str, str] = {}
        self._tools: dict[str, McpTool] = {}
        self._digests: dict[str, str] = {}
        self._set_aside: dict[str, str] = {}

    async def open(self) -> Registration:
        """Connect once and tell what came of it; where that failed, further attempts go on in the background."""
        await self._connection.open()
        return self.registration

    async def aclose(self) -> None:
        """Hang up; a program is ended with all it started."""
        await self._connection.aclose()

    async def __aenter__(self) -> "McpServer":
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    @property
    def tools(self) -> tuple[McpTool, ...]:
        """The tools that may be called, in the server's order; they stay while the server is away."""
        return tuple(self._tools.values())

    @property
    def registration(self) -> Registration:
        """The names accepted, and why the rest was set aside; a server that is away is set aside by its own id."""
        set_aside = dict(self._set_aside)
        if self._connection.state != "ready":
            set_aside[self.spec.tool_id] = f"{self._connection.reason or 'not connected'}; it is tried again"
        accepted = tuple(tool.definition.name for tool in self._tools.values())
        return Registration(tool_id=self.spec.tool_id, accepted=accepted, set_aside=set_aside)

    @property
    def health(self) -> Health:
        """How the server stands now."""
        connection = self._connection
        return Health(connection.state, connection.reason, tuple(self._tools), dict(self._set_aside))

    async def accept(self, tool: str) -> None:
        """Take the tool, by the server's name of it, as it is now.

        Raises: `BadInput` when the server has no such tool now, or it can never be used.
        """
        given = next((one for one in self._listing if one.name == tool), None)
        if given is None:
            raise BadInput(f"The MCP server {self.spec.tool_id} has no tool {tool!r} now.")
        whole = canonical(given)
        await self._pins.put(Pin(self.spec.tool_id, tool, canonical_sha256(whole), whole, now()))
        await self.review()
        if tool not in self._tools:
            raise BadInput(f"{tool} cannot be used: {self._set_aside[tool]}.")

    async def review(self) -> None:
        """Hold the tools against the pins anew: for pins that were accepted elsewhere."""
        await self._listed(self._listing, self._malformed)

    async def _listed(self, listing: "list[ServerTool]", malformed: dict[str, str]) -> None:
        """Sort what the server offers into tools and those set aside, and tell of it where that changed."""
        names = names_of(self.spec.tool_id, (given.name for given in listing))
        tools: dict[str, McpTool] = {}
        digests: dict[str, str] = {}
        set_aside = dict(malformed)
        for given in listing[:MOST_TOOLS]:
            if given.name in digests:
                continue  # a second tool of the same name: the first is the one that is called
            digests[given.name] = canonical_sha256(canonical(given))
            try:
                parts = usable(given)
                await self._pinned(given, digests[given.name])
            except ValueError as error:
                set_aside[given.name] = str(error)
                continue
            same = self._digests.get(given.name) == digests[given.name] and self._tools.get(given.name)
            name = names[given.name]
            tools[given.name] = (
                same
                if same and same.definition.name == name
                else made(given, self.spec, name, parts, self._connection, self._refuse)
            )
        if len(listing) > MOST_TOOLS:
            set_aside["…"] = f"the server has {len(listing):,} tools; the first {MOST_TOOLS:,} are taken"
        changed = list(tools.values()) != list(self._tools.values())
        self._listing, self._malformed = listing, malformed
        self._tools, self._digests, self._set_aside = tools, digests, set_aside
        if changed and self._on_tools is not None:
            self._on_tools(self.spec.tool_id, self.tools)

    async def _pinned(self, given: "ServerTool", digest: str) -> None:
        """Raises: `ValueError` with the reason when the tool is not one that was accepted."""
        pin = await self._pins.get(self.spec.tool_id, given.name)
        if pin is not None and pin.sha256 == digest:
            return
        whole = canonical(given)
        if pin is None and self.spec.pin == "accept":
            await self._pins.put(Pin(self.spec.tool_id, given.name, digest, whole, now()))
            return
        known = pin or Pin(self.spec.tool_id, given.name, "", {}, now())
        if known.pending_sha256 != digest:
            await self._pins.put(replace(known, pending_sha256=digest, pending=whole))
        if not known.sha256:
            raise ValueError("it is new and was not accepted yet")
        raise ValueError(f"it changed since it was accepted ({_difference(known.definition, whole)})")

    def _refuse(self, tool: str) -> None:
        """Raises: `ToolRefused` for a tool set aside since it was told to a model, `ToolUnavailable` for one gone."""
        if tool in self._tools:
            return
        if tool in self._set_aside:
            raise ToolRefused(f"{self.spec.tool_id}.{tool} cannot be called: {self._set_aside[tool]}.")
        raise ToolUnavailable(f"The MCP server {self.spec.tool_id} does not offer {tool} any more.")


def _difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    return f"{', '.join(changed)} differ" if len(changed) > 1 else f"{changed[0] if changed else 'it'} differs"
