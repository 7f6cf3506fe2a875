"""The HTTP protocol of the server: uvicorn's, with a limit on how slowly a request may arrive."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

READ_SECONDS = 30.0
"""Seconds that a client has for its headers, and between parts of its body."""

MIN_BYTES_PER_SECOND = 1000
"""The lowest rate of a request that takes longer than `READ_SECONDS`."""

TIMEOUT_RESPONSE = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class TimedHttpProtocol(HttpToolsProtocol):
    """Closes connections whose requests arrive too slowly, and connections without a request.

    A client that sends its headers or its body byte by byte cannot hold a connection.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._is_receiving = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give the client time for its first request."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Extend the time of a client that sends enough."""
        now = self.loop.time()
        self._deadline = min(now + READ_SECONDS, self._deadline + len(data) / MIN_BYTES_PER_SECOND)
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Give the client time for the next request of its connection."""
        super().on_message_begin()
        self._is_receiving = True
        if self._timer is None:
            self._start_timer()

    def on_message_complete(self) -> None:
        """Stop the timer: the request is complete."""
        super().on_message_complete()
        self._is_receiving = False
        self._stop_timer()

    def _start_timer(self) -> None:
        self._deadline = self.loop.time() + READ_SECONDS
        self._timer = self.loop.call_at(self._deadline, self._check_deadline)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_deadline(self) -> None:
        """Close the connection, unless the client has got more time or the application is what is slow."""
        if self.flow.read_paused:
            self._deadline = self.loop.time() + READ_SECONDS
        if self.loop.time() < self._deadline:
            self._timer = self.loop.call_at(self._deadline, self._check_deadline)
            return
        has_started = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if self._is_receiving and not has_started and not self.transport.is_closing():
            self.transport.write(TIMEOUT_RESPONSE)
        self.transport.close()
