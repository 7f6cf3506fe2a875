"""Errors of the gateway in the formats of OpenAI and of Anthropic."""

import logging
from contextlib import suppress

import orjson
from starlette.datastructures import Headers
from starlette.types import Scope

from opposable.domain.errors import (
    BadInput,
    ContextFull,
    ModelError,
    ModelNotFound,
    ModelRefusedKey,
    ModelRejected,
    ModelUnavailable,
    StoreUnavailable,
    get_error_kind,
)
from opposable.web.errors import RETRY_AFTER_HEADERS, ApiError, ErrorResponse

log = logging.getLogger("opposable.web")

GATEWAY_PREFIX = "/v1/"
"""Paths of the gateway, whose errors have the format of OpenAI or of Anthropic."""

_MESSAGES_PREFIX = "/v1/messages"

MESSAGES_ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    502: "api_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class GatewayError(ErrorResponse):
    """An error response of the gateway."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        detail = {"message": message, "type": kind, "param": param, "code": code}
        super().__init__(status, message, {"error": detail}, headers)


def bad_request_error(param: str, message: str, code: str | None = None) -> GatewayError:
    """Return a 400 error; `param` is the path of the wrong parameter."""
    return GatewayError(400, message, param=param, code=code)


def to_gateway_error(error: Exception) -> GatewayError:
    """Map any error to an error response.

    An unexpected error is logged, and its details are not sent.
    """
    match error:
        case GatewayError():
            return error
        case ModelError(status=429):
            return _rate_limit_error(error)
        case ModelRejected() | ModelUnavailable() if (error.status or 0) >= 500:
            return _server_error(error)
        case ModelNotFound():
            return _parse_error_body(error) or GatewayError(404, str(error), param="model", code="api_not_found")
        case ModelRejected() | ModelUnavailable() if (error.status or 0) >= 400:
            return _client_error(error)
        case BadInput():
            return GatewayError(400, str(error), code="bad_input")
        case StoreUnavailable() | ModelUnavailable():
            code = get_error_kind(error)
            return GatewayError(503, str(error), kind="server_error", code=code, headers=RETRY_AFTER_HEADERS)
        case ContextFull():
            full = bad_request_error("messages", str(error), "context_length_exceeded")
            relayed = _parse_error_body(error)
            return relayed if relayed and isinstance(relayed.body["error"].get("code"), str) else full
        case ModelRejected():
            return GatewayError(400, str(error), code="rejected_by_model_server")
        case ModelRefusedKey():
            return GatewayError(502, str(error), kind="server_error", code="model_server_refused_key")
        case ModelError():
            return GatewayError(502, str(error), kind="server_error", code="model_failed")
    log.error("Request failed with an unexpected error.", exc_info=error)
    message = "Internal error. The log of the gateway has the details."
    return GatewayError(500, message, kind="server_error", code="internal_error")


def _rate_limit_error(error: ModelError) -> GatewayError:
    """Return the rate limit of the model's server, with the time to wait."""
    limited = _parse_error_body(error) or GatewayError(
        429, str(error), kind="rate_limit_error", code="rate_limit_exceeded"
    )
    limited.headers = _get_retry_headers(error)
    return limited


def _server_error(error: ModelError) -> GatewayError:
    """Return the failure of the model's server with its own status, and the time to wait if a retry may succeed."""
    failed = _parse_error_body(error) or GatewayError(
        error.status or 503, str(error), kind="server_error", code="model_unavailable"
    )
    failed.headers = _get_retry_headers(error) if isinstance(error, ModelUnavailable) else None
    return failed


def _client_error(error: ModelError) -> GatewayError:
    """Return the error that the model's server reports with a status from 400 to 499, with its body if it is JSON."""
    relayed = _parse_error_body(error)
    if relayed is None:
        relayed = GatewayError(error.status or 400, str(error), code="rejected_by_model_server")
        with suppress(orjson.JSONDecodeError):
            body = orjson.loads(error.response)
            relayed.body = body if isinstance(body, dict) and body else relayed.body
    return relayed


def _get_retry_headers(error: ModelError) -> dict[str, str]:
    return {"retry-after": error.retry_after} if error.retry_after else RETRY_AFTER_HEADERS


def _parse_error_body(error: ModelError) -> GatewayError | None:
    """Return the unchanged error of the model's server if it is in the format of an API, else None."""
    try:
        body = orjson.loads(error.response)
    except orjson.JSONDecodeError:
        return None
    detail = body.get("error") if isinstance(body, dict) else None
    if not isinstance(detail, dict) or not isinstance(detail.get("message"), str):
        return None
    relayed = GatewayError(error.status or 400, detail["message"])
    relayed.body = body
    return relayed


def is_of_anthropic_client(scope: Scope) -> bool:
    """Return whether a request is for the messages API or of an SDK of Anthropic, which reads its format of errors."""
    return scope["path"].startswith(_MESSAGES_PREFIX) or "anthropic-version" in Headers(scope=scope)


class MessagesError(GatewayError):
    """An error response in the format of Anthropic."""

    def __init__(self, error: GatewayError) -> None:
        super().__init__(error.status, str(error), headers=error.headers)
        detail = {"type": MESSAGES_ERROR_TYPES.get(error.status, "invalid_request_error"), "message": str(error)}
        self.body = error.body if error.body.get("type") == "error" else {"type": "error", "error": detail}


def to_messages_error(error: Exception) -> MessagesError:
    """Map any error to an error response in the format of Anthropic."""
    if isinstance(error, MessagesError):
        return error
    if isinstance(error, ContextFull) and (relayed := _parse_error_body(error)) and "type" in relayed.body:
        return MessagesError(relayed)
    return MessagesError(to_gateway_error(error))


def format_api_error(error: ApiError, scope: Scope) -> ErrorResponse:
    """Return the error in the format of the requested API."""
    if not scope["path"].startswith(GATEWAY_PREFIX):
        return error
    kind, code = "server_error" if error.status >= 500 else "invalid_request_error", error.body["error"]["kind"]
    gateway_error = GatewayError(error.status, str(error), kind=kind, code=code, headers=error.headers)
    return MessagesError(gateway_error) if is_of_anthropic_client(scope) else gateway_error
