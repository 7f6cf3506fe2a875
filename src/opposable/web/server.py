"""The service: its application, and the server that runs it until it is told to stop."""

import asyncio
import contextlib
import gc
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import version
from types import FrameType

import uvicorn
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from opposable.domain.errors import BadInput, OpposableError
from opposable.models.base import Model
from opposable.service.service import Service
from opposable.web.api.routes import add_routes
from opposable.web.application import install_admin
from opposable.web.errors import ApiError
from opposable.web.errors import to_api_error as api_translated
from opposable.web.gateway.routes import create_gateway_router
from opposable.web.middleware.authentication import AuthenticationMiddleware, is_loopback
from opposable.web.openai_errors import GatewayError, to_gateway_error

API_KEY_VARIABLE = "OPPOSABLE_SERVE_KEY"
MAX_BODY_BYTES = 32 * 1024 * 1024
GATEWAY_PREFIX = "/v1/"
GRACE_SECONDS = 5
"""Seconds that answers under way have when the service is told to stop."""


def create_app(
    backend: Service | Mapping[str, Model], *, api_key: str = "", max_body_bytes: int = MAX_BODY_BYTES
) -> FastAPI:
    """The application in front of a service, or of models alone by the names that clients call them (see `names_of`).

    With an `api_key` every request but `/healthz` must bear it. `largest_body` is in bytes. Service and models stay
    the caller's: close them when the application is done.
    """
    app = FastAPI(title="Opposable", version=version("opposable"), docs_url=None, redoc_url=None)
    if isinstance(backend, Service):
        app.state.service = backend
        install_admin(app, backend, api_key=api_key, max_body_bytes=max_body_bytes)
        add_routes(app)
        app.include_router(create_gateway_router(backend.models, max_body_bytes))
    else:
        app.include_router(create_gateway_router(backend, max_body_bytes))
        app.add_middleware(AuthenticationMiddleware, api_key=api_key)
    kinds = (GatewayError, ApiError, OpposableError, RequestValidationError, ValidationError, HTTPException, Exception)
    for kind in kinds:
        app.add_exception_handler(kind, _handle_error)
    return app


def get_model_names(requested_name: str, model: Model) -> list[str]:
    """The names clients may call a model by: the one it was asked for by, unless that is a URL, and its own."""
    return list(dict.fromkeys([model.name] if "://" in requested_name else [requested_name, model.name]))


def read_api_key(variable: str) -> str:
    """The API key that an environment variable holds; "" where none is set.

    Raises: `BadInput` where a variable other than OPPOSABLE_SERVE_KEY is named and holds nothing.
    """
    key = os.environ.get(variable, "").strip()
    if not key and variable != API_KEY_VARIABLE:
        raise BadInput(f"The environment variable {variable} is to hold the API key, but is not set.")
    return key


def get_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the fastest event loop there is here; None for asyncio's own."""
    try:
        import uvloop
    except ImportError:  # there is none for Windows
        return None
    return uvloop.new_event_loop


def require_key_unless_loopback(host: str, api_key: str, *, has_stored_keys: bool = False) -> None:
    """Refuse to serve others than this machine without a key; `keys` says that the store has some. Raises: `BadInput`."""
    if not api_key and not has_stored_keys and not is_loopback(host):
        raise BadInput(
            f"Serving on {host} lets others in, which needs an API key: make one with `opposable keys create`, set "
            f"{API_KEY_VARIABLE}, or name the variable that holds it with --api-key-env. Without a key, use --host 127.0.0.1."
        )


async def serve(
    app: FastAPI,
    host: str,
    port: int,
    on_ready: Callable[[str], None] = lambda url: None,
    *,
    listening_socket: socket.socket | None = None,
) -> float:
    """Serve until SIGINT or SIGTERM; `on_ready` is told the base URL. Port 0 takes a free one.

    Returns how many seconds ago it was told to stop. `listening` is a socket that `listen` made. Raises: `BadInput`
    where the address cannot be had.
    """
    taken = listening_socket or open_listening_socket(host, port)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    gc.collect()
    gc.freeze()  # what lives as long as the service need not be looked at by every collection
    server = _Server(config, lambda: on_ready(get_base_url(host, taken)))
    await server.serve([taken])
    return time.monotonic() - server.stopped_at


def get_base_url(host: str, listening_socket: socket.socket) -> str:
    """The base URL of what listens there."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listening_socket.getsockname()[1]}/v1"


@contextlib.asynccontextmanager
async def serve_in_background(app: FastAPI, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """The application served beside other work, for as long as the block lasts; its base URL.

    Signals are left to whoever runs the loop. Raises: `BadInput` where the address cannot be had.
    """
    listening = open_listening_socket(host, port)
    ready = asyncio.Event()
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, ws="none", timeout_graceful_shutdown=GRACE_SECONDS
    )
    server = _Server(config, ready.set, signals=())
    serving = asyncio.create_task(server.serve([listening]))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield get_base_url(host, listening)
    finally:
        waiting.cancel()
        server.should_exit = True
        await serving


class _Server(uvicorn.Server):
    """uvicorn's server, which ends quietly where its own raises the signal that stopped it once more."""

    def __init__(
        self,
        config: uvicorn.Config,
        on_ready: Callable[[], None],
        signals: Sequence[int] = (signal.SIGINT, signal.SIGTERM),
    ) -> None:
        super().__init__(config)
        self._signals = signals
        self.stopped_at = time.monotonic()
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.stopped_at = time.monotonic()
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        try:
            for number in self._signals:
                loop.add_signal_handler(number, self.handle_exit, number, None)
        except (NotImplementedError, RuntimeError):  # no such handlers on Windows, or outside the main thread
            yield
            return
        try:
            yield
        finally:
            for number in self._signals:
                loop.remove_signal_handler(number)


def open_listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one. Raises: `BadInput` where the address cannot be had."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        said = str(getattr(error, "strerror", None) or error).partition(" (while")[0]
        raise BadInput(f"Cannot listen on {host}:{port}: {said}. Choose others with --host and --port.") from error
    # What is accepted inherits this; without it each piece of a stream waits 40 ms for the one before to be confirmed.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


async def _handle_error(request: Request, error: Exception) -> Response:
    """Any error in the shape of its routes: OpenAI's for the gateway, our own for the others."""
    if not request.url.path.startswith(GATEWAY_PREFIX) and hasattr(request.app.state, "service"):
        return api_translated(error).to_response()
    if isinstance(error, HTTPException):
        said = f"{HTTPStatus(error.status_code).phrase}: {request.method} {request.url.path}"
        return GatewayError(error.status_code, said, headers=dict(error.headers or {})).to_response()
    return to_gateway_error(error).to_response()
