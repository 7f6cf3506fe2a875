"""Tool definitions, tool calls and tool results."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from opposable.domain.content import FilePart, ImagePart
from opposable.domain.json_text import dump_json, parse_json
from opposable.domain.schema_alternatives import flatten_alternatives

_EMPTY_OBJECT = re.compile(r"\s*\{\s*\}\s*")

MAX_DESCRIPTION_CHARACTERS = 16_000
"""Characters of a foreign tool's description that are sent to the model."""
MAX_PARAMETER_DESCRIPTION_CHARACTERS = 4_000
"""Characters of the description of one of its parameters that are sent to the model."""

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
"""Why a call failed: a closed set."""

AfterUntrusted = Literal["allow", "approve", "refuse"]
"""What happens to calls that act once untrusted text is in the conversation."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as it is described to a model.

    `name` fits `^[a-zA-Z0-9_-]{1,64}$`, but those of the gateway's clients may be longer and have dots. `parameters` is
    a JSON Schema of type object, which `strict` asks the server to enforce.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool = False
    _wire_cache: dict[str, bytes] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def flat_parameters(self) -> Mapping[str, Any]:
        """`parameters` without alternatives at the top level, which hosted APIs refuse."""
        return flatten_alternatives(self.parameters)

    def encode_once(self, wire_format: str, encode: Callable[["ToolDefinition"], bytes]) -> bytes:
        """Return `encode(self)`, computed once for each wire format."""
        encoded = self._wire_cache.get(wire_format)
        if encoded is None:
            encoded = self._wire_cache[wire_format] = encode(self)
        return encoded


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call requested by a model.

    Attributes:
        arguments: The arguments as a JSON object, {} where `raw` is not one. Treat it as read-only.
        raw: The arguments as the model wrote them, which may be malformed JSON; None where only the object is known.
        dialect: How the call was written; "native" when the provider parsed it.
        repairs: What the parser repaired, in short phrases.
        truncated: Whether the token limit cut the call off. Such a call is never run.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] = field(hash=False)
    raw: str | None = None
    dialect: str = "native"
    repairs: tuple[str, ...] = ()
    truncated: bool = False

    @classmethod
    def from_json(
        cls,
        call_id: str,
        name: str,
        raw: str,
        *,
        dialect: str = "native",
        repairs: tuple[str, ...] = (),
        truncated: bool = False,
    ) -> "ToolCall":
        """Create a call from the JSON text of its arguments, parsed strictly."""
        try:
            value = parse_json(raw)
        except ValueError:
            value = None
        return cls(call_id, name, value if isinstance(value, dict) else {}, raw, dialect, repairs, truncated)

    @classmethod
    def from_reply(cls, call_id: Any, name: Any, arguments: Any, *, truncated: bool = False) -> "ToolCall":
        """Create a call from the values that a server sent, which may be missing or have wrong types."""
        call_id, name = str(call_id or new_call_id()), str(name or "")
        if isinstance(arguments, dict) or (not arguments and not isinstance(arguments, str)):
            return cls(call_id, name, arguments or {}, truncated=truncated)
        raw = arguments if isinstance(arguments, str) else dump_json(arguments).decode()
        return cls.from_json(call_id, name, raw, truncated=truncated)

    @property
    def has_valid_arguments(self) -> bool:
        """Whether the arguments are a JSON object rather than invalid text."""
        return self.raw is None or bool(self.arguments) or _EMPTY_OBJECT.fullmatch(self.raw) is not None

    @property
    def arguments_json(self) -> str:
        """The arguments as JSON text: as the model wrote them, else serialized."""
        return dump_json(dict(self.arguments)).decode() if self.raw is None else self.raw


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call.

    Attributes:
        content: The text for the model.
        failure: Why the call failed, None where it succeeded.
        data: The returned value where it is JSON.
        cut: Number of characters omitted from `content`.
        seconds: Wall time.
        repairs: What was repaired in the call.
        attempts: Number of attempts.
        cached: Whether this is the cached result of an earlier call.
        handle: Key of the complete result where it was stored.
        media: Images and files, for models that take them.
        outcome_unknown: Whether the call failed but may have taken effect. Nothing repeats it.
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
    media: tuple[ImagePart | FilePart, ...] = ()
    outcome_unknown: bool = False


def new_call_id() -> str:
    """Return an id for a call that has none."""
    return f"call_{uuid4().hex[:24]}"
