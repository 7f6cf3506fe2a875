"""The application of the service, and the HTTP server that runs it."""

import asyncio
import contextlib
import gc
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
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
from opposable.web.api_docs import install_api_docs
from opposable.web.application import ServedPart, install_admin
from opposable.web.errors import ApiError, to_api_error
from opposable.web.gateway.routes import create_gateway_router, create_health_router
from opposable.web.middleware.authentication import AuthenticationMiddleware, is_loopback
from opposable.web.openai_errors import GatewayError, to_gateway_error

API_KEY_VARIABLE = "OPPOSABLE_SERVE_KEY"
MAX_BODY_BYTES = 32 * 1024 * 1024
GATEWAY_PREFIX = "/v1/"
GRACE_SECONDS = 5
"""Seconds that a stopping server waits for active requests."""


HANDLED_ERRORS = (
    GatewayError,
    ApiError,
    OpposableError,
    RequestValidationError,
    ValidationError,
    HTTPException,
    Exception,
)


def create_app(
    backend: Service | Mapping[str, Model],
    *,
    api_key: str = "",
    max_body_bytes: int = MAX_BODY_BYTES,
    only: ServedPart | None = None,
    allowed_models: Mapping[str, Collection[str]] | None = None,
) -> FastAPI:
    """Create the application for a service, or only the gateway for models.

    Args:
        backend: A service, or models by the names that clients use (see `get_model_names`). The caller closes it.
        api_key: The key that every request except `/healthz` must carry, "" for none.
        max_body_bytes: The largest accepted request body.
        only: The only part of a service that is served, with its keys and health; None for all.
        allowed_models: The models that an API key may use, by the name of the key. Other keys may use all.
    """
    app = FastAPI(
        title="Opposable",
        version=version("opposable"),
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    if isinstance(backend, Service):
        app.state.service = backend
        install_admin(app, backend, api_key=api_key, max_body_bytes=max_body_bytes, only=only)
        if only in (None, "agents"):
            add_routes(app)
        if only in (None, "gateway"):
            app.include_router(create_gateway_router(backend.models, max_body_bytes, backend, allowed_models))
    else:
        app.include_router(create_gateway_router(backend, max_body_bytes))
        app.add_middleware(AuthenticationMiddleware, api_key=api_key)
    app.include_router(create_health_router())
    install_api_docs(app)
    for error_type in HANDLED_ERRORS:
        app.add_exception_handler(error_type, _handle_error)
    return app


def get_model_names(requested_name: str, model: Model) -> list[str]:
    """Return the names that clients can use for a model.

    These are the requested name, unless it is a URL, and the model's own name.
    """
    return list(dict.fromkeys([model.name] if "://" in requested_name else [requested_name, model.name]))


def read_api_key(variable: str) -> str:
    """Return the API key in an environment variable, "" if it is not set.

    Raises:
        BadInput: If the variable is not set and not the default, OPPOSABLE_SERVE_KEY.
    """
    key = os.environ.get(variable, "").strip()
    if not key and variable != API_KEY_VARIABLE:
        raise BadInput(f"The environment variable {variable} is not set. Set it to the API key.")
    return key


def get_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory of uvloop, or None for asyncio's own loop."""
    try:
        import uvloop
    except ImportError:  # not available on Windows
        return None
    return uvloop.new_event_loop


def require_key_unless_loopback(host: str, api_key: str, *, has_stored_keys: bool = False) -> None:
    """Check that a server that other hosts can reach has an API key.

    Raises:
        BadInput: If it has none.
    """
    if not api_key and not has_stored_keys and not is_loopback(host):
        raise BadInput(
            f"Serving on {host} needs an API key, because other hosts can connect. Create one with "
            f"`opposable keys create`, set {API_KEY_VARIABLE}, or name another variable with --api-key-env. "
            "Without a key, use --host 127.0.0.1."
        )


async def serve(
    app: FastAPI,
    host: str,
    port: int,
    on_ready: Callable[[str], None] = lambda url: None,
    *,
    listening_socket: socket.socket | None = None,
) -> float:
    """Serve until SIGINT or SIGTERM.

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
    config = uvicorn.Config(
        app,
        log_level="warning",
        log_config=None,  # the log of the service formats its records
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    gc.collect()
    gc.freeze()  # collections need not scan objects that live as long as the server
    server = _Server(config, lambda: on_ready(get_base_url(host, server_socket)))
    await server.serve([server_socket])
    return time.monotonic() - server.stopped_at


def get_base_url(host: str, listening_socket: socket.socket) -> str:
    """Return the base URL of the gateway on a socket."""
    url_host = f"[{host}]" if ":" in host else host
    return f"http://{url_host}:{listening_socket.getsockname()[1]}/v1"


@contextlib.asynccontextmanager
async def serve_in_background(app: FastAPI, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve the application while the block runs; the value is the base URL.

    Signals are not handled.

    Raises:
        BadInput: If the address cannot be used.
    """
    listening_socket = open_listening_socket(host, port)
    ready = asyncio.Event()
    config = uvicorn.Config(
        app, log_level="warning", log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=GRACE_SECONDS
    )
    server = _Server(config, ready.set, signals=())
    server_task = asyncio.create_task(server.serve([listening_socket]))
    ready_task = asyncio.create_task(ready.wait())
    await asyncio.wait({server_task, ready_task}, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield get_base_url(host, listening_socket)
    finally:
        ready_task.cancel()
        server.should_exit = True
        await server_task


class _Server(uvicorn.Server):
    """A uvicorn server that calls `on_ready` and does not raise the stop signal again."""

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


async def _handle_error(request: Request, error: Exception) -> Response:
    """Respond in the format of the route: OpenAI's for the gateway, else the API's."""
    if not request.url.path.startswith(GATEWAY_PREFIX) and hasattr(request.app.state, "service"):
        return to_api_error(error).to_response()
    if isinstance(error, HTTPException):
        message = f"{HTTPStatus(error.status_code).phrase}: {request.method} {request.url.path}"
        return GatewayError(error.status_code, message, headers=dict(error.headers or {})).to_response()
    return to_gateway_error(error).to_response()
