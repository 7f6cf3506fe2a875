"""Errors in the shape OpenAI's clients know: status, type, param, code and a sentence."""

import logging
from typing import Any

import orjson
from starlette.responses import Response

from opposable.domain.errors import ContextFull, ModelError, ModelRefusedKey, ModelRejected, ModelUnavailable

log = logging.getLogger("opposable.web")

RETRY_AFTER_HEADERS = {"retry-after": "2"}
"""Seconds after which a client should try a model again that is not there now."""


class GatewayError(Exception):
    """A request that ends in an error; `str(error)` is the sentence the client is told."""

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
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.body: dict[str, Any] = {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def to_json(self) -> bytes:
        """The error as JSON."""
        return orjson.dumps(self.body)

    def to_response(self) -> Response:
        """The error as an answer of its own."""
        return Response(self.to_json(), self.status, self.headers, "application/json")


def bad_request_error(param: str, message: str, code: str | None = None) -> GatewayError:
    """What the client sent cannot be used; `param` is the path of the part that is wrong."""
    return GatewayError(400, message, param=param, code=code)


def to_gateway_error(error: Exception) -> GatewayError:
    """Any error as one for the wire. What nobody foresaw is logged, and the client is told no details of it."""
    match error:
        case GatewayError():
            return error
        case ContextFull():
            return bad_request_error("messages", str(error), "context_length_exceeded")
        case ModelRejected():
            return GatewayError(400, str(error), code="rejected_by_model_server")
        case ModelUnavailable():
            return GatewayError(
                503, str(error), kind="server_error", code="model_unavailable", headers=RETRY_AFTER_HEADERS
            )
        case ModelRefusedKey():
            return GatewayError(502, str(error), kind="server_error", code="model_server_refused_key")
        case ModelError():
            return GatewayError(502, str(error), kind="server_error", code="model_failed")
    log.error("A request failed.", exc_info=error)
    return GatewayError(500, "The gateway failed; its log says how.", kind="server_error", code="internal_error")
