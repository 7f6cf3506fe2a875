"""The one HTTP client of tools: every request is vetted, and goes to exactly the address that was."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any
from urllib.parse import urljoin

import aiohttp
from aiohttp.abc import AbstractResolver

from opposable.domain.errors import ToolFailed, ToolRefused, ToolUnavailable
from opposable.safety.network.ssrf_guard import GuardedResolver, SsrfGuard
from opposable.safety.network.url_parsing import UrlTarget

CONNECT_SECONDS = 10.0
MAX_CONNECTIONS = 100
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_BODY_HEADERS = ("content-type", "content-length", "content-encoding", "transfer-encoding")
DEFAULT_HEADERS = {"accept": "application/json, text/*;q=0.9, */*;q=0.5", "user-agent": "opposable"}


class ResponseTimeout(ToolFailed, TimeoutError):
    """A server did not answer in time: told as a time-out."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. `redirects` is how many are followed; `seconds` bounds the whole exchange, `connect_seconds` the opening."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    seconds: float = 30.0
    connect_seconds: float = CONNECT_SECONDS
    max_redirects: int = 0


class GuardedClient:
    """Sends requests where the guard allows, over one session that is opened when first used.

    No proxy of the environment, no cookies kept, no redirect followed unless asked for; each hop is vetted and no header
    of the caller's goes to another origin. `resolver` replaces the system's. Close with `aclose`.
    """

    def __init__(self, allow: Sequence[str] = (), *, resolver: AbstractResolver | None = None) -> None:
        self.guard = SsrfGuard(tuple(allow))
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """The response, its body unread; the connection is closed at the end unless the body was read to its end.

        Raises: `ToolRefused` where the guard does, `ToolUnavailable` where the server cannot be reached or breaks off,
        `NoAnswer`.
        """
        response = None
        host = ""
        try:
            async with asyncio.timeout(request.seconds) as scope:
                target = self.guard.check_url(request.url)
                host = target.host
                response = await self._follow_redirects(request, target)
                yield response
        except TimeoutError as error:
            limit = request.seconds if scope.expired() else request.connect_seconds
            raise ResponseTimeout(f"There was no answer from {host} within {limit:g} seconds.") from error
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
            raise ToolRefused("This URL cannot be fetched.") from error
        except aiohttp.ClientConnectorCertificateError as error:
            raise ToolUnavailable(f"The certificate of {host} is not valid.") from error
        except aiohttp.ClientConnectorError as error:
            told = error.os_error.strerror or type(error.os_error).__name__
            raise ToolUnavailable(f"{host} cannot be reached: {told}.") from error
        except aiohttp.ClientError as error:
            raise ToolUnavailable(f"The connection to {host} broke: {type(error).__name__}.") from error
        finally:
            if response is not None:
                response.release()  # closes the connection where the body was not read to its end

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def _follow_redirects(self, request: HttpRequest, target: UrlTarget) -> aiohttp.ClientResponse:
        left = request.max_redirects
        while True:
            response = await self._send_once(request, target)
            to = response.headers.get("location")
            if response.status not in _REDIRECT_STATUSES or to is None or request.max_redirects == 0:
                return response
            response.release()
            if left == 0:
                raise ToolRefused(f"{target.host} redirects more than {request.max_redirects} times.")
            left -= 1
            following = self.guard.check_url(urljoin(str(target.url), to))
            request, target = _build_redirect_request(request, response.status, target, following), following

    async def _send_once(self, request: HttpRequest, target: UrlTarget) -> aiohttp.ClientResponse:
        return await self._get_session().request(
            request.method,
            target.url,
            headers={**DEFAULT_HEADERS, **{name.lower(): value for name, value in request.headers.items()}},
            data=request.body,
            skip_auto_headers=("content-type",),
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=request.connect_seconds),
        )

    def _get_session(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            connector = aiohttp.TCPConnector(
                resolver=GuardedResolver(self.guard, self._resolver or aiohttp.DefaultResolver()),
                use_dns_cache=False,  # a name is vetted anew for every connection, and that answer is dialled
                limit=MAX_CONNECTIONS,
                socket_factory=self._create_socket,
            )
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
            )
        return self._session

    def _create_socket(self, info: Any) -> socket.socket:
        """The last look before dialling: what a URL or a name led to is an address now."""
        family, kind, protocol, _, where = info
        if not self.guard.can_connect(ip_address(where[0]), where[1]):
            raise ToolRefused(f"{where[0]} is no address that tools may reach.")
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)
        return opened


def _build_redirect_request(request: HttpRequest, status: int, old: UrlTarget, new: UrlTarget) -> HttpRequest:
    """The request for the next hop: nothing of the caller's goes to another origin.

    Raises: `ToolRefused` for a step from https down to http, and for a body that would have to go elsewhere.
    """
    if old.scheme == "https" and new.scheme == "http":
        raise ToolRefused(f"{old.host} redirects from https to plain http.")
    as_get = status == 303 or (status in (301, 302) and request.method == "POST")
    headers = dict(request.headers) if new.origin == old.origin else {}
    if as_get and request.method != "HEAD":
        kept = {name: value for name, value in headers.items() if name.lower() not in _BODY_HEADERS}
        return replace(request, method="GET", url=str(new.url), headers=kept, body=None)
    if request.body is not None and new.origin != old.origin:
        raise ToolRefused(f"{old.host} asks to send the request's body to {new.host}.")
    return replace(request, url=str(new.url), headers=headers)
