"""The public fake: a model that says what it is told to say."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from opposable.domain.errors import ModelError
from opposable.domain.events import CallDelta, ModelEvent, Reply, TextDelta, ThinkingDelta
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions

ScriptedReply = str | Message | Reply | ModelError | Callable[[Sequence[Message]], "str | Message | Reply"]
"""One reply of a script: text, a message, a whole reply, an error to raise, or a function of the history."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """What a scripted model was asked."""

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    options: ModelOptions


class ScriptedModel:
    """Replies from a list, one a request, the last one again and again; `requests` keeps what was asked.

    Text is streamed in pieces of `piece` characters.
    """

    def __init__(self, *replies: ScriptedReply, name: str = "scripted", chunk_size: int = 8) -> None:
        self.name = name
        self.requests: list[RecordedRequest] = []
        self._replies = replies
        self._chunk_size = chunk_size

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """The next line of the script in parts. Raises: the error that stands in the script."""
        line = self._replies[min(len(self.requests), len(self._replies) - 1)]
        self.requests.append(RecordedRequest(tuple(messages), tuple(tools), options))
        if isinstance(line, ModelError):
            raise line
        said = line(messages) if callable(line) else line
        reply = said if isinstance(said, Reply) else _to_reply(said)
        if options.stream:
            for part in self._split_message(reply.message):
                yield part
        yield reply

    async def aclose(self) -> None:
        """Nothing to give back."""

    def _split_message(self, message: Message) -> list[ModelEvent]:
        parts: list[ModelEvent] = [ThinkingDelta(message.thinking)] if message.thinking else []
        text, size = message.content, self._chunk_size
        parts += [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
        parts += [CallDelta(i, call.id, call.name, call.arguments_json) for i, call in enumerate(message.tool_calls)]
        return parts


def tool_call(name: str, arguments: str = "{}", call_id: str = "") -> ToolCall:
    """A call for a script; `arguments` is JSON text."""
    return ToolCall.from_json(call_id or f"call_{name}", name, arguments)


def reply_with_calls(*tool_calls: ToolCall, text: str = "") -> Message:
    """A reply that wants calls made."""
    return assistant_message(text, tool_calls)


def _to_reply(content: str | Message) -> Reply:
    message = assistant_message(content) if isinstance(content, str) else content
    return Reply(message, "tool_calls" if message.tool_calls else "stop", Usage(10, 5, 1))
