"""The errors of the world, as a tree; a model's mistakes are values (`ToolResult.failure`), not errors.

OpposableError
├── BadInput              what the user gave cannot be used; the sentence says what would be right
│   └── ToolRegistrationError   a tool cannot be described to a model
├── ModelError            the model did not answer
│   ├── ModelUnavailable      connection refused, time-out, 5xx, overloaded (worth another try later)
│   ├── ModelRefusedKey       401 or 403: the key is wrong or lacks a right
│   ├── ModelNotFound         the server answers but has no such model or path
│   ├── ContextFull           the messages do not fit into the model's context window
│   └── ModelRejected         any other 4xx, with the server's own sentence
├── StoreError            what is kept could not be read or written
│   ├── StoreUnavailable      the database or the Valkey server does not answer (worth another try later)
│   ├── StoreConflict         someone else changed the same thing meanwhile
│   └── StoreTooNew           the database was written by a newer Opposable
├── WeightsError          the embedded model's file cannot be had (network, disk, wrong checksum)
└── ToolError             raised inside a tool to say how it failed; always becomes a `ToolResult`
    ├── InvalidArguments      the arguments do not fit, each problem told by field
    ├── ToolRefused           what was asked is not allowed
    ├── ToolUnavailable       the tool's server or file is not there now
    └── ToolFailed            it ran and failed
"""

from dataclasses import dataclass


class OpposableError(Exception):
    """Root of every error this package raises on purpose; `str(error)` is a sentence for a person."""


class BadInput(OpposableError):
    """What the user gave cannot be used; the sentence says what is wrong and what would be right."""


class ToolRegistrationError(BadInput):
    """A function or object cannot be made a tool; the sentence says why."""


class ModelError(OpposableError):
    """The model did not answer."""


class ModelUnavailable(ModelError):
    """Connection refused, time-out, 5xx or overload, after the retries; another try later may work."""


class ModelRefusedKey(ModelError):
    """The server refused the key (401, 403)."""


class ModelNotFound(ModelError):
    """The server answers, but has no such model or no such path (404)."""


class ContextFull(ModelError):
    """The messages and tools do not fit into the model's context window."""


class ModelRejected(ModelError):
    """The server refused the request for another reason (4xx), told in its own sentence."""


class StoreError(OpposableError):
    """What is kept could not be read or written."""


class StoreUnavailable(StoreError):
    """The database or the Valkey server does not answer; another try later may work."""


class StoreConflict(StoreError):
    """Someone else changed the same thing meanwhile; read it again and decide anew."""


class StoreTooNew(StoreError):
    """The database has a schema this version does not know: a newer Opposable wrote it."""


class WeightsError(OpposableError):
    """The embedded model's weights cannot be had: network, disk, or a wrong checksum."""


class ToolError(OpposableError):
    """Raised inside a tool to say how it failed; the caller turns it into a `ToolResult`."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing wrong with one argument.

    `field` is a dotted path ("" for the arguments as a whole), `problem` says what is wrong and what would be
    right, `given` is the JSON of what was given, or None when nothing was.
    """

    field: str
    problem: str
    received: str | None = None


class InvalidArguments(ToolError):
    """The arguments do not fit the tool's schema; `problems` has one entry a field."""

    def __init__(self, problems: tuple[FieldProblem, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.field or 'arguments'}: {p.problem}" for p in problems))


class ToolRefused(ToolError):
    """What was asked is not allowed; the sentence says what is."""


class ToolUnavailable(ToolError):
    """The tool's server, file or program is not there now."""


class ToolFailed(ToolError):
    """The tool ran and failed; the sentence says how."""
