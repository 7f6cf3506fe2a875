"""Tools as a model knows them: definitions, calls, results."""

from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

FailureKind = Literal[
    "unknown_tool",
    "invalid_arguments",
    "refused",
    "denied",
    "rate_limited",
    "timeout",
    "unavailable",
    "failed",
    "cancelled",
]
"""Why a call brought no result: a closed set."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as a model is told of it.

    `name` fits `^[a-zA-Z0-9_-]{1,64}$`; `parameters` is a JSON Schema of type object. `memo` keeps a wire form once
    it is made (key: the wire format's name).
    """

    name: str
    description: str
    parameters: dict[str, Any]
    wire_cache: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call a model wants made.

    `arguments` is JSON text as the model wrote it: it may be broken. `dialect` tells how the call was written
    ("native" when the provider parsed it) and `repairs` what was mended in reading it. `truncated` is true when the
    model was cut off while writing the call: such a call is never run.
    """

    id: str
    name: str
    arguments: str
    dialect: str = "native"
    repairs: tuple[str, ...] = ()
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of one call.

    `content` is what the model is told. `data` is the value itself where the tool gave one that is JSON. `failure`
    is None when the call worked. `cut` is the number of characters left out of `content`, and `handle` names the whole
    where it was put aside. `seconds` is wall time, `attempts` counts tries, `cached` says an earlier result was given.
    """

    call_id: str
    name: str
    content: str
    failure: FailureKind | None = None
    data: Any = None
    cut: int = 0
    seconds: float = 0.0
    repairs: tuple[str, ...] = ()
    attempts: int = 1
    cached: bool = False
    handle: str = ""


def new_call_id() -> str:
    """An id for a call that came without one of its own."""
    return f"call_{uuid4().hex[:24]}"
