"""The application of the service."""

import os
from collections.abc import Collection, Mapping
from http import HTTPStatus
from importlib.metadata import version
from types import GenericAlias

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response

from opposable.domain.errors import BadInput, OpposableError
from opposable.models.base import Model
from opposable.service.service import Service
from opposable.web.api.routes import add_routes
from opposable.web.api_docs import install_api_docs
from opposable.web.application import ServedPart, install_admin
from opposable.web.errors import ErrorResponse, to_api_error
from opposable.web.gateway.routes import HEALTH_ROUTER, create_gateway_routes
from opposable.web.middleware.authentication import AuthenticationMiddleware, is_loopback
from opposable.web.openai_errors import (
    GATEWAY_PREFIX,
    GatewayError,
    is_of_anthropic_client,
    to_gateway_error,
    to_messages_error,
)

API_KEY_VARIABLE = "OPPOSABLE_SERVE_KEY"
MAX_BODY_BYTES = 32 * 1024 * 1024

HANDLED_ERRORS = (ErrorResponse, OpposableError, RequestValidationError, ValidationError, HTTPException, Exception)


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
    )
    # The innermost middleware: Starlette handles `Exception` outside of those that add headers and log the request.
    app.add_middleware(ExceptionMiddleware, handlers={Exception: _handle_error})
    if isinstance(backend, Service):
        app.state.service = backend
        install_admin(app, backend, api_key=api_key, max_body_bytes=max_body_bytes, only=only)
        if only in (None, "agents"):
            add_routes(app)
        if only in (None, "gateway"):  # first: every route before it would cost each of its requests time
            app.router.routes[:0] = create_gateway_routes(backend.models, max_body_bytes, backend, allowed_models)
    else:
        app.router.routes[:0] = create_gateway_routes(backend, max_body_bytes)
        app.add_middleware(AuthenticationMiddleware, api_key=api_key)
    app.router.routes += HEALTH_ROUTER.routes
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


async def _handle_error(request: Request, error: Exception) -> Response:
    """Respond in the format of the route: that of OpenAI or of Anthropic for the gateway, else the API's."""
    if not request.url.path.startswith(GATEWAY_PREFIX) and hasattr(request.app.state, "service"):
        if isinstance(error, HTTPException) and error.status_code == 404:
            message = f"There is no route {request.method} {request.url.path}. See /openapi.json."
            error = HTTPException(404, message)
        body_field = getattr(request.scope.get("route"), "body_field", None)
        body_type = None if body_field is None else GenericAlias(dict, (str, body_field.field_info.annotation))
        return to_api_error(error, body_type).to_response()
    if isinstance(error, HTTPException):
        message = f"{HTTPStatus(error.status_code).phrase}: {request.method} {request.url.path}"
        error = GatewayError(error.status_code, message, headers=dict(error.headers or {}))
    to_error = to_messages_error if is_of_anthropic_client(request.scope) else to_gateway_error
    return to_error(error).to_response()
