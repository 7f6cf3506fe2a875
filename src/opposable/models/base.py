"""What a model is to the rest: messages and tools in, a stream of parts out."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from opposable.domain.events import ModelPart
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition


@dataclass(frozen=True, slots=True)
class Named:
    """The choice of one tool by its name: the model must call it."""

    name: str


ToolChoice = Literal["none", "auto", "required"] | Named


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a reply is asked for.

    `stream` false asks for the reply in one piece (cheaper where nobody watches). `max_tokens` bounds the reply,
    `response_schema` is a JSON Schema the reply must fit, where the server can enforce it. `alternatives` asks for
    that many words' log-probabilities at each token of a reply that is not streamed, where the server gives them.
    """

    stream: bool = True
    tool_choice: ToolChoice = "auto"
    max_tokens: int | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    alternatives: int | None = None
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
    ) -> AsyncGenerator[ModelPart, None]:
        """One reply to `messages`, in parts; the last part is a `Reply`."""
        ...

    async def aclose(self) -> None:
        """Give back connections, threads, memory. Calling it twice is harmless."""
        ...
