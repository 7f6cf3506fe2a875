"""An MCP server over streamable HTTP, with authentication and origin checks."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager

from fastapi import FastAPI
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from opposable.app.execution_log import RecordCall
from opposable.domain.errors import BadInput, OpposableError
from opposable.tools.library import ToolLibrary
from opposable.web.errors import ApiError, to_api_error
from opposable.web.http_server import serve
from opposable.web.mcp.endpoint import MCP_PATH
from opposable.web.mcp.server import SERVER_NAME, LibraryServer
from opposable.web.middleware.authentication import is_loopback
from opposable.web.principal import PRINCIPAL_SCOPE_KEY, Principal

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")

CheckKey = Callable[[str], Awaitable[Principal | None]]
"""Returns the principal of a bearer key, None for an invalid key.

Raises: `ApiError` or `OpposableError`, if the request is rejected for another reason.
"""


def create_mcp_app(
    library: ToolLibrary,
    *,
    check_key: CheckKey | None = None,
    origins: Collection[str] = (),
    name: str = SERVER_NAME,
    instructions: str = "",
    record_call: RecordCall | None = None,
) -> FastAPI:
    """Create the application, with the protocol at `/mcp`.

    Args:
        library: The tools to serve.
        check_key: Returns the principal of the bearer key of every request. Without it, only requests sent to localhost are
            accepted, which protects against DNS rebinding.
        origins: The origins (`https://HOST`) of web pages that may connect. Without `check_key`, pages on localhost
            may connect as well.
        name: The name of the server.
        instructions: The instructions that clients give to their models.
        record_call: Called with the name, arguments and result of each call.
    """
    library_server = LibraryServer(library, name=name, instructions=instructions, record_call=record_call)
    inner_app = library_server.server.streamable_http_app(
        streamable_http_path=MCP_PATH, transport_security=_create_security_settings(check_key is None, origins)
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with library_server.server.session_manager.run(), library_server.notify_of_changes():
            yield

    app = FastAPI(lifespan=lifespan, openapi_url=None)
    app.add_middleware(_AccessMiddleware, check_key=check_key, origins=frozenset(origins))
    app.mount("/", inner_app)
    return app


def _create_security_settings(loopback_only: bool, origins: Collection[str]) -> TransportSecuritySettings:
    if not loopback_only:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)  # keys protect the server
    hosts = [*LOOPBACK_HOSTS, *(f"{host}:*" for host in LOOPBACK_HOSTS)]
    local_origins = [f"http://{host}" for host in hosts]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[*local_origins, *origins])


class _AccessMiddleware:
    """Rejects requests without a valid key, and web pages of other origins."""

    def __init__(self, app: ASGIApp, check_key: CheckKey | None, origins: frozenset[str]) -> None:
        self._app = app
        self._check_key = check_key
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with 401 or 403, or pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Spaces around a header value do not belong to it, but the HTTP parser leaves trailing ones.
        scope = {**scope, "headers": [(name, value.strip(b" \t")) for name, value in scope["headers"]]}
        if self._check_key is None:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            await _error_response(403, f"The origin {origin[:200]} is not allowed.")(scope, receive, send)
            return
        scheme, _, key = headers.get("authorization", "").partition(" ")
        try:
            principal = await self._check_key(key.strip()) if scheme.lower() == "bearer" else None
        except (ApiError, OpposableError) as error:
            api_error = to_api_error(error)
            await _error_response(api_error.status, str(api_error))(scope, receive, send)
            return
        if not principal:
            message = "The key is not valid." if key else "A key is required: Authorization: Bearer KEY."
            await _error_response(401, message)(scope, receive, send)
            return
        await self._app({**scope, PRINCIPAL_SCOPE_KEY: principal}, receive, send)


def _error_response(status: int, message: str) -> JSONResponse:
    headers = {"www-authenticate": "Bearer"} if status == 401 else None
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message}}
    return JSONResponse(error, status, headers)


async def serve_mcp_http(
    library: ToolLibrary,
    host: str = "127.0.0.1",
    port: int = 8001,
    *,
    check_key: CheckKey | None = None,
    origins: Collection[str] = (),
    name: str = SERVER_NAME,
    instructions: str = "",
    record_call: RecordCall | None = None,
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP.

    Args:
        library: The tools to serve.
        host: The address to listen on.
        port: The port to listen on; 0 selects a free one.
        check_key: See `create_mcp_app`.
        origins: See `create_mcp_app`.
        name: The name of the server.
        instructions: The instructions that clients give to their models.
        record_call: See `create_mcp_app`.
        on_ready: Called with the URL.

    Raises:
        BadInput: If the address cannot be used, or other hosts could connect without a key.
    """
    if check_key is None and not is_loopback(host):
        raise BadInput(
            f"Serving MCP on {host} needs keys, because other hosts can connect. Without keys, use 127.0.0.1."
        )
    app = create_mcp_app(
        library, check_key=check_key, origins=origins, name=name, instructions=instructions, record_call=record_call
    )
    await serve(app, host, port, lambda url: on_ready(url.removesuffix("/v1") + MCP_PATH))
