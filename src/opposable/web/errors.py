"""Errors of the API: one JSON format, with a status, a kind and a message."""

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import orjson
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException
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
    get_error_kind,
)
from opposable.domain.validation_problems import list_problems

log = logging.getLogger("opposable.web")

RETRY_AFTER_HEADERS = {"retry-after": "2"}
"""The header of responses that a client should retry, in seconds."""


class FieldError(BaseModel):
    """One invalid field of a request."""

    field: str = Field(description="The dotted path of the field.", examples=["body.message"])
    problem: str = Field(examples=["is required"])


class ErrorDetail(BaseModel):
    """An error."""

    kind: str = Field(description="The machine-readable kind.", examples=["not_found"])
    message: str = Field(description="The human-readable message.", examples=["There is no agent 'clerk'."])
    fields: list[FieldError] = Field(default=[], description="The invalid fields of the request.")


class ErrorBody(BaseModel):
    """The body of every error response."""

    error: ErrorDetail


class ErrorResponse(Exception):
    """An error response in the format of an API; `str(error)` is its message."""

    def __init__(self, status: int, message: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.body = body

    def to_json(self) -> bytes:
        """Return the body."""
        return orjson.dumps(self.body)

    def to_response(self) -> Response:
        """Return the HTTP response."""
        return Response(self.to_json(), self.status, self.headers, "application/json")


class ApiError(ErrorResponse):
    """An error response of the API."""

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        *,
        headers: dict[str, str] | None = None,
        fields: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(status, message, {"error": {"kind": kind, "message": message}}, headers)
        if fields:
            self.body["error"]["fields"] = [{"field": field, "problem": problem} for field, problem in fields]


def not_found_error(message: str) -> ApiError:
    """Return a 404 error: the object does not exist or belongs to another owner."""
    return ApiError(404, "not_found", message)


def bad_input_error(message: str) -> ApiError:
    """Return a 400 error: the request cannot be used."""
    return ApiError(400, "bad_input", message)


def forbidden_error(message: str) -> ApiError:
    """Return a 403 error: the principal is not allowed to do this."""
    return ApiError(403, "forbidden", message)


def missing_scope_error(scope: str) -> ApiError:
    """Return a 403 error: the API key does not have the scope."""
    return forbidden_error(f"This API key does not have the scope {scope!r}.")


def conflict_error(message: str) -> ApiError:
    """Return a 409 error: the object already exists, was decided or has changed."""
    return ApiError(409, "conflict", message)


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a route: the errors of every route and these statuses."""
    all_statuses = {400, 401, 403, 413, 422, 429, 503, *statuses}
    return {status: {"model": ErrorBody, "description": HTTPStatus(status).phrase} for status in sorted(all_statuses)}


def to_api_error(error: Exception, data_type: Any = None) -> ApiError:
    """Map any error to an error response.

    An unexpected error is logged, and its details are not sent. `data_type` is the type that was validated, to name
    the nearest of its fields.
    """
    match error:
        case ApiError():
            return error
        case RequestValidationError(body=bytes() as body) if body:  # no JSON, by its Content-Type
            return validation_error([("body", "must be JSON with the header Content-Type: application/json")])
        case HTTPException(status_code=400, __cause__=UnicodeDecodeError() | RecursionError()):
            return validation_error([("body", "is not UTF-8 text, or is nested too deep")])
        case RequestValidationError() if (problem := error.errors()[0])["type"] == "json_invalid":
            return validation_error([("body", f"is not valid JSON at character {problem['loc'][-1]}")])
        case RequestValidationError() | ValidationError():
            return validation_error(list_problems(error.errors(), data_type))
        case HTTPException(status_code=status):
            message = error.detail or HTTPStatus(status).phrase
            kind = HTTPStatus(status).phrase.lower().replace(" ", "_").replace("-", "_")
            return ApiError(status, kind, str(message), headers=dict(error.headers or {}))
        case BadInput():
            return bad_input_error(str(error))
        case StoreConflict():
            return conflict_error(str(error))
        case StoreUnavailable() | ModelUnavailable():
            return ApiError(503, get_error_kind(error), str(error), headers=RETRY_AFTER_HEADERS)
        case ContextFull() | ModelRejected():
            return ApiError(400, get_error_kind(error), str(error))
        case ModelError():
            return ApiError(502, get_error_kind(error), str(error))
        case StoreError():
            log.error("Store failed: %s", error)
            return ApiError(500, get_error_kind(error), str(error))
    log.error("Request failed with an unexpected error.", exc_info=error)
    return ApiError(500, "internal_error", "Internal error. The log of the service has the details.")


def validation_error(problems: Sequence[tuple[str, str]]) -> ApiError:
    """Return a 422 error: each problem is the dotted path of a field, and what is wrong with it."""
    summary = "; ".join(f"{field}: {problem}" for field, problem in problems[:3])
    return ApiError(422, "invalid_request", f"The request is not valid: {summary}.", fields=problems[:20])
