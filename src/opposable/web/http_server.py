"""The HTTP server that runs an application."""

import asyncio
import contextlib
import gc
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from types import FrameType

import uvicorn
from fastapi import FastAPI

from opposable.domain.errors import BadInput
from opposable.service.stop_signals import get_stop_signals
from opposable.web.http_protocol import TimedHttpProtocol

GRACE_SECONDS = 5
"""Seconds that a stopping server waits for active requests."""

KEEP_ALIVE_SECONDS = 75
"""Seconds that a connection without a request stays open: longer than clients and load balancers reuse one (5 to 60).

Otherwise a request is lost that is sent just when the server closes its connection.
"""


async def serve(
    app: FastAPI,
    host: str,
    port: int,
    on_ready: Callable[[str], None] = lambda url: None,
    *,
    listening_socket: socket.socket | None = None,
) -> float:
    """Serve until SIGINT, SIGTERM or SIGHUP.

    Args:
        app: The application.
        host: The address to listen on.
        port: The port to listen on; 0 selects a free one.
        on_ready: Called with the base URL.
        listening_socket: A socket from `open_listening_socket`, by default a new one.

    Returns:
        The seconds since the signal to stop.

    Raises:
        BadInput: If the address cannot be used.
    """
    server_socket = listening_socket or open_listening_socket(host, port)
    gc.collect()
    gc.freeze()  # collections need not scan objects that live as long as the server
    server = _Server(_create_config(app), lambda: on_ready(get_base_url(host, server_socket)), get_stop_signals())
    await server.serve([server_socket])
    return time.monotonic() - server.stopped_at


def get_base_url(host: str, listening_socket: socket.socket) -> str:
    """Return the base URL of the gateway on a socket."""
    url_host = f"[{host}]" if ":" in host else host
    return f"http://{url_host}:{listening_socket.getsockname()[1]}/v1"


@contextlib.asynccontextmanager
async def serve_in_background(app: FastAPI) -> AsyncIterator[str]:
    """Serve the application on a free port of localhost while the block runs; the value is the base URL.

    Signals are not handled.
    """
    host = "127.0.0.1"
    listening_socket = open_listening_socket(host, 0)
    ready = asyncio.Event()
    server = _Server(_create_config(app), ready.set)
    server_task = asyncio.create_task(server.serve([listening_socket]))
    ready_task = asyncio.create_task(ready.wait())
    await asyncio.wait({server_task, ready_task}, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield get_base_url(host, listening_socket)
    finally:
        ready_task.cancel()
        server.should_exit = True
        await server_task


def _create_config(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=TimedHttpProtocol,
        log_level="warning",
        log_config=None,  # the log of the service formats its records
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )


class _Server(uvicorn.Server):
    """A uvicorn server that calls `on_ready` and does not raise the stop signal again."""

    def __init__(
        self,
        config: uvicorn.Config,
        on_ready: Callable[[], None],
        signals: Sequence[int] = (),
    ) -> None:
        super().__init__(config)
        self._signals = signals
        self.stopped_at = time.monotonic()
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if self.force_exit:  # a second Ctrl-C: uvicorn cancels the open application, and logs a traceback
            await self.lifespan.shutdown()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.stopped_at = time.monotonic()
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        try:
            for number in self._signals:
                loop.add_signal_handler(number, self.handle_exit, number, None)
        except (NotImplementedError, RuntimeError):  # not supported on Windows or outside the main thread
            yield
            return
        try:
            yield
        finally:
            for number in self._signals:
                loop.remove_signal_handler(number)


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Open a socket that listens on an address; port 0 selects a free one.

    Raises:
        BadInput: If the address cannot be used.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening_socket = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        reason = str(getattr(error, "strerror", None) or error).partition(" (while")[0]
        raise BadInput(
            f"Cannot listen on {host}:{port}: {reason}. Choose another address with --host and --port."
        ) from error
    # Connections inherit this option. Without it, each chunk of a stream waits 40 ms for the last acknowledgement.
    listening_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening_socket
