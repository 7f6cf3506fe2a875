"""The spec loader: creates the tools of a spec and registers them in a library."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opposable.app.allowed_files import AllowedFiles
from opposable.app.tool_factory import DEFAULT_ALLOWED_FUNCTIONS, create_builtin_tools
from opposable.builtin_tools.calculator.calculator import calculator
from opposable.builtin_tools.clock import time
from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.domain.specs import AnyToolSpec, FunctionToolSpec, HttpToolSpec, McpServerSpec, Registration, SkillSpec
from opposable.safety.network.guarded_client import GuardedClient
from opposable.tools.base import Tool
from opposable.tools.function import FunctionTool
from opposable.tools.function_loader import load_file_tools, load_tools
from opposable.tools.library import ToolLibrary

if TYPE_CHECKING:  # imported with the first tool that needs it
    from opposable.safety.sandbox.sandbox import Sandbox
    from opposable.tools.mcp.remote_server import McpServer
    from opposable.tools.mcp.tool_pinning import PinStore

INTERNAL_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"calculator": calculator, "time": time}
"""The functions that `internal://NAME` endpoints call."""


@dataclass(frozen=True, slots=True)
class ToolPermissions:
    """What the owner allows tools to access.

    Attributes:
        roots: The folders that file tools may read.
        private_hosts: Loopback and private addresses that may be called (`host`, `host:port` or a CIDR).
        api_hosts: The hosts that `api_caller` may call.
        allowed_modules: The modules and functions that function specs may name.
        allow_programs: Whether MCP servers may be started as programs.
        allow_overwrite: Whether tools may replace files.
        allowed_files: The Python files that function specs may name (default: none).
    """

    roots: tuple[Path, ...] = ()
    private_hosts: tuple[str, ...] = ()
    api_hosts: tuple[str, ...] = ()
    allowed_modules: tuple[str, ...] = DEFAULT_ALLOWED_FUNCTIONS
    allow_programs: bool = True
    allow_overwrite: bool = False
    allowed_files: AllowedFiles | None = None


class SpecLoader:
    """Registers tools in a library by their specs, and holds the resources they share.

    These are one guarded HTTP client and one sandbox. Close the loader with `aclose`, or use it in `async with`.

    Args:
        library: Where the tools are registered.
        permissions: What the tools may access.
        pins: Stores MCP tools as they were accepted (by default in memory).
    """

    def __init__(
        self, library: ToolLibrary, permissions: ToolPermissions = ToolPermissions(), *, pins: "PinStore | None" = None
    ) -> None:
        self.library = library
        self.permissions = permissions
        self._pins = pins
        self._servers: dict[str, McpServer] = {}

    async def load(self, spec: AnyToolSpec, *, replace: bool = False) -> Registration:
        """Create the tools of a spec and register them.

        A spec that cannot be used does not raise.

        Args:
            spec: The spec.
            replace: Whether to replace registered tools with the same id.

        Returns:
            The accepted tools, and in `rejected` the reason for each rejected one.
        """
        if self.library.get_spec(spec.tool_id) is not None and not replace:
            reason = f"A tool named {spec.tool_id!r} is already registered. Replace it, or use another id."
            return Registration(tool_id=spec.tool_id, rejected={spec.tool_id: reason})
        try:
            if isinstance(spec, McpServerSpec):
                return await self._connect_mcp_server(spec)
            tools = self.create_tools(spec)
        except (BadInput, ModuleNotFoundError) as error:
            return Registration(tool_id=spec.tool_id, rejected={spec.tool_id: _format_error(error)})
        return self.library.replace(spec, tools)

    async def remove(self, tool_id: str) -> bool:
        """Unregister a tool and disconnect its MCP server.

        Return False if it does not exist.
        """
        server = self._servers.pop(tool_id, None)
        if server is not None:
            await server.aclose()
        return self.library.unregister(tool_id) or server is not None

    def create_tools(self, spec: AnyToolSpec) -> Sequence[Tool]:
        """Create the tools of a spec without registering them.

        Raises:
            BadInput: The spec cannot be used.
        """
        match spec:
            case FunctionToolSpec() if (
                spec.module_path.startswith("opposable.") and spec.tool_id in self._builtin_tools
            ):
                return [self._builtin_tools[spec.tool_id]]
            case FunctionToolSpec(file=Path() as file):
                if self.permissions.allowed_files is None:
                    raise BadInput(f"{spec.tool_id}: Python files may not be used here. Name a module.")
                return load_file_tools(spec, self.permissions.allowed_files.load_module(file))
            case FunctionToolSpec():
                return load_tools(spec, self.permissions.allowed_modules)
            case HttpToolSpec():
                return [self._create_http_tool(spec)]
            case SkillSpec():
                from opposable.tools.skills.skill_tool import tools_from_skill_spec  # lazy: needs the extra "skills"

                return list(tools_from_skill_spec(spec, self.sandbox))
            case McpServerSpec():
                server = self._servers.get(spec.tool_id)
                return list(server.tools) if server is not None else []

    def get_server(self, tool_id: str) -> "McpServer | None":
        """Return the MCP server with that id, for its status or to accept a changed tool."""
        return self._servers.get(tool_id)

    @cached_property
    def _builtin_tools(self) -> dict[str, Tool]:
        """The built-in tools by id; empty if no folder may be read."""
        tools = create_builtin_tools(self.permissions.roots) if self.permissions.roots else []
        return {tool.tool_id: tool for tool in tools}

    @cached_property
    def client(self) -> GuardedClient:
        """The HTTP client that all HTTP tools share."""
        return GuardedClient(self.permissions.private_hosts)

    @cached_property
    def sandbox(self) -> "Sandbox":
        """The sandbox in which scripts run."""
        from opposable.safety.sandbox.sandbox import Sandbox  # lazy: start-up time

        return Sandbox()

    async def aclose(self) -> None:
        """Disconnect the MCP servers and close the shared resources."""
        for server in self._servers.values():
            await server.aclose()
        self._servers.clear()
        if "client" in self.__dict__:
            await self.client.aclose()

    async def __aenter__(self) -> "SpecLoader":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _create_http_tool(self, spec: HttpToolSpec) -> Tool:
        from opposable.tools.http.http_tool import HttpTool, get_internal_tool_name  # lazy: start-up time

        name = get_internal_tool_name(spec, INTERNAL_FUNCTIONS)
        if name is not None:
            return FunctionTool(INTERNAL_FUNCTIONS[name], tool_id=spec.tool_id, description=spec.description)
        return HttpTool(spec, self.client)

    async def _connect_mcp_server(self, spec: McpServerSpec) -> Registration:
        from opposable.tools.mcp.registration import register_server  # lazy: needs the extra "mcp"

        if spec.command and not self.permissions.allow_programs:
            raise ToolRegistrationError(f"{spec.tool_id}: MCP servers may not be started as programs here. Use a URL.")
        if not spec.enabled:
            return Registration(tool_id=spec.tool_id, rejected={spec.tool_id: "It is disabled."})
        previous = self._servers.pop(spec.tool_id, None)
        if previous is not None:
            await previous.aclose()
        self._servers[spec.tool_id] = server = await register_server(self.library, spec, self._pins)
        return server.registration


def _format_error(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f'It needs the package {error.name}. Install it: pip install "opposable[all]".'
    return str(error)
