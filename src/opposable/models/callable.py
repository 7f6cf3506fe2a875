"""A model from a Python function that takes a prompt and returns text or a dict."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import orjson

from opposable.domain.events import ModelEvent, Reply, TextDelta
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions

CallableAnswer = str | Mapping[str, Any]
TEXT_FIELDS = ("response", "result", "text", "content", "sql")
"""Fields of a dict that may contain the text, in order of preference."""


class CallableModel:
    """A model from a sync or async function `prompt -> text or dict`.

    It ignores tools: wrap it in `TextProtocolModel` for tool calls. Errors of the function are not translated.
    """

    def __init__(
        self, function: Callable[[str], CallableAnswer | Awaitable[CallableAnswer]], name: str = "callable"
    ) -> None:
        self.name = name
        self._function = function

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Call the function with all messages as one prompt."""
        answer = self._function(render_prompt(messages))
        text = extract_text(await answer if inspect.isawaitable(answer) else answer)
        if options.stream and text:
            yield TextDelta(text)
        yield Reply(assistant_message(text), "stop", Usage(requests=1))

    async def aclose(self) -> None:
        """Do nothing: there is nothing to release."""


def render_prompt(messages: Sequence[Message]) -> str:
    """Return a conversation as one text, each message with its role."""
    names = {"system": "", "user": "User: ", "assistant": "Assistant: ", "tool": "Tool result: "}
    lines = [f"{names[message.role]}{message.content}" for message in messages]
    return "\n\n".join([*lines, "Assistant:"])


def extract_text(answer: CallableAnswer) -> str:
    """Return the text of an answer: a text field of a dict, or the dict as JSON."""
    if isinstance(answer, str):
        return answer
    wants_calls = "tool_calls" in answer or answer.get("action") == "tool_call"
    for field in () if wants_calls else TEXT_FIELDS:
        inner = answer.get(field)
        if isinstance(inner, str) and inner:
            return inner
        if isinstance(inner, Mapping):
            return extract_text(inner)
    return orjson.dumps(dict(answer), default=str).decode()
