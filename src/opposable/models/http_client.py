"""HTTP requests to model servers, with retries and translated errors."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson

from opposable.domain.backoff import get_backoff_seconds, parse_retry_after
from opposable.domain.errors import (
    ContextFull,
    ModelError,
    ModelNotFound,
    ModelRefusedKey,
    ModelRejected,
    ModelUnavailable,
)
from opposable.domain.events import ModelEvent
from opposable.domain.json_text import parse_json, parse_reply_json, preview_json

if TYPE_CHECKING:
    import aiohttp

CONTEXT_OVERFLOW_PATTERN = re.compile(
    r"context.{0,12}(length|size|window)|exceed_context_size|maximum context|too many tokens|prompt is too long",
    re.IGNORECASE,
)
RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
RELAYED_RETRIES = frozenset({425, 500, 502, 503, 529})
"""The statuses that are retried for a request whose client gets the server's own response: time-outs are not."""
MAX_RESPONSE_BYTES = 512_000_000  # decompressed; a line of a stream, which is copied with each chunk, has a 16th
_RATE_LIMIT_ERRORS = frozenset({"rate_limit_error", "rate_limit_exceeded", "429"})
_TEMPORARY_ERRORS = {"server_error", "api_error", "overloaded_error", "timeout_error", *map(str, RETRYABLE_STATUSES)}
"""The types and codes of errors that a later attempt may not have."""
HttpMethod = Literal["GET", "POST", "DELETE"]
DONE = b"[DONE]"
"""The payload after the last event of a complete reply."""
_RELAYED_RESPONSE_HEADERS = re.compile(
    r"(x-)?request-id|retry-after(-ms)?|x-should-retry|x-ratelimit-.+|anthropic-(?!organization).+|openai-(?!org|proj).+"
)
"""The headers of a server's response that its client gets: not those about the account or the connection."""
_FIRST_HALF = re.compile(rb'\\u[dD][89abAB][0-9a-fA-F]{2}(?=")')
_SECOND_HALF = re.compile(rb'"(?=\\u[dD][c-fC-F][0-9a-fA-F]{2})')
"""The halves of a character beyond U+FFFF, at the end of one text and the start of the next one."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Time-outs and retries of a request.

    Attributes:
        max_attempts: Attempts, the first one included.
        connect_timeout_seconds: Time to connect.
        read_timeout_seconds: Time without any data from the server.
        initial_wait_seconds: The longest wait before the second attempt. It doubles with each attempt.
        max_wait_seconds: The longest wait. A longer `Retry-After` of the server ends the request with an error.
    """

    max_attempts: int = 3
    connect_timeout_seconds: float = 10.0
    read_timeout_seconds: float = 600.0
    initial_wait_seconds: float = 0.5
    max_wait_seconds: float = 60.0


class Endpoint:
    """A URL that accepts JSON by POST. It supports concurrent requests.

    Args:
        url: The URL.
        headers: The headers of every request.
        api_key: The key to redact from messages of the server.
        retry_policy: Time-outs and retries.
        path_hint: A sentence for the error when the server does not have this path.
    """

    def __init__(
        self, url: str, headers: dict[str, str], api_key: str, retry_policy: RetryPolicy, path_hint: str
    ) -> None:
        self.url = url
        self._headers = {"content-type": "application/json"} | {name: value.strip() for name, value in headers.items()}
        self._api_key = api_key.strip()  # a key from a file ends with a line break
        self._retry_policy = retry_policy
        self._path_hint = path_hint
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # of the session
        self._proxy: str | None = None

    async def post(self, body: bytes) -> Any:
        """Return the JSON response of the server. Raises: `ModelError`."""
        with self._translate_errors():
            async with await self._send_with_retries(body) as response:  # leaving it closes one with unread data
                raw = await self.read_body(response)
        try:
            return parse_json(raw)
        except ValueError as error:
            with suppress(ValueError):
                return parse_reply_json(raw)  # it may end inside a character
            raise self.build_not_json_error(raw) from error

    async def stream_data(self, body: bytes) -> AsyncGenerator[list[bytes], None]:
        """Yield the payloads of the server-sent `data:` lines, the last one `DONE`, those received together in one list.

        Raises: `ModelError`.
        """
        with self._translate_errors():
            async with await self._send_with_retries(body) as response:
                if response.content_type == "application/json":
                    yield [await self.read_body(response)]
                    return
                if response.content_type == "text/html":
                    raise self.build_not_json_error(await response.content.read(300))
                incomplete_line = first_half = b""
                async for chunk in response.content.iter_any():
                    block = self.check_size(response, incomplete_line + chunk if incomplete_line else chunk)
                    *lines, incomplete_line = block.split(b"\n")
                    payloads = _list_payloads(lines)
                    if first_half or b"\\u" in block:
                        first_half = _join_halves(payloads, first_half)
                    if payloads:
                        yield payloads
                if payloads := _list_payloads([incomplete_line]):
                    yield payloads

    async def read_body(self, response: "aiohttp.ClientResponse") -> bytes:
        """Return the body of a response. Raises: `ModelError` if it is too long."""
        chunks = []
        while chunk := await response.content.readany():
            chunks.append(self.check_size(response, chunk))
        return b"".join(chunks)

    def check_size(self, response: "aiohttp.ClientResponse", part: bytes) -> bytes:
        """Return a part of a response. Raises: `ModelError` if the response or the part, a line, is too long."""
        if response.content.total_bytes > MAX_RESPONSE_BYTES or len(part) > MAX_RESPONSE_BYTES // 16:
            response.close()
            raise ModelError(f"The response of {self.url} is too long: {response.content.total_bytes:,} bytes so far.")
        return part

    @asynccontextmanager
    async def relay(
        self, method: HttpMethod, url: str, body: bytes, headers: Mapping[str, str], response_headers: dict[str, str]
    ) -> "AsyncGenerator[aiohttp.ClientResponse, None]":
        """Send a request to another URL of the server, and open its response.

        It is sent again only if it cannot have reached the model. Rate limits are not waited for: the client decides
        when to try again. The headers of the response for the client are added to `response_headers`.
        Raises: `ModelError`.
        """
        with self._translate_errors():
            async with await self._send_with_retries(body, url, headers, response_headers, method) as response:
                yield response

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    def _get_session(self) -> "aiohttp.ClientSession":
        import aiohttp  # lazy: start-up time

        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            connect, read = self._retry_policy.connect_timeout_seconds, self._retry_policy.read_timeout_seconds
            self._session = aiohttp.ClientSession(
                headers=self._headers,
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=read),
            )
            self._loop, self._proxy = loop, _get_proxy(self.url)
        return self._session

    @contextmanager
    def _translate_errors(self) -> Generator[None, None, None]:
        """Raise failures of the connection as a `ModelError`."""
        import aiohttp  # lazy: as above

        try:
            yield
        except aiohttp.InvalidURL as error:
            raise ModelError(f"{self.url!r} is not a URL. Use one such as http://127.0.0.1:8080/v1") from error
        except aiohttp.ClientConnectorError as error:
            cause = error.os_error.strerror or error.os_error
            message = f"Cannot reach the model server at {self.url} ({cause}). Is it running, and is the address right?"
            raise ModelUnavailable(message) from error
        except TimeoutError as error:
            raise ModelUnavailable(f"The model server at {self.url} did not answer in time.") from error
        except aiohttp.ClientError as error:
            reason = self.redact_key(str(error)) or type(error).__name__
            raise ModelUnavailable(f"The connection to {self.url} broke: {reason}") from error

    async def _send_with_retries(
        self,
        body: bytes,
        url: str = "",
        headers: Mapping[str, str] | None = None,
        response_headers: dict[str, str] | None = None,
        method: HttpMethod = "POST",
    ) -> "aiohttp.ClientResponse":
        """Return a response with status 200; retry as the policy allows."""
        import aiohttp  # lazy: as above

        not_connected = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
        url = url or self.url
        retryable_statuses = RETRYABLE_STATUSES if response_headers is None else RELAYED_RETRIES
        attempt = 0
        while True:
            attempt += 1
            last = attempt >= self._retry_policy.max_attempts
            try:
                request = self._get_session().request  # which sets the proxy
                response = await request(
                    method, url, data=body or None, headers=headers, allow_redirects=False, proxy=self._proxy
                )
            except (aiohttp.ClientConnectionError, TimeoutError) as failure:
                if last or (response_headers is not None and not isinstance(failure, not_connected)):
                    raise
                await asyncio.sleep(self._get_wait_seconds(attempt))
                continue
            if response_headers is not None:
                response_headers.clear()
                named = ((name.lower(), value) for name, value in response.headers.items() if value.isascii())
                response_headers |= {name: value for name, value in named if _RELAYED_RESPONSE_HEADERS.fullmatch(name)}
            if response.status == 200:
                return response
            raw = await self.read_body(response)
            retry_after = response.headers.get("retry-after", "")
            wait = self._get_wait_seconds(attempt, retry_after)
            is_final = response.status not in retryable_statuses or response.headers.get("x-should-retry") == "false"
            if is_final or last or wait > self._retry_policy.max_wait_seconds:
                error = self._to_model_error(response.status, raw, retry_after, url)
                error.status, error.retry_after = response.status, retry_after
                error.response = self.redact_key(raw.decode("utf-8", "replace")).encode()
                raise error
            await asyncio.sleep(wait)

    def _get_wait_seconds(self, attempt: int, retry_after: str = "") -> float:
        """Return the seconds the server asks to wait in `Retry-After`, a number or a date, else an exponential backoff."""
        if (seconds := parse_retry_after(retry_after)) is not None:
            return seconds
        policy = self._retry_policy
        return get_backoff_seconds(attempt, policy.initial_wait_seconds, policy.max_wait_seconds)

    def _to_model_error(self, status: int, raw: bytes, retry_after: str, url: str) -> ModelError:
        message, has_message = self._get_server_message(raw)
        server = f"The model server at {url}"
        if status in (401, 403):
            return ModelRefusedKey(f"{server} refused the key (HTTP {status}): {message}")
        if status == 404:
            nothing = f"There is nothing at {url} (HTTP 404).{f' {self._path_hint}' if url == self.url else ''}"
            return ModelNotFound(f"{server} answered HTTP 404: {message}" if has_message else nothing)
        if status in (400, 413, 422, 500) and CONTEXT_OVERFLOW_PATTERN.search(message):
            return ContextFull(f"The messages do not fit into the model's context window: {message}")
        if 300 <= status < 400:
            return ModelError(f"{server} redirects elsewhere (HTTP {status}). Use the final URL.")
        if status in RETRYABLE_STATUSES:
            wait_note = f" It asks to wait {retry_after} s." if retry_after else ""
            return ModelUnavailable(f"{server} answered HTTP {status}: {message}{wait_note}")
        return ModelRejected(f"{server} refused the request (HTTP {status}): {message}")

    def _get_server_message(self, raw: bytes) -> tuple[str, bool]:
        """Return the redacted message of the server, and whether it was a JSON error."""
        body = None
        with suppress(orjson.JSONDecodeError):
            body = orjson.loads(raw)
        error = body.get("error", body) if isinstance(body, dict) else None
        message = error.get("message") or error.get("detail") if isinstance(error, dict) else error
        has_message = isinstance(message, str) and bool(message)
        text = message if has_message else raw[:300].decode("utf-8", "replace").strip() or "(no text)"
        return self.redact_key(str(text)[:600]), has_message

    def redact_key(self, text: str) -> str:
        """Return `text` without the API key."""
        return text.replace(self._api_key, "***") if len(self._api_key) > 3 else text

    def build_not_json_error(self, raw: bytes) -> ModelError:
        """Return the error for a response that is not JSON."""
        start = self.redact_key(raw[:120].decode("utf-8", "replace"))
        return ModelError(f"The response of {self.url} is not JSON ({start!r}). {self._path_hint}")


def to_model_error(error: Any, endpoint: Endpoint) -> ModelError:
    """Translate an error that a server sent with status 200."""
    reason = error.get("message") if isinstance(error, dict) else error
    text = endpoint.redact_key(reason[:600] if isinstance(reason, str) and reason else preview_json(error, 600))
    kinds = {str(error.get("type")), str(error.get("code"))} if isinstance(error, dict) else set()
    is_rate_limit = not kinds.isdisjoint(_RATE_LIMIT_ERRORS)  # its message may be "too many tokens"
    if not is_rate_limit and CONTEXT_OVERFLOW_PATTERN.search(f"{text} {preview_json(error, 5000)}"):
        return ContextFull(f"The messages do not fit into the model's context window: {text}")
    message = f"The model server at {endpoint.url} broke off: {text}"
    if is_rate_limit or kinds & _TEMPORARY_ERRORS:
        return ModelUnavailable(message, status=429 if is_rate_limit else None)
    return ModelRejected(message)


def parse_chunk(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a streamed event, {} for other JSON. Raises: `ModelError` for anything else."""
    try:
        chunk = parse_reply_json(line)
    except ValueError as error:
        raise ModelError(f"The server streamed invalid JSON: {line[:120]!r}") from error
    return chunk if isinstance(chunk, dict) else {}


def parse_event(payload: bytes, add_event: Callable[[dict[str, Any]], list[ModelEvent]]) -> list[ModelEvent]:
    """Return the parts that `add_event` makes of a streamed event. Raises: `ModelError` for a malformed one."""
    event = parse_chunk(payload) if payload != DONE else {}
    try:
        return add_event(event)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ModelError(f"The server streamed a malformed event: {preview_json(event, 120)}") from error


def _list_payloads(lines: Iterable[bytes]) -> list[bytes]:
    """Return the payloads of the `data:` lines."""
    return [line[5:].strip() for line in lines if line.startswith(b"data:")]


def _join_halves(payloads: list[bytes], first_half: bytes) -> bytes:
    r"""Join the halves of characters that two texts share, in place; return a first half without its second one.

    Servers that cut texts into UTF-16 units send `"\ud83d"`, then `"\ude00"`.
    """
    for index, payload in enumerate(payloads):
        if first_half and (second := _SECOND_HALF.search(payload)):
            payload = payload[: second.end()] + first_half + payload[second.end() :]
            first_half = b""
        if first := _FIRST_HALF.search(payload):
            before = payload[: first.start()]
            if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:  # else it is a backslash, then a text
                first_half, payload = first[0], before + payload[first.end() :]
        payloads[index] = payload
    return first_half


def _get_proxy(url: str) -> str | None:
    """Return the proxy for a URL from the environment."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1" or proxy_bypass(host):
        return None
    return getproxies().get(parts.scheme)
