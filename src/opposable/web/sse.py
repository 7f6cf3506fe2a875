"""Answers for as long as the client is there: whole ones, and streams of server-sent events."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Protocol, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

T = TypeVar("T")

KEEPALIVE_SECONDS = 10.0
"""Seconds without an event after which a comment is sent, so that nobody on the way takes the stream for dead."""

KEEPALIVE_COMMENT = b": still working\n\n"
SSE_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


class ErrorResponse(Protocol):
    """An error in a client's own format."""

    def to_json(self) -> bytes:
        """As JSON."""
        ...

    def to_response(self) -> Response:
        """As an answer of its own."""
        ...


class ClientDisconnected(Exception):
    """The client left before its answer was there."""


class EventStream(Response):
    """A stream of events, made by `events` (bytes of one or more whole events each).

    An error before the first event is answered with its status; a later one is the last event, in `told`'s words. A
    client that leaves cancels `events` at once. `on_end` is called when nothing more is sent, whatever the reason.
    """

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        to_error_response: Callable[[Exception], ErrorResponse],
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self._on_end = on_end
        self._events = events
        self._to_error_response = to_error_response
        self._pending_events: list[bytes] = []
        self._update_signal = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events as they are made."""
        making = asyncio.create_task(self._collect_events())
        leaving = asyncio.create_task(wait_for_disconnect(receive))
        for task in (making, leaving):
            task.add_done_callback(lambda _: self._update_signal.set())
        try:
            await self._send(scope, receive, send, making, leaving)
        finally:
            making.cancel()
            leaving.cancel()
            await asyncio.gather(making, leaving, return_exceptions=True)
            self._on_end()

    async def _collect_events(self) -> None:
        async with aclosing(self._events) as events:
            async for event in events:
                self._pending_events.append(event)
                self._update_signal.set()

    async def _send(
        self, scope: Scope, receive: Receive, send: Send, producer: asyncio.Task[None], disconnect: asyncio.Task[None]
    ) -> None:
        """What is made while the client is there; a comment where nothing is for too long."""
        loop = asyncio.get_running_loop()
        started = False
        while True:
            reminder = loop.call_later(KEEPALIVE_SECONDS, self._update_signal.set)
            await self._update_signal.wait()
            reminder.cancel()
            self._update_signal.clear()
            if disconnect.done():
                return
            ended = producer.done()
            made = b"".join(self._pending_events)
            self._pending_events.clear()
            if ended and (error := producer.exception()):
                wire = self._to_error_response(error if isinstance(error, Exception) else RuntimeError(str(error)))
                if not started and not made:
                    await wire.to_response()(scope, receive, send)
                    return
                made += b"data: " + wire.to_json() + b"\n\n"
            if not started:
                await send({"type": "http.response.start", "status": 200, "headers": SSE_HEADERS})
                started = True
            body = made if made or ended else KEEPALIVE_COMMENT
            await send({"type": "http.response.body", "body": body, "more_body": not ended})
            if ended:
                return


async def run_while_connected(receive: Receive, coroutine: Coroutine[None, None, T]) -> T:
    """The outcome of `work`, which is cancelled when the client leaves. Raises: `Gone` then."""
    working = asyncio.create_task(coroutine)
    leaving = asyncio.create_task(wait_for_disconnect(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnected
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def wait_for_disconnect(receive: Receive) -> None:
    """Returns when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
