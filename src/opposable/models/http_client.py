"""Requests to model servers over HTTP: one session, retries, time-outs, errors in plain sentences."""

import asyncio
import email.utils
import re
import time
from collections.abc import AsyncGenerator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson

from opposable.domain.backoff import get_backoff_seconds
from opposable.domain.errors import (
    ContextFull,
    ModelError,
    ModelNotFound,
    ModelRefusedKey,
    ModelRejected,
    ModelUnavailable,
)

CONTEXT_OVERFLOW_PATTERN = re.compile(
    r"context.{0,12}(length|size|window)|exceed_context_size|maximum context|too many tokens|prompt is too long",
    re.IGNORECASE,
)
RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a request is waited for and how often it is tried again.

    `read` is the longest silence between two pieces, in seconds. A server's `Retry-After` is honoured up to
    `longest_wait` seconds; a longer one ends the request with an error that says so.
    """

    max_attempts: int = 3
    connect_timeout_seconds: float = 10.0
    read_timeout_seconds: float = 300.0
    initial_wait_seconds: float = 0.5
    max_wait_seconds: float = 60.0


class Endpoint:
    """One URL that JSON is posted to, with its headers. Safe for many requests at once.

    `key` is only for taking the secret out of whatever the server says. `path_hint` completes the sentence told when
    the server has no such path.
    """

    def __init__(
        self, url: str, headers: dict[str, str], api_key: str, retry_policy: RetryPolicy, path_hint: str
    ) -> None:
        self.url = url
        self._headers = {"content-type": "application/json", **headers}
        self._api_key = api_key
        self._retry_policy = retry_policy
        self._path_hint = path_hint
        self._session: aiohttp.ClientSession | None = None
        self._proxy: str | None = None

    async def post(self, body: bytes) -> Any:
        """The server's JSON answer. Raises: `ModelError` kinds."""
        async with self._open_response(body) as response:
            raw = await response.read()
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise ModelRejected(self._format_not_json_message(raw)) from error

    async def stream_data(self, body: bytes) -> AsyncGenerator[bytes, None]:
        """The payloads of the server's `data:` lines as they come, `[DONE]` left out. Raises: `ModelError` kinds."""
        async with self._open_response(body) as response:
            kind = response.content_type
            if kind != "text/event-stream" and kind == "application/json":
                yield await response.read()
                return
            if kind == "text/html":
                raise ModelRejected(self._format_not_json_message(await response.content.read(300)))
            rest = b""
            async for chunk in response.content.iter_any():
                lines = (rest + chunk if rest else chunk).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    if line.startswith(b"data:") and (payload := line[5:].strip()) != b"[DONE]":
                        yield payload
            if rest.startswith(b"data:") and (payload := rest[5:].strip()) != b"[DONE]":
                yield payload

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    def _get_session(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            patience = self._retry_policy
            self._session = aiohttp.ClientSession(
                headers=self._headers,
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=patience.connect_timeout_seconds, sock_read=patience.read_timeout_seconds
                ),
            )
            self._proxy = _get_proxy(self.url)
        return self._session

    def _open_response(self, body: bytes) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return _translate_errors(self._post_with_retries(body), self)

    async def _post_with_retries(self, body: bytes) -> aiohttp.ClientResponse:
        """A response with status 200, after as many tries as it takes and patience allows."""
        attempt = 0
        while True:
            attempt += 1
            last = attempt >= self._retry_policy.max_attempts
            try:
                session = self._get_session()
                response = await session.post(self.url, data=body, allow_redirects=False, proxy=self._proxy)
            except (aiohttp.ClientConnectionError, TimeoutError):
                if last:
                    raise
                await asyncio.sleep(self._get_wait_seconds(attempt, None))
                continue
            if response.status == 200:
                return response
            raw = await response.read()
            wait = self._get_wait_seconds(attempt, response.headers.get("retry-after"))
            if response.status not in RETRYABLE_STATUSES or last or wait > self._retry_policy.max_wait_seconds:
                raise self._to_model_error(response.status, raw, response.headers.get("retry-after"))
            await asyncio.sleep(wait)

    def _get_wait_seconds(self, attempt: int, retry_after: str | None) -> float:
        """Return the seconds to wait: what the server asks for, else an exponential backoff."""
        if retry_after is not None and (seconds := _parse_retry_after(retry_after)) is not None:
            return seconds
        return get_backoff_seconds(
            attempt, self._retry_policy.initial_wait_seconds, self._retry_policy.max_wait_seconds
        )

    def _to_model_error(self, status: int, raw: bytes, retry_after: str | None) -> ModelError:
        said, spoken = self._get_server_message(raw)
        if status in (401, 403):
            return ModelRefusedKey(f"The model server at {self.url} refused the key (HTTP {status}): {said}")
        if status == 404 and not spoken:
            return ModelNotFound(f"There is nothing at {self.url} (HTTP 404). {self._path_hint}")
        if status == 404:
            return ModelNotFound(f"The model server at {self.url} answered HTTP 404: {said}")
        if status in (400, 413, 422, 500) and CONTEXT_OVERFLOW_PATTERN.search(said):
            return ContextFull(f"The messages do not fit into the model's context window: {said}")
        if 300 <= status < 400:
            return ModelRejected(
                f"The model server at {self.url} redirects elsewhere (HTTP {status}); give the final URL."
            )
        if status in RETRYABLE_STATUSES:
            asked = f" It asks to wait {retry_after} s." if retry_after else ""
            return ModelUnavailable(
                f"The model server at {self.url} answered HTTP {status} in {self._retry_policy.max_attempts} tries: {said}{asked}"
            )
        return ModelRejected(f"The model server at {self.url} refused the request (HTTP {status}): {said}")

    def _get_server_message(self, raw: bytes) -> tuple[str, bool]:
        """The server's own sentence without our key, and whether it was told as a JSON error."""
        try:
            told = orjson.loads(raw)
        except orjson.JSONDecodeError:
            told = None
        error = told.get("error", told) if isinstance(told, dict) else None
        message = error.get("message") or error.get("detail") if isinstance(error, dict) else error
        spoken = isinstance(message, str) and bool(message)
        text = message if spoken else raw[:300].decode("utf-8", "replace").strip() or "(no text)"
        return self.redact_key(str(text)[:600]), spoken

    def redact_key(self, text: str) -> str:
        """`text` without the key."""
        return text.replace(self._api_key, "***") if len(self._api_key) > 3 else text

    def _format_not_json_message(self, raw: bytes) -> str:
        start = self.redact_key(raw[:120].decode("utf-8", "replace"))
        return f"{self.url} answered something that is no JSON ({start!r}). {self._path_hint}"


@asynccontextmanager
async def _translate_errors(
    pending_response: Awaitable[aiohttp.ClientResponse], endpoint: Endpoint
) -> AsyncGenerator[aiohttp.ClientResponse, None]:
    """The response, released at the end; the transport's errors told as ours."""
    response = None
    try:
        response = await pending_response
        yield response
    except aiohttp.InvalidURL as error:
        raise ModelRejected(f"{endpoint.url!r} is no URL; one looks like http://127.0.0.1:8080/v1") from error
    except (aiohttp.ClientConnectorError, aiohttp.ClientConnectorDNSError) as error:
        raise ModelUnavailable(
            f"Cannot reach the model server at {endpoint.url} ({error.os_error.strerror or error.os_error}). "
            "Is it running, and is the address right?"
        ) from error
    except TimeoutError as error:
        raise ModelUnavailable(f"The model server at {endpoint.url} did not answer in time.") from error
    except aiohttp.ClientError as error:
        told = endpoint.redact_key(str(error)) or type(error).__name__
        raise ModelUnavailable(f"The connection to {endpoint.url} broke: {told}") from error
    finally:
        if response is not None:
            response.close() if not response.content.at_eof() else response.release()


def _get_proxy(url: str) -> str | None:
    """The proxy that the environment names for a URL. Asked once: aiohttp's `trust_env` asks for every request."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1" or proxy_bypass(host):
        return None
    return getproxies().get(parts.scheme)


def _parse_retry_after(retry_after: str) -> float | None:
    """`Retry-After` in seconds from now, given as a number or an HTTP date."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
