"""The HTTP client of tools, which connects only to checked addresses."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from opposable.domain.errors import ToolFailed, ToolRefused, ToolUnavailable
from opposable.safety.network.ssrf_guard import SsrfGuard
from opposable.safety.network.url_parsing import UrlTarget

if TYPE_CHECKING:  # aiohttp takes longer to import than most commands run, and loads the certificates
    import aiohttp
    from aiohttp.abc import AbstractResolver

CONNECT_SECONDS = 10.0
MAX_CONNECTIONS = 100
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_BODY_HEADERS = ("content-type", "content-length", "content-encoding", "transfer-encoding")
DEFAULT_HEADERS = {"accept": "application/json, text/*;q=0.9, */*;q=0.5", "user-agent": "opposable"}


class ResponseTimeout(ToolFailed, TimeoutError):
    """A server that did not answer in time."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """An HTTP request.

    `seconds` limits the whole exchange, `connect_seconds` the connection attempt.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    seconds: float = 30.0
    connect_seconds: float = CONNECT_SECONDS
    max_redirects: int = 0


class GuardedClient:
    """An HTTP client for tools. Close it with `aclose`.

    It uses no proxy from the environment and stores no cookies. It follows redirects only where the request says so,
    checks each one, and sends no header of the caller to another origin.

    Args:
        allow: Targets that are allowed besides the public Internet; see `SsrfGuard`.
        resolver: Replaces the resolver of the system.
    """

    def __init__(self, allow: Sequence[str] = (), *, resolver: "AbstractResolver | None" = None) -> None:
        self.guard = SsrfGuard(tuple(allow))
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def send(self, request: HttpRequest) -> "AsyncGenerator[aiohttp.ClientResponse, None]":
        """Send a request and yield the response, its body unread.

        The connection is closed afterwards unless the body was read completely.

        Raises:
            ToolRefused: The guard does not allow the target.
            ToolUnavailable: The server cannot be reached, or the connection broke.
            ResponseTimeout: The server did not answer in time.
        """
        import aiohttp  # lazy: start-up time

        response = None
        targets: list[UrlTarget] = []
        try:
            async with asyncio.timeout(request.seconds) as scope:
                targets.append(self.guard.check_url(request.url))
                response = await self._follow_redirects(request, targets)
                yield response
        except TimeoutError as error:
            limit = request.seconds if scope.expired() else request.connect_seconds
            raise ResponseTimeout(f"There was no answer from {targets[-1].host} within {limit:g} seconds.") from error
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
            raise ToolRefused("This URL cannot be fetched.") from error
        except aiohttp.ClientConnectorCertificateError as error:
            raise ToolUnavailable(
                f"The certificate of {targets[-1].host} is not valid.", outcome_unknown=_has_effect(request, targets)
            ) from error
        except aiohttp.ClientConnectorError as error:
            reason = error.os_error.strerror or type(error.os_error).__name__
            raise ToolUnavailable(
                f"{targets[-1].host} cannot be reached: {reason}.", outcome_unknown=_has_effect(request, targets)
            ) from error
        except aiohttp.ClientError as error:
            message = f"The connection to {targets[-1].host} broke: {type(error).__name__}."
            raise ToolUnavailable(message, outcome_unknown=True) from error
        except ToolUnavailable as error:  # of the resolver, or of the caller for the status
            error.outcome_unknown = error.outcome_unknown or _has_effect(request, targets)
            raise
        finally:
            if response is not None:
                response.release()  # closes the connection unless the body was read completely

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def _follow_redirects(self, request: HttpRequest, targets: list[UrlTarget]) -> "aiohttp.ClientResponse":
        """Send a request and those after its redirects. Their targets are appended to `targets`, which has the first."""
        remaining = request.max_redirects
        while True:
            target = targets[-1]
            response = await self._send_once(request, target)
            location = response.headers.get("location")
            if response.status not in _REDIRECT_STATUSES or location is None or request.max_redirects == 0:
                return response
            response.release()
            if remaining == 0:
                raise ToolRefused(f"{target.host} redirects more than {request.max_redirects} times.")
            remaining -= 1
            targets.append(self.guard.check_url(urljoin(str(target.url), location)))
            request = _build_redirect_request(request, response.status, *targets[-2:])

    async def _send_once(self, request: HttpRequest, target: UrlTarget) -> "aiohttp.ClientResponse":
        """Send one request. One that only reads is sent again if the server had closed the connection meanwhile."""
        import aiohttp  # lazy: start-up time

        try:
            return await self._send(request, target)
        except aiohttp.ServerDisconnectedError:
            if request.method not in ("GET", "HEAD"):
                raise
            return await self._send(request, target)

    async def _send(self, request: HttpRequest, target: UrlTarget) -> "aiohttp.ClientResponse":
        import aiohttp  # lazy: start-up time

        return await self._get_session().request(
            request.method,
            target.url,
            headers={**DEFAULT_HEADERS, **{name.lower(): value for name, value in request.headers.items()}},
            data=request.body,
            skip_auto_headers=("content-type",),
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=request.connect_seconds),
        )

    def _get_session(self) -> "aiohttp.ClientSession":
        import aiohttp  # lazy: start-up time

        from opposable.safety.network.guarded_resolver import GuardedResolver  # lazy: start-up time

        if self._session is None or self._session.closed:
            connector = aiohttp.TCPConnector(
                resolver=GuardedResolver(self.guard, self._resolver or aiohttp.DefaultResolver()),
                use_dns_cache=False,  # each connection resolves and checks the name, and uses that address
                limit=MAX_CONNECTIONS,
                socket_factory=self._create_socket,
            )
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
            )
            # aiohttp would send a PUT or DELETE twice, though it may have taken effect. It has no option for this.
            self._session._retry_connection = False  # noqa: SLF001
        return self._session

    def _create_socket(self, info: Any) -> socket.socket:
        """Create the socket of a connection, after a last check of its address."""
        family, kind, protocol, _, address = info
        if not self.guard.can_connect(ip_address(address[0]), address[1]):
            raise ToolRefused(f"{address[0]} is not an address that tools may reach.")
        connection = socket.socket(family, kind, protocol)
        connection.setblocking(False)
        return connection


def _has_effect(request: HttpRequest, targets: list[UrlTarget]) -> bool:
    """Return whether a request may have had an effect though its last target was not reached: it was redirected."""
    return len(targets) > 1 and request.method not in ("GET", "HEAD")


def _build_redirect_request(request: HttpRequest, status: int, old: UrlTarget, new: UrlTarget) -> HttpRequest:
    """Build the request after a redirect.

    The caller's headers are dropped where the origin changes.

    Raises:
        ToolRefused: The redirect leads from https to http, or would send the body to another origin.
    """
    if old.scheme == "https" and new.scheme == "http":
        raise ToolRefused(f"{old.host} redirects from https to plain http.")
    as_get = status == 303 or (status in (301, 302) and request.method == "POST")
    headers = dict(request.headers) if new.origin == old.origin else {}
    if as_get and request.method != "HEAD":
        remaining_headers = {name: value for name, value in headers.items() if name.lower() not in _BODY_HEADERS}
        return replace(request, method="GET", url=str(new.url), headers=remaining_headers, body=None)
    if request.body is not None and new.origin != old.origin:
        raise ToolRefused(f"{old.host} asks to send the request's body to {new.host}.")
    return replace(request, url=str(new.url), headers=headers)
