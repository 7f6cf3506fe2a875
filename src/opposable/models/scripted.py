"""A scripted model for tests and examples: it replies from a list."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from opposable.domain.errors import BadInput, ModelError
from opposable.domain.events import CallDelta, ModelEvent, Reply, TextDelta, ThinkingDelta
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions

ScriptedReply = str | Message | Reply | ModelError | Callable[[Sequence[Message]], "str | Message | Reply"]
"""One scripted reply: text, a message, a whole reply, an error to raise, or a function of the history."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request to a scripted model."""

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    options: ModelOptions


class ScriptedModel:
    """A model that returns scripted replies in order, then repeats the last one.

    Args:
        replies: The replies. Without one, a request raises `BadInput`.
        name: The name of the model.
        chunk_size: Characters in each text delta of a stream.

    Attributes:
        requests: The requests so far.
    """

    def __init__(self, *replies: ScriptedReply, name: str = "scripted", chunk_size: int = 8) -> None:
        self.name = name
        self.requests: list[RecordedRequest] = []
        self._replies = replies
        self._chunk_size = chunk_size

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream the next scripted reply. Raises: the scripted error, if the reply is one."""
        if not self._replies:
            raise BadInput("The scripted model has no reply. Pass one: ScriptedModel('Hello.')")
        scripted = self._replies[min(len(self.requests), len(self._replies) - 1)]
        self.requests.append(RecordedRequest(tuple(messages), tuple(tools), options))
        if isinstance(scripted, ModelError):
            raise scripted
        content = scripted(messages) if callable(scripted) else scripted
        reply = content if isinstance(content, Reply) else _to_reply(content)
        if options.stream:
            for delta in self._split_message(reply.message):
                yield delta
        yield reply

    async def aclose(self) -> None:
        """Do nothing: there is nothing to release."""

    def _split_message(self, message: Message) -> list[ModelEvent]:
        parts: list[ModelEvent] = [ThinkingDelta(message.thinking)] if message.thinking else []
        text, size = message.content, self._chunk_size
        parts += [TextDelta(text[start : start + size]) for start in range(0, len(text), size)]
        parts += [CallDelta(n, call.id, call.name, call.arguments_json) for n, call in enumerate(message.tool_calls)]
        return parts


def tool_call(name: str, arguments: str = "{}", call_id: str = "") -> ToolCall:
    """Create a tool call for a script; `arguments` is JSON text."""
    return ToolCall.from_json(call_id or f"call_{name}", name, arguments)


def reply_with_calls(*tool_calls: ToolCall, text: str = "") -> Message:
    """Create a reply with tool calls."""
    return assistant_message(text, tool_calls)


def _to_reply(content: str | Message) -> Reply:
    message = assistant_message(content) if isinstance(content, str) else content
    return Reply(message, "tool_calls" if message.tool_calls else "stop", Usage(10, 5, 1))
