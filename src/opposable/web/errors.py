"""Errors of the service's own routes: one JSON shape, a fitting status, a sentence."""

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import orjson
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from opposable.domain.errors import (
    BadInput,
    ContextFull,
    ModelError,
    ModelRejected,
    ModelUnavailable,
    StoreConflict,
    StoreError,
    StoreUnavailable,
)

log = logging.getLogger("opposable.web")

RETRY_AFTER_HEADERS = {"retry-after": "2"}
"""Seconds after which a client should try again what is not there now."""


class FieldError(BaseModel):
    """One thing wrong with what was sent."""

    field: str = Field(description="A dotted path into the request.", examples=["body.message"])
    problem: str = Field(examples=["Field required"])


class ErrorDetail(BaseModel):
    """What went wrong."""

    kind: str = Field(description="A word for programs.", examples=["not_found"])
    message: str = Field(description="A sentence for people.", examples=["There is no agent 'clerk'."])
    fields: list[FieldError] = Field(default=[], description="Each thing wrong with the request, where that is known.")


class ErrorBody(BaseModel):
    """Every error's body."""

    error: ErrorDetail


class ApiError(Exception):
    """A request that ends in an error; `str(error)` is the sentence the client is told."""

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        *,
        headers: dict[str, str] | None = None,
        fields: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.body: dict[str, Any] = {"error": {"kind": kind, "message": message}}
        if fields:
            self.body["error"]["fields"] = [{"field": field, "problem": problem} for field, problem in fields]

    def to_json(self) -> bytes:
        """The error as JSON."""
        return orjson.dumps(self.body)

    def to_response(self) -> Response:
        """The error as an answer of its own."""
        return Response(self.to_json(), self.status, self.headers, "application/json")


def not_found_error(message: str) -> ApiError:
    """There is no such thing, or it is another's."""
    return ApiError(404, "not_found", message)


def bad_input_error(message: str) -> ApiError:
    """What was sent cannot be used."""
    return ApiError(400, "bad_input", message)


def forbidden_error(message: str) -> ApiError:
    """Whoever asks may not do this."""
    return ApiError(403, "forbidden", message)


def conflict_error(message: str) -> ApiError:
    """It is not as the request takes it to be: taken already, decided already, changed meanwhile."""
    return ApiError(409, "conflict", message)


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route: the errors it may end in, beside those that every route may."""
    every = {400, 401, 403, 413, 422, 429, 503, *statuses}
    return {status: {"model": ErrorBody, "description": HTTPStatus(status).phrase} for status in sorted(every)}


def to_api_error(error: Exception) -> ApiError:
    """Any error as one for the wire. What nobody foresaw is logged, and the client is told no details of it."""
    match error:
        case ApiError():
            return error
        case RequestValidationError() | ValidationError():
            return _validation_error(error.errors())
        case HTTPException(status_code=status):
            said = error.detail or HTTPStatus(status).phrase
            kind = HTTPStatus(status).phrase.lower().replace(" ", "_").replace("-", "_")
            return ApiError(status, kind, str(said), headers=dict(error.headers or {}))
        case BadInput():
            return bad_input_error(str(error))
        case StoreUnavailable():
            return ApiError(503, "store_unavailable", str(error), headers=RETRY_AFTER_HEADERS)
        case StoreConflict():
            return conflict_error(str(error))
        case ModelUnavailable():
            return ApiError(503, "model_unavailable", str(error), headers=RETRY_AFTER_HEADERS)
        case ContextFull() | ModelRejected():
            return ApiError(400, "model_rejected", str(error))
        case ModelError():
            return ApiError(502, "model_failed", str(error))
        case StoreError():
            log.error("The store failed: %s", error)
            return ApiError(500, "store_failed", str(error))
    log.error("A request failed.", exc_info=error)
    return ApiError(500, "internal_error", "The service failed; its log says how.")


async def handle_error(request: Request, error: Exception) -> Response:
    """The answer to a request that ended in an error."""
    return to_api_error(error).to_response()


def _validation_error(problems: Sequence[Any]) -> ApiError:
    fields = [(".".join(str(step) for step in problem["loc"]), str(problem["msg"])) for problem in problems[:20]]
    said = "; ".join(f"{field}: {problem}" for field, problem in fields[:3])
    return ApiError(422, "invalid_request", f"The request does not fit: {said}.", fields=fields)
