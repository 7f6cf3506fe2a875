"""What a model is to the rest: messages and tools in, a stream of parts out."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from opposable.domain.events import ModelEvent
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition


@dataclass(frozen=True, slots=True)
class ForcedTool:
    """The choice of one tool by its name: the model must call it.

    `arguments` are those that are known already; `avoid` has the value that the argument after them must not have,
    where one is known to be wrong, and `among` the values one of which it must have, where they are known.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    excluded_values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    allowed_values: tuple[str, ...] = ()


ToolChoice = Literal["none", "auto", "required"] | ForcedTool


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a reply is asked for.

    `stream` false asks for the reply in one piece (cheaper where nobody watches). `max_tokens` bounds the reply,
    `response_schema` is a JSON Schema the reply must fit, where the server can enforce it. `alternatives` asks for
    that many words' log-probabilities at each token of a reply that is not streamed, where the server gives them.
    `expected` is what should come next where the model may choose: "required" for some call, or the call by name, with
    arguments where they are known. A way of asking that weighs calls against answers leans to it; others need not heed it.
    """

    stream: bool = True
    tool_choice: ToolChoice = "auto"
    max_tokens: int | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    top_logprobs: int | None = None
    tool_choice_hint: ToolChoice = "auto"
    response_schema: dict[str, Any] | None = field(default=None, hash=False)


DEFAULT_OPTIONS = ModelOptions()


class Model(Protocol):
    """A language model.

    `stream` yields the pieces of one reply as they come and a `Reply` last; leaving the iterator early stops the
    model. Raises: `domain.errors.ModelError` and its kinds.
    """

    @property
    def name(self) -> str:
        """What the model is called, for people and records."""
        ...

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """One reply to `messages`, in parts; the last part is a `Reply`."""
        ...

    async def aclose(self) -> None:
        """Give back connections, threads, memory. Calling it twice is harmless."""
        ...
