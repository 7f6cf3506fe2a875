"""An MCP server as its owner has it: its connection, the tools that may be called, and those set aside."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opposable.domain.errors import BadInput, ToolRefused, ToolUnavailable
from opposable.domain.records import ToolPin, canonical_sha256, get_utc_now
from opposable.domain.specs import McpServerSpec, Registration
from opposable.tools.mcp.connection import ConnectionState, McpConnection
from opposable.tools.mcp.mcp_tool import McpTool, create_tool, to_tool_names, validate_server_tool
from opposable.tools.mcp.tool_pinning import MemoryPinStore, PinStore, to_protocol_json

if TYPE_CHECKING:
    from mcp.types import Tool as ServerTool

MAX_TOOLS = 2_000
"""Tools taken of one server."""

OnToolsChanged = Callable[[str, tuple[McpTool, ...]], None]
"""Told a server's id and all its callable tools, each time they are not the same as before."""


@dataclass(frozen=True, slots=True)
class McpServerHealth:
    """How a server stands: `reason` says why it is down, `set_aside` why which of its tools cannot be called."""

    state: ConnectionState
    reason: str
    tools: tuple[str, ...]
    rejected_tools: Mapping[str, str]


class McpServer:
    """A server whose tools are offered for as long as it is open, whatever becomes of the connection meanwhile.

    A tool seen for the first time is pinned (`spec.pin`), one that is not what was accepted is set aside until
    `accept` is called. `on_tools` is told of every change of the callable tools.
    """

    def __init__(
        self, spec: McpServerSpec, pins: PinStore | None = None, on_tools_changed: OnToolsChanged | None = None
    ) -> None:
        self.spec = spec
        self._pins = pins if pins is not None else MemoryPinStore()
        self._on_tools_changed = on_tools_changed
        self._connection = McpConnection(spec, self._update_tools)
        self._listed_tools: list[ServerTool] = []
        self._malformed: dict[str, str] = {}
        self._tools: dict[str, McpTool] = {}
        self._digests: dict[str, str] = {}
        self._rejected_tools: dict[str, str] = {}

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
        set_aside = dict(self._rejected_tools)
        if self._connection.state != "ready":
            set_aside[self.spec.tool_id] = f"{self._connection.reason or 'not connected'}; it is tried again"
        accepted = tuple(tool.definition.name for tool in self._tools.values())
        return Registration(tool_id=self.spec.tool_id, accepted=accepted, set_aside=set_aside)

    @property
    def health(self) -> McpServerHealth:
        """How the server stands now."""
        connection = self._connection
        return McpServerHealth(connection.state, connection.reason, tuple(self._tools), dict(self._rejected_tools))

    async def accept(self, tool: str) -> None:
        """Take the tool, by the server's name of it, as it is now.

        Raises: `BadInput` when the server has no such tool now, or it can never be used.
        """
        given = next((one for one in self._listed_tools if one.name == tool), None)
        if given is None:
            raise BadInput(f"The MCP server {self.spec.tool_id} has no tool {tool!r} now.")
        whole = to_protocol_json(given)
        await self._pins.put(ToolPin(self.spec.tool_id, tool, canonical_sha256(whole), whole, get_utc_now()))
        await self.recheck_pins()
        if tool not in self._tools:
            raise BadInput(f"{tool} cannot be used: {self._rejected_tools[tool]}.")

    async def recheck_pins(self) -> None:
        """Hold the tools against the pins anew: for pins that were accepted elsewhere."""
        await self._update_tools(self._listed_tools, self._malformed)

    async def _update_tools(self, listed_tools: "list[ServerTool]", malformed: dict[str, str]) -> None:
        """Sort what the server offers into tools and those set aside, and tell of it where that changed."""
        names = to_tool_names(self.spec.tool_id, (given.name for given in listed_tools))
        tools: dict[str, McpTool] = {}
        digests: dict[str, str] = {}
        set_aside = dict(malformed)
        for given in listed_tools[:MAX_TOOLS]:
            if given.name in digests:
                continue  # a second tool of the same name: the first is the one that is called
            digests[given.name] = canonical_sha256(to_protocol_json(given))
            try:
                parts = validate_server_tool(given)
                await self._check_pin(given, digests[given.name])
            except ValueError as error:
                set_aside[given.name] = str(error)
                continue
            same = self._digests.get(given.name) == digests[given.name] and self._tools.get(given.name)
            name = names[given.name]
            tools[given.name] = (
                same
                if same and same.definition.name == name
                else create_tool(given, self.spec, name, parts, self._connection, self._raise_if_unavailable)
            )
        if len(listed_tools) > MAX_TOOLS:
            set_aside["…"] = f"the server has {len(listed_tools):,} tools; the first {MAX_TOOLS:,} are taken"
        changed = list(tools.values()) != list(self._tools.values())
        self._listed_tools, self._malformed = listed_tools, malformed
        self._tools, self._digests, self._rejected_tools = tools, digests, set_aside
        if changed and self._on_tools_changed is not None:
            self._on_tools_changed(self.spec.tool_id, self.tools)

    async def _check_pin(self, server_tool: "ServerTool", digest: str) -> None:
        """Raises: `ValueError` with the reason when the tool is not one that was accepted."""
        pin = await self._pins.get(self.spec.tool_id, server_tool.name)
        if pin is not None and pin.sha256 == digest:
            return
        whole = to_protocol_json(server_tool)
        if pin is None and self.spec.pin == "accept":
            await self._pins.put(ToolPin(self.spec.tool_id, server_tool.name, digest, whole, get_utc_now()))
            return
        known = pin or ToolPin(self.spec.tool_id, server_tool.name, "", {}, get_utc_now())
        if known.pending_sha256 != digest:
            await self._pins.put(replace(known, pending_sha256=digest, pending=whole))
        if not known.sha256:
            raise ValueError("it is new and was not accepted yet")
        raise ValueError(f"it changed since it was accepted ({_describe_difference(known.definition, whole)})")

    def _raise_if_unavailable(self, tool: str) -> None:
        """Raises: `ToolRefused` for a tool set aside since it was told to a model, `ToolUnavailable` for one gone."""
        if tool in self._tools:
            return
        if tool in self._rejected_tools:
            raise ToolRefused(f"{self.spec.tool_id}.{tool} cannot be called: {self._rejected_tools[tool]}.")
        raise ToolUnavailable(f"The MCP server {self.spec.tool_id} does not offer {tool} any more.")


def _describe_difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    return f"{', '.join(changed)} differ" if len(changed) > 1 else f"{changed[0] if changed else 'it'} differs"
