"""A library whose tools come from specs: made of every kind, registered, changed, closed."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opposable.app.tool_factory import DEFAULT_ALLOWED_FUNCTIONS, create_builtin_tools, create_tools
from opposable.builtin_tools.calculator.calculator import calculator
from opposable.builtin_tools.clock import time
from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.domain.specs import AnyToolSpec, FunctionToolSpec, HttpToolSpec, McpServerSpec, Registration, SkillSpec
from opposable.tools.base import Tool
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary

if TYPE_CHECKING:  # each is loaded with the first tool that needs it
    from opposable.safety.network.guarded_client import GuardedClient
    from opposable.safety.sandbox.sandbox import Sandbox
    from opposable.tools.mcp.remote_server import McpServer
    from opposable.tools.mcp.tool_pinning import PinStore

INTERNAL_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"calculator": calculator, "time": time}
"""What `internal://NAME` endpoints mean."""


@dataclass(frozen=True, slots=True)
class ToolPermissions:
    """What the owner lets tools reach.

    `roots` are the folders files are read in; `private_hosts` (`host`, `host:port` or a CIDR) the loopback and private
    addresses that may be called at all; `api_hosts` those that `api_caller` may; `modules` what function specs may name;
    `programs` whether MCP servers may be started as programs; `overwrite` whether files may be replaced.
    """

    roots: tuple[Path, ...] = ()
    private_hosts: tuple[str, ...] = ()
    api_hosts: tuple[str, ...] = ()
    allowed_modules: tuple[str, ...] = DEFAULT_ALLOWED_FUNCTIONS
    allow_programs: bool = True
    allow_overwrite: bool = False


class SpecLoader:
    """Puts tools into a library by their specs, and holds what they share: one guarded client, one sandbox.

    `pins` remembers MCP tools as they were accepted (by default for as long as the toolbox lives), `environ` is where
    secrets are looked up. Close it with `aclose`, or use it in `async with`.
    """

    def __init__(
        self,
        library: ToolLibrary,
        permissions: ToolPermissions = ToolPermissions(),
        *,
        pins: "PinStore | None" = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.library = library
        self.permissions = permissions
        self._pins = pins
        self._environ = environ
        self._servers: dict[str, McpServer] = {}

    async def load(self, spec: AnyToolSpec, *, replace: bool = False) -> Registration:
        """Make a spec's tools and register them; `replace` puts them in the place of those of the same id.

        What cannot be used is told in `set_aside`, never raised.
        """
        if self.library.get_spec(spec.tool_id) is not None and not replace:
            told = f"There is a tool named {spec.tool_id!r} already; replace it, or give this one another id."
            return Registration(tool_id=spec.tool_id, set_aside={spec.tool_id: told})
        try:
            if isinstance(spec, McpServerSpec):
                return await self._connect_mcp_server(spec)
            tools = self.create_tools(spec)
        except (BadInput, ModuleNotFoundError) as error:
            return Registration(tool_id=spec.tool_id, set_aside={spec.tool_id: _format_error(error)})
        return self.library.replace(spec, tools)

    async def remove(self, tool_id: str) -> bool:
        """Take a tool out, and hang up where it is an MCP server. False where there is none."""
        server = self._servers.pop(tool_id, None)
        if server is not None:
            await server.aclose()
        return self.library.unregister(tool_id) or server is not None

    def create_tools(self, spec: AnyToolSpec) -> Sequence[Tool]:
        """The tools of a spec, not registered. Raises: `BadInput`, saying what of it cannot be used."""
        match spec:
            case FunctionToolSpec() if (
                spec.module_path.startswith("opposable.") and spec.tool_id in self._builtin_tools
            ):
                return [self._builtin_tools[spec.tool_id]]
            case FunctionToolSpec():
                return create_tools(spec, allowed=self.permissions.allowed_modules)
            case HttpToolSpec():
                return [self._create_http_tool(spec)]
            case SkillSpec():
                from opposable.tools.skills.skill_tool import tools_from_skill_spec

                return list(tools_from_skill_spec(spec, self.sandbox))
            case McpServerSpec():
                server = self._servers.get(spec.tool_id)
                return list(server.tools) if server is not None else []
        raise BadInput(f"{spec.tool_id}: no tool can be made from a spec of type {spec.tool_type}.")

    def get_server(self, tool_id: str) -> "McpServer | None":
        """The MCP server of that id, to ask how it stands or to accept a changed tool."""
        return self._servers.get(tool_id)

    @cached_property
    def _builtin_tools(self) -> dict[str, Tool]:
        """The built-in tools by their ids, over the owner's folders; none of them where there is no folder."""
        return {
            tool.tool_id: tool
            for tool in (create_builtin_tools(list(self.permissions.roots)) if self.permissions.roots else ())
        }

    @cached_property
    def client(self) -> "GuardedClient":
        """The one way out to the network that HTTP tools share."""
        from opposable.safety.network.guarded_client import GuardedClient

        return GuardedClient(self.permissions.private_hosts)

    @cached_property
    def sandbox(self) -> "Sandbox":
        """Where scripts run."""
        from opposable.safety.sandbox.sandbox import Sandbox

        return Sandbox()

    async def aclose(self) -> None:
        """Hang up, and close what the tools share."""
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
        from opposable.tools.http.http_tool import HttpTool, get_internal_tool_name

        name = get_internal_tool_name(spec, INTERNAL_FUNCTIONS)
        if name is not None:
            return FunctionTool(INTERNAL_FUNCTIONS[name], tool_id=spec.tool_id, description=spec.description)
        return HttpTool(spec, self.client, self._environ)

    async def _connect_mcp_server(self, spec: McpServerSpec) -> Registration:
        from opposable.tools.mcp.registration import register_server

        if spec.command and not self.permissions.allow_programs:
            raise ToolRegistrationError(f"{spec.tool_id}: MCP servers may not be started as programs here; give a URL.")
        if not spec.enabled:
            return Registration(tool_id=spec.tool_id, set_aside={spec.tool_id: "It is switched off."})
        old = self._servers.pop(spec.tool_id, None)
        if old is not None:
            await old.aclose()
        self._servers[spec.tool_id] = server = await register_server(self.library, spec, self._pins)
        return server.registration


def _format_error(error: Any) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f'It needs {error.name}, which is missing: pip install "opposable[all]".'
    return str(error)
