"""Serves the files of the web console, and accepts its session cookie in place of an API key header."""

import gzip
import mimetypes
import secrets
from functools import lru_cache
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

CONSOLE_DIRECTORY = Path(__file__).parent / "console"
"""The built files. `make console` builds them from the folder `console` of the repository."""

PAGES = frozenset({"", "chat", "tools", "data", "runs", "batches", "agents", "settings"})
"""The first segment of the paths of pages; the browser resolves the rest of the path."""

SESSION_COOKIE = "opposable_session"
CONSOLE_HEADER = b"x-opposable-console"
"""The header that a request must have for its cookie to count. Other websites cannot send it without CORS."""

NONCE_PLACEHOLDER = b"__CSP_NONCE__"
"""The text in `index.html` that is replaced by the nonce of the response."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
MIN_COMPRESSED_BYTES = 1024


class ConsoleMiddleware:
    """Serves the console, and adds its cookie to its API requests as the header `Authorization`.

    The files are public: they contain no data. Every other request continues to authentication.

    Args:
        app: The application with the API.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with a file, or pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] in ("GET", "HEAD"):
            response = get_console_response(scope["path"], dict(scope["headers"]))
            if response is None and is_unknown_page(scope):
                response = _create_page_response(404)
            if response is not None:
                await response(scope, receive, send)
                return
        _authorize_by_cookie(scope)
        await self._app(scope, receive, send)


def get_console_response(path: str, headers: dict[bytes, bytes]) -> Response | None:
    """Return the response for a page or file of the console, None for any other path."""
    is_gzip_accepted = b"gzip" in headers.get(b"accept-encoding", b"")
    name = path.removeprefix("/")
    if name.partition("/")[0] in PAGES:
        return _create_page_response()
    if name not in list_console_files():
        return None
    return _create_file_response(name, headers.get(b"if-none-match", b""), is_gzip_accepted=is_gzip_accepted)


def is_unknown_page(scope: Scope) -> bool:
    """Return whether a browser navigates to a path without a route. Other clients get the JSON error of the API."""
    if b"text/html" not in dict(scope["headers"]).get(b"accept", b""):
        return False
    return all(route.matches(scope)[0] is Match.NONE for route in scope["app"].routes)


@lru_cache(maxsize=1)
def list_console_files() -> frozenset[str]:
    """Return the paths of the built files except `index.html`, relative to the console."""
    files = (path for path in CONSOLE_DIRECTORY.rglob("*") if path.is_file())
    return frozenset(path.relative_to(CONSOLE_DIRECTORY).as_posix() for path in files) - {"index.html"}


def _create_page_response(status: int = 200) -> Response:
    page = CONSOLE_DIRECTORY / "index.html"
    if not page.is_file():
        return Response("The console has not been built. Run `make console`.", 404, media_type="text/plain")
    nonce = secrets.token_urlsafe(18)
    body = _read_file("index.html").replace(NONCE_PLACEHOLDER, nonce.encode())
    policy = CONTENT_SECURITY_POLICY.format(nonce=nonce)
    headers = {"content-security-policy": policy, "cache-control": "no-store"}
    return Response(body, status, media_type="text/html", headers=headers)


def _create_file_response(name: str, known_etag: bytes, *, is_gzip_accepted: bool) -> Response:
    """Return a file. The names of files in `assets` contain their hash, so browsers may store them for a year."""
    is_hashed = name.startswith("assets/")
    headers = {"cache-control": "public, max-age=31536000, immutable" if is_hashed else "public, max-age=3600"}
    etag = f'"{name}"' if is_hashed else ""
    if etag:
        headers["etag"] = etag
        if known_etag.decode("latin-1") == etag:
            return Response(status_code=304, headers=headers)
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    body = _read_file(name)
    if is_gzip_accepted and len(body) >= MIN_COMPRESSED_BYTES:
        body = _compress_file(name)
        headers["content-encoding"] = "gzip"
    headers["vary"] = "Accept-Encoding"
    return Response(body, media_type=media_type, headers=headers)


@lru_cache(maxsize=256)
def _read_file(name: str) -> bytes:
    return (CONSOLE_DIRECTORY / name).read_bytes()


@lru_cache(maxsize=256)
def _compress_file(name: str) -> bytes:
    return gzip.compress(_read_file(name), 9, mtime=0)


def _authorize_by_cookie(scope: Scope) -> None:
    """Add the API key in the cookie of a request from the console as its header `Authorization`."""
    headers = dict(scope["headers"])
    if b"authorization" in headers or CONSOLE_HEADER not in headers:
        return
    try:
        cookie = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(SESSION_COOKIE)
    except CookieError:
        return
    if cookie is not None and cookie.value:
        scope["headers"] = [*scope["headers"], (b"authorization", f"Bearer {cookie.value}".encode("latin-1"))]
