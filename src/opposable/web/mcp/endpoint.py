"""The tools of a service for MCP clients, at `/mcp` of its application."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from opposable.domain.records import execution_from_result
from opposable.domain.tools import ToolResult
from opposable.service.background import run_in_background
from opposable.service.service import Service
from opposable.web.errors import ApiError, missing_scope_error
from opposable.web.principal import CALL_SCOPE, OWNER, PRINCIPAL_SCOPE_KEY, Principal
from opposable.web.telemetry.tracing import CURRENT_TRACE

MCP_PATH = "/mcp"


class McpEndpoint:
    """An ASGI application that serves the enabled tools of a service over streamable HTTP.

    Requests share no state, so that any process of any replica can answer them. The SDK takes much memory, so it is
    loaded with the first request. Enter `run` while the application runs.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._start_requested = asyncio.Event()
        self._app: asyncio.Future[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request of the protocol.

        Raises:
            ApiError: 403 without the scope `tools:write`, 501 if the extra "mcp" is not installed.
        """
        principal: Principal = scope.get(PRINCIPAL_SCOPE_KEY, OWNER)
        if not principal.has_scope(CALL_SCOPE):
            raise missing_scope_error(CALL_SCOPE)
        assert self._app is not None, "the application does not run"
        self._start_requested.set()
        app = await asyncio.shield(self._app)
        await app(scope, receive, send)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Accept requests while the block runs."""
        self._app = asyncio.get_running_loop().create_future()
        try:
            async with run_in_background(self._serve(self._app), "mcp"):
                yield
        finally:
            self._app.cancel()

    async def _serve(self, app: "asyncio.Future[ASGIApp]") -> None:
        """Start the server with the first request, and notify clients of changed tools until cancelled."""
        await self._start_requested.wait()
        try:
            await asyncio.to_thread(import_module, "opposable.web.mcp.server")
            from mcp.server.transport_security import TransportSecuritySettings

            from opposable.web.mcp.server import LibraryServer  # lazy: needs the extra "mcp"

            server = LibraryServer(self._service.library, record_call=self._record_call, has_sessions=False)
            inner_app = server.server.streamable_http_app(
                streamable_http_path=MCP_PATH,
                stateless_http=True,
                # The middleware of the application checks keys, hosts and origins.
                transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            )
            async with server.server.session_manager.run(), server.notify_of_changes():
                app.set_result(inner_app)
                await asyncio.Event().wait()
        except ModuleNotFoundError:
            message = 'MCP needs the extra "mcp" on the server: pip install "opposable[mcp]".'
            app.set_exception(ApiError(501, "not_installed", message))
        except Exception as error:
            if not app.done():
                app.set_exception(error)
            raise

    def _record_call(self, name: str, arguments: Mapping[str, Any], result: ToolResult) -> None:
        tool_id = self._service.library.get_tool_id(name)
        trace_id = CURRENT_TRACE.get().trace_id
        self._service.recorder.record(execution_from_result(result, tool_id, dict(arguments), trace_id=trace_id))
