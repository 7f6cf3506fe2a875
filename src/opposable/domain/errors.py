"""The exceptions of the package.

A mistake of a model is a value (`ToolResult.failure`), not an exception.

OpposableError
├── BadInput              the user's input is not valid; the message says what is
│   └── ToolRegistrationError   a function or object cannot become a tool
├── ModelError            the model did not answer
│   ├── ModelUnavailable      connection refused, time-out, 5xx, overloaded; a later attempt may succeed
│   ├── ModelRefusedKey       401 or 403: the key is wrong or lacks a permission
│   ├── ModelNotFound         the server has no such model or path
│   ├── ContextFull           the messages do not fit into the model's context window
│   └── ModelRejected         any other 4xx, with the server's message
├── StoreError            the store could not be read or written
│   ├── StoreUnavailable      the database or Valkey does not answer; a later attempt may succeed
│   ├── StoreConflict         another writer changed the same record
│   ├── StoreTooNew           a newer version of Opposable wrote the database
│   └── StoreMissing          the database holds no store, and may not get one without a request
├── WeightsError          the embedded model's file cannot be downloaded or stored
└── ToolError             raised inside a tool; always becomes a `ToolResult`
    ├── InvalidArguments      the arguments do not fit the schema, with a problem per field
    ├── ToolRefused           the call is not allowed
    ├── ToolUnavailable       the tool's server, file or program cannot be reached now
    └── ToolFailed            the tool ran and failed
"""

import re
from dataclasses import dataclass


class OpposableError(Exception):
    """Base class of all exceptions of this package.

    `str(error)` is a message for users.
    """


class BadInput(OpposableError):
    """Invalid input of the user.

    The message says what is wrong and what to do.
    """


class ToolRegistrationError(BadInput):
    """A function or object that cannot become a tool; the message says why."""


class ModelError(OpposableError):
    """A request to a model that got no answer.

    Attributes:
        status: The HTTP status of the model's server, None without one.
        retry_after: The `Retry-After` header of the server, "" without one.
        response: The body of the server's error response, without its key.
    """

    def __init__(
        self, message: str = "", *, status: int | None = None, retry_after: str = "", response: bytes = b""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.response = response


class ModelUnavailable(ModelError):
    """Connection refused, time-out, 5xx or overload, after all retries.

    A later attempt may succeed.
    """


class ModelRefusedKey(ModelError):
    """A key that the server refused (401, 403)."""


class ModelNotFound(ModelError):
    """A model or path that the server does not have (404)."""


class ContextFull(ModelError):
    """Messages and tools that exceed the model's context window."""


class ModelRejected(ModelError):
    """A request that the server refused for another reason (4xx), with its message."""


class StoreError(OpposableError):
    """A store that could not be read or written."""


class StoreUnavailable(StoreError):
    """A database or Valkey server that does not answer; a later attempt may succeed."""


class StoreConflict(StoreError):
    """A record that another writer has changed; read it again before you write."""


class StoreTooNew(StoreError):
    """A database that a newer version of Opposable wrote."""


class StoreMissing(StoreError):
    """A database without a store, where none is created without an explicit request."""


class WeightsError(OpposableError):
    """Weights of the embedded model that cannot be downloaded or stored."""


_SHARED_KINDS: dict[type[OpposableError], str] = {
    ContextFull: "model_rejected",
    ModelError: "model_failed",
    StoreConflict: "conflict",
    StoreError: "store_failed",
    OpposableError: "internal_error",
}


def get_error_kind(error: Exception) -> str:
    """Return the kind of an error as responses, streams and the command line spell it, such as `model_unavailable`."""
    if not isinstance(error, OpposableError):
        return "internal_error"
    return _SHARED_KINDS.get(type(error)) or re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()


class ToolError(OpposableError):
    """A failure inside a tool; the tool library turns it into a `ToolResult`."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A problem with one argument.

    Attributes:
        field: A dotted path, "" for the arguments as a whole.
        problem: What is wrong and what would be valid.
        received: The received value as JSON, None where there was none.
    """

    field: str
    problem: str
    received: str | None = None


class InvalidArguments(ToolError):
    """Arguments that do not fit the tool's schema; `problems` has one entry per field."""

    def __init__(self, problems: tuple[FieldProblem, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.field or 'arguments'}: {p.problem}" for p in problems))

    def __reduce__(self) -> tuple[object, ...]:
        """Return how the error is pickled: a pool of processes breaks if that fails."""
        return type(self), (self.problems,), self.__dict__


class ToolRefused(ToolError):
    """A call that is not allowed; the message says what is."""


class ToolUnavailable(ToolError):
    """A server, file or program of a tool that cannot be reached now.

    Attributes:
        retry_after: Seconds after which the server asks for the next call, 0 if it does not say.
        outcome_unknown: Whether the call may have taken effect, because it was sent.
    """

    def __init__(self, message: str = "", *, retry_after: float = 0.0, outcome_unknown: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.outcome_unknown = outcome_unknown


class ToolFailed(ToolError):
    """A tool that ran and failed; the message says how."""


_STORED_TYPES = (BadInput, ModelUnavailable, ModelRefusedKey, ModelNotFound, ModelRejected, ContextFull, ModelError)


def error_from_name(name: str, message: str) -> OpposableError:
    """Return the error that was stored as the name of its class and its message."""
    return next((kind for kind in _STORED_TYPES if kind.__name__ == name), OpposableError)(message)


def error_from_kind(kind: str, message: str) -> OpposableError:
    """Return the error that was reported as its kind and its message."""
    errors = (error_type(message) for error_type in _STORED_TYPES)
    return next((error for error in errors if get_error_kind(error) == kind), OpposableError(message))
