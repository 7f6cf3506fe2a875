"""Server-sent events, and work that a disconnect of the client cancels."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from opposable.domain.errors import ModelUnavailable
from opposable.web.errors import ErrorResponse

T = TypeVar("T")

KEEPALIVE_SECONDS = 10.0
"""Seconds without an event after which a comment is sent, so that proxies do not close the stream."""

CLIENT_CLOSED_REQUEST = Response(status_code=499)
"""The response, to a request whose client disconnected."""

MAX_PENDING_BYTES = 4 * 1024 * 1024
"""Bytes of events that wait for a client that does not read. `events` is read on once the client does."""

KEEPALIVE_COMMENT = b": still working\n\n"
DONE_EVENT = b"data: [DONE]\n\n"
"""The last event of a stream of a run or a chat completion."""
SSE_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


_LINE_ENDS = {end.encode(): f"\\u{ord(end):04x}".encode() for end in "\x85\u2028\u2029"}
"""The characters outside of ASCII at which clients such as httpx end a line, which JSON does not escape."""


def escape_line_ends(raw: bytes) -> bytes:
    """Return the JSON of an event as every client reads it as one line."""
    for end, escaped in _LINE_ENDS.items():
        raw = raw.replace(end, escaped)
    return raw


class ClientDisconnected(Exception):
    """The client disconnected before its response was ready."""


class SseResponse(Response):
    """A stream of server-sent events.

    An error before the first event becomes an error response; a later error becomes the last event. When the client
    disconnects, `events` is closed at once.

    Args:
        events: Yields one or more whole events as bytes.
        to_error_response: Maps an error of `events` to the format of the API.
        on_end: Called at the end of the stream, whatever the reason.
        format_error: Returns the last event of a stream that fails, from the JSON of its error.
        headers: More headers of the response, in lower case. They may be set until the first event.
    """

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        to_error_response: Callable[[Exception], ErrorResponse],
        on_end: Callable[[], None] = lambda: None,
        format_error: Callable[[bytes], bytes] = lambda error: b"data: " + error + b"\n\n",
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        self._format_error = format_error
        self._more_headers = headers
        self._is_started = False
        self._on_end = on_end
        self._events = events
        self._to_error_response = to_error_response
        self._pending_events: list[bytes] = []
        self._pending_bytes = 0
        self._sent_signal = asyncio.Event()
        self._update_signal = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events as they are produced."""
        producer = asyncio.create_task(self._collect_events())
        disconnect = asyncio.create_task(wait_for_disconnect(receive))
        for task in (producer, disconnect):
            task.add_done_callback(lambda _: self._update_signal.set())
        try:
            await self._send(scope, receive, send, producer, disconnect)
        except asyncio.CancelledError:  # the server stops
            error_response = self._to_error_response(ModelUnavailable("The service is stopping. Try again."))
            if not self._is_started:
                await error_response.to_response()(scope, receive, send)
                return
            body = self._format_error(error_response.to_json())
            await send({"type": "http.response.body", "body": body, "more_body": False})
        finally:
            producer.cancel()
            disconnect.cancel()
            await asyncio.gather(producer, disconnect, return_exceptions=True)
            self._on_end()

    async def _collect_events(self) -> None:
        async with aclosing(self._events) as events:
            async for event in events:
                self._pending_events.append(event)
                self._pending_bytes += len(event)
                self._update_signal.set()
                while self._pending_bytes > MAX_PENDING_BYTES:
                    self._sent_signal.clear()
                    await self._sent_signal.wait()

    async def _send(
        self, scope: Scope, receive: Receive, send: Send, producer: asyncio.Task[None], disconnect: asyncio.Task[None]
    ) -> None:
        """Send events until the producer ends or the client disconnects.

        In long pauses, send comments.
        """
        loop = asyncio.get_running_loop()
        while True:
            keepalive_timer = loop.call_later(KEEPALIVE_SECONDS, self._update_signal.set)
            await self._update_signal.wait()
            keepalive_timer.cancel()
            self._update_signal.clear()
            if disconnect.done():
                return
            is_ended = producer.done()
            body = b"".join(self._pending_events)
            self._pending_events.clear()
            self._pending_bytes = 0
            self._sent_signal.set()
            if is_ended and (error := producer.exception()):
                error_response = self._to_error_response(
                    error if isinstance(error, Exception) else RuntimeError(str(error))
                )
                if not self._is_started and not body:
                    await error_response.to_response()(scope, receive, send)
                    return
                body += self._format_error(error_response.to_json())
            if not self._is_started:
                more = [(name.encode(), value.encode("latin-1")) for name, value in self._more_headers.items()]
                await send({"type": "http.response.start", "status": 200, "headers": SSE_HEADERS + more})
                self._is_started = True
            if not body and not is_ended:
                body = KEEPALIVE_COMMENT
            await send({"type": "http.response.body", "body": body, "more_body": not is_ended})
            if is_ended:
                return


async def run_while_connected(receive: Receive, coroutine: Coroutine[None, None, T]) -> T:
    """Return the result of a coroutine, and cancel it when the client disconnects.

    Raises:
        ClientDisconnected: If the client disconnected first.
    """
    request_task = asyncio.current_task()
    assert request_task is not None
    is_disconnected = False

    def cancel_request(watcher: asyncio.Task[None]) -> None:
        nonlocal is_disconnected
        if not watcher.cancelled():
            is_disconnected = True
            request_task.cancel()

    disconnect = asyncio.create_task(wait_for_disconnect(receive))
    disconnect.add_done_callback(cancel_request)
    try:
        return await coroutine
    except asyncio.CancelledError:
        if is_disconnected and request_task.uncancel() == 0:
            raise ClientDisconnected from None
        raise  # the server stops
    finally:
        disconnect.remove_done_callback(cancel_request)
        disconnect.cancel()


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
