"""The public fake: a model that says what it is told to say."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from opposable.domain.errors import ModelError
from opposable.domain.events import CallDelta, ModelPart, Reply, TextDelta, ThinkingDelta
from opposable.domain.messages import Message, assistant
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions

Line = str | Message | Reply | ModelError | Callable[[Sequence[Message]], "str | Message | Reply"]
"""One reply of a script: text, a message, a whole reply, an error to raise, or a function of the history."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a scripted model was asked."""

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    options: ModelOptions


class ScriptedModel:
    """Replies from a list, one a request, the last one again and again; `requests` keeps what was asked.

    Text is streamed in pieces of `piece` characters.
    """

    def __init__(self, *lines: Line, name: str = "scripted", piece: int = 8) -> None:
        self.name = name
        self.requests: list[Request] = []
        self._lines = lines
        self._piece = piece

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelPart, None]:
        """The next line of the script in parts. Raises: the error that stands in the script."""
        line = self._lines[min(len(self.requests), len(self._lines) - 1)]
        self.requests.append(Request(tuple(messages), tuple(tools), options))
        if isinstance(line, ModelError):
            raise line
        said = line(messages) if callable(line) else line
        reply = said if isinstance(said, Reply) else _reply(said)
        if options.stream:
            for part in self._parts(reply.message):
                yield part
        yield reply

    async def aclose(self) -> None:
        """Nothing to give back."""

    def _parts(self, message: Message) -> list[ModelPart]:
        parts: list[ModelPart] = [ThinkingDelta(message.thinking)] if message.thinking else []
        text, size = message.content, self._piece
        parts += [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
        parts += [CallDelta(i, call.id, call.name, call.arguments) for i, call in enumerate(message.tool_calls)]
        return parts


def call(name: str, arguments: str = "{}", call_id: str = "") -> ToolCall:
    """A call for a script; `arguments` is JSON text."""
    return ToolCall(call_id or f"call_{name}", name, arguments)


def calls(*wanted: ToolCall, text: str = "") -> Message:
    """A reply that wants calls made."""
    return assistant(text, wanted)


def _reply(said: str | Message) -> Reply:
    message = assistant(said) if isinstance(said, str) else said
    return Reply(message, "tool_calls" if message.tool_calls else "stop", Usage(10, 5, 1))
