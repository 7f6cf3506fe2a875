"""A tool library as an MCP server over streamable HTTP: who may ask, and where it listens."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager

from fastapi import FastAPI
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from opposable.domain.errors import BadInput
from opposable.tools.library import ToolLibrary
from opposable.web.mcp.server import SERVER_NAME, LibraryServer
from opposable.web.middleware.authentication import is_loopback
from opposable.web.server import serve

MCP_PATH = "/mcp"
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")

CheckKey = Callable[[str], Awaitable[bool]]
"""Whether a bearer key may use the tools."""


def create_mcp_app(
    library: ToolLibrary,
    *,
    check_key: CheckKey | None = None,
    origins: Collection[str] = (),
    name: str = SERVER_NAME,
    instructions: str = "",
) -> FastAPI:
    """The application, with the protocol at `/mcp`.

    With `check_key`, every request bears a key that it lets pass. Without, only requests sent to this machine by name
    or address are answered: a web page whose own name was made to point here sends another. A browser's pages are let
    in from `origins` (`https://HOST`), and without `check_key` from this machine.
    """
    serving = LibraryServer(library, name=name, instructions=instructions)
    inner = serving.server.streamable_http_app(
        streamable_http_path=MCP_PATH, transport_security=_create_security_settings(check_key is None, origins)
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with serving.server.session_manager.run(), serving.notify_of_changes():
            yield

    app = FastAPI(lifespan=lifespan, openapi_url=None)
    app.add_middleware(_AccessMiddleware, check_key=check_key, origins=frozenset(origins))
    app.mount("/", inner)
    return app


def _create_security_settings(loopback_only: bool, origins: Collection[str]) -> TransportSecuritySettings:
    if not loopback_only:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the key is asked for instead
    hosts = [*LOOPBACK_HOSTS, *(f"{host}:*" for host in LOOPBACK_HOSTS)]
    own = [f"http://{host}" for host in hosts]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[*own, *origins])


class _AccessMiddleware:
    """Lets requests through that bear a good key, and pages of the origins named."""

    def __init__(self, app: ASGIApp, check_key: CheckKey | None, origins: frozenset[str]) -> None:
        self._app = app
        self._check_key = check_key
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 or 403, or pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Blanks around a header's value are no part of it, but the HTTP parser leaves those behind it.
        scope = {**scope, "headers": [(name, value.strip(b" \t")) for name, value in scope["headers"]]}
        if self._check_key is None:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            await _error_response(403, f"Pages of {origin[:200]} are not let in here.")(scope, receive, send)
            return
        kind, _, key = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not await self._check_key(key.strip()):
            said = "The key is wrong." if key else "A key is needed: Authorization: Bearer KEY."
            await _error_response(401, said)(scope, receive, send)
            return
        await self._app(scope, receive, send)


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
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until SIGINT or SIGTERM; `on_ready` is told the URL. Port 0 takes a free one.

    Raises: `BadInput` where the address cannot be had, or others than this machine could come in without a key.
    """
    if check_key is None and not is_loopback(host):
        raise BadInput(f"Serving MCP on {host} lets others in, which needs keys. Without keys, use 127.0.0.1.")
    app = create_mcp_app(library, check_key=check_key, origins=origins, name=name, instructions=instructions)
    await serve(app, host, port, lambda url: on_ready(url.removesuffix("/v1") + MCP_PATH))
