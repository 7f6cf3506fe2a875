"""A remote MCP server: its connection, the tools that may be called, and those that are rejected."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opposable.domain.errors import BadInput, ToolRefused, ToolUnavailable
from opposable.domain.records import ToolPin, canonical_sha256, get_utc_now
from opposable.domain.specs import McpServerSpec, Registration
from opposable.tools.json_schema_validation import ValidateArguments
from opposable.tools.mcp.connection import ConnectionState, McpConnection
from opposable.tools.mcp.mcp_tool import McpTool, create_tool, to_tool_names, validate_server_tool
from opposable.tools.mcp.text_sanitizer import sanitize_text
from opposable.tools.mcp.tool_pinning import MemoryPinStore, PinStore, to_protocol_json

if TYPE_CHECKING:
    from mcp.types import Tool as ServerTool

MAX_TOOLS = 2_000
"""Tools that are accepted from one server."""

OnToolsChanged = Callable[[str, tuple[McpTool, ...]], None]
"""Receives a server's id and all its callable tools after each change."""


@dataclass(frozen=True, slots=True)
class McpServerHealth:
    """The state of a server: `reason` says why it is down, `rejected_tools` why tools cannot be called."""

    state: ConnectionState
    reason: str
    tools: tuple[str, ...]
    rejected_tools: Mapping[str, str]


class McpServer:
    """A server whose tools can be used while it is open, also across reconnects.

    A tool is pinned when it is first seen (see `spec.pin`). A tool that differs from its pin is rejected until
    `accept` is called.
    """

    def __init__(
        self, spec: McpServerSpec, pins: PinStore | None = None, on_tools_changed: OnToolsChanged | None = None
    ) -> None:
        """Create the server; `open` connects to it.

        Args:
            spec: How to reach the server.
            pins: Where pins are stored (default: in memory).
            on_tools_changed: Called after each change of the callable tools.
        """
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
        """Connect once and return the report. If that failed, further attempts follow in the background."""
        await self._connection.open()
        return self.registration

    async def aclose(self) -> None:
        """Close the connection and end the server's program with its child processes."""
        await self._connection.aclose()

    async def __aenter__(self) -> "McpServer":
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    @property
    def tools(self) -> tuple[McpTool, ...]:
        """The tools that may be called, in the server's order; also while the server is down."""
        return tuple(self._tools.values())

    @property
    def instructions(self) -> str:
        """What the server says to models about its use, "" for nothing. Models get it only from you."""
        return sanitize_text(self._connection.instructions)

    @property
    def registration(self) -> Registration:
        """The accepted names and the rejected ones with reasons; a server that is down is listed by its own id."""
        rejected = dict(self._rejected_tools)
        if self._connection.state != "ready":
            rejected[self.spec.tool_id] = f"{self._connection.reason or 'not connected'}; it is tried again"
        accepted = tuple(tool.definition.name for tool in self._tools.values())
        return Registration(tool_id=self.spec.tool_id, accepted=accepted, rejected=rejected)

    @property
    def health(self) -> McpServerHealth:
        """The current state of the server."""
        connection = self._connection
        return McpServerHealth(connection.state, connection.reason, tuple(self._tools), dict(self._rejected_tools))

    async def accept(self, tool: str) -> None:
        """Accept a tool, by the server's name for it, in its current form.

        Raises:
            BadInput: The server has no such tool now, or it can never be used.
        """
        server_tool = next((listed for listed in self._listed_tools if listed.name == tool), None)
        if server_tool is None:
            raise BadInput(f"The MCP server {self.spec.tool_id} has no tool {tool!r} now.")
        definition = to_protocol_json(server_tool)
        pin = ToolPin(self.spec.tool_id, tool, canonical_sha256(definition), definition, get_utc_now())
        await self._pins.put(pin)
        await self.recheck_pins()
        if tool not in self._tools:
            raise BadInput(f"{tool} cannot be used: {self._rejected_tools[tool]}.")

    async def recheck_pins(self) -> None:
        """Compare the tools with their pins again, after pins were accepted elsewhere."""
        await self._update_tools(self._listed_tools, self._malformed)

    async def _update_tools(self, listed_tools: "list[ServerTool]", malformed: dict[str, str]) -> None:
        """Divide a server's tools into callable and rejected ones, and report a change."""
        names = to_tool_names(self.spec.tool_id, (server_tool.name for server_tool in listed_tools))
        pins = {pin.tool: pin for pin in await self._pins.list_for_server(self.spec.tool_id)}
        changed_pins: list[ToolPin] = []
        tools: dict[str, McpTool] = {}
        digests: dict[str, str] = {}
        rejected = dict(malformed)
        for server_tool in listed_tools[:MAX_TOOLS]:
            name = server_tool.name
            if name in digests:
                continue  # the server calls the first tool of a name
            digests[name] = canonical_sha256(to_protocol_json(server_tool))
            try:
                schema_and_validator = validate_server_tool(server_tool)
                changed_pin, rejection = self._check_pin(server_tool, digests[name], pins.get(name))
            except ValueError as error:
                rejected[name] = str(error)
                continue
            if changed_pin is not None:
                changed_pins.append(changed_pin)
            if rejection:
                rejected[name] = rejection
                continue
            tools[name] = self._create_tool(server_tool, names[name], digests[name], schema_and_validator)
        if changed_pins:
            await self._pins.put(*changed_pins)
        if len(listed_tools) > MAX_TOOLS:
            rejected["…"] = f"the server has {len(listed_tools):,} tools; only the first {MAX_TOOLS:,} are used"
        has_changed = list(tools.values()) != list(self._tools.values())
        self._listed_tools, self._malformed = listed_tools, malformed
        self._tools, self._digests, self._rejected_tools = tools, digests, rejected
        if has_changed and self._on_tools_changed is not None:
            self._on_tools_changed(self.spec.tool_id, self.tools)

    def _create_tool(
        self,
        server_tool: "ServerTool",
        name: str,
        digest: str,
        schema_and_validator: tuple[dict[str, Any], ValidateArguments],
    ) -> McpTool:
        """Return the tool, the same object as before if it has not changed."""
        current = self._tools.get(server_tool.name)
        if current is not None and self._digests.get(server_tool.name) == digest and current.definition.name == name:
            return current
        return create_tool(
            server_tool, self.spec, name, schema_and_validator, self._connection, self._raise_if_unavailable
        )

    def _check_pin(self, server_tool: "ServerTool", digest: str, pin: ToolPin | None) -> tuple[ToolPin | None, str]:
        """Compare a tool with its pin.

        Returns:
            The pin to store, None if it has not changed, and why the tool is rejected, "" if it is accepted.
        """
        if pin is not None and pin.sha256 == digest:
            return None, ""
        definition = to_protocol_json(server_tool)
        if pin is None and self.spec.pin == "accept":
            return ToolPin(self.spec.tool_id, server_tool.name, digest, definition, get_utc_now()), ""
        pin = pin or ToolPin(self.spec.tool_id, server_tool.name, "", {}, get_utc_now())
        is_pending = pin.pending_sha256 == digest
        changed_pin = None if is_pending else replace(pin, pending_sha256=digest, pending=definition)
        if not pin.sha256:
            return changed_pin, "it is new and was not accepted yet"
        changed = sorted(
            key for key in {*pin.definition, *definition} if pin.definition.get(key) != definition.get(key)
        )
        verb = "differ" if len(changed) > 1 else "differs"
        return changed_pin, f"it changed since it was accepted ({', '.join(changed) or 'it'} {verb})"

    def _raise_if_unavailable(self, tool: str) -> None:
        """Check that a tool may be called now.

        Raises:
            ToolRefused: The tool was rejected after it was sent to a model.
            ToolUnavailable: The server no longer has it.
        """
        if tool in self._tools:
            return
        if tool in self._rejected_tools:
            raise ToolRefused(f"{self.spec.tool_id}.{tool} cannot be called: {self._rejected_tools[tool]}.")
        raise ToolUnavailable(f"The MCP server {self.spec.tool_id} does not offer {tool} any more.")
