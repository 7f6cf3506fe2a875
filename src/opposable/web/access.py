"""Who may ask, and how much: the key, the addresses without one, the size of a request."""

import hmac
from ipaddress import ip_address

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from opposable.web.openai_errors import WireError

OPEN_PATHS = frozenset({"/healthz"})


class Access:
    """Lets requests through that bear the key.

    Without a key only those are let through that were sent to this machine by name or address: a web page whose own
    name was made to point at 127.0.0.1 sends another.
    """

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._key = key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 or 403, or pass the request on."""
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS and (refusal := self._refusal(scope)):
            await refusal.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> WireError | None:
        headers = dict(scope["headers"])
        if not self._key:
            host = headers.get(b"host", b"").decode("latin-1")
            return None if is_loopback(_hostname(host)) else _elsewhere(host)
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._key):
            return None
        said = "The API key is wrong." if given else "An API key is needed: Authorization: Bearer KEY."
        return WireError(401, said, code="invalid_api_key", headers={"www-authenticate": "Bearer"})


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine alone."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


async def body_of(request: Request, largest: int) -> bytes:
    """The JSON body of a request. Raises: `WireError` 400 for another kind of body, 413 for a larger one."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise WireError(400, "The body must be sent as Content-Type: application/json.", code="invalid_content_type")
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > largest:
        raise _too_large(largest)
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > largest:
            raise _too_large(largest)
        pieces.append(piece)
    return b"".join(pieces)


def _hostname(host: str) -> str:
    return host.partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _elsewhere(host: str) -> WireError:
    said = f"Without an API key only requests to localhost are answered, not to {host[:100]!r}."
    return WireError(403, said, code="host_not_allowed")


def _too_large(largest: int) -> WireError:
    return WireError(413, f"The request is larger than {largest:,} bytes.", code="request_too_large")
