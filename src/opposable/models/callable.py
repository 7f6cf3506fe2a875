"""A model behind a Python function that takes one prompt and gives back text or a dict."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import orjson

from opposable.domain.events import ModelPart, Reply, TextDelta
from opposable.domain.messages import Message, assistant
from opposable.domain.tools import ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions

Answer = str | Mapping[str, Any]
FIELDS = ("response", "result", "text", "content", "sql")
"""Where a service's dict may hold the text, in order of preference."""


class CallableModel:
    """A function `prompt -> text or dict`, sync or async, as a model. It knows no tools: wrap it in the text protocol.

    Errors of the function pass through as they are.
    """

    def __init__(self, function: Callable[[str], Answer | Awaitable[Answer]], name: str = "callable") -> None:
        self.name = name
        self._function = function

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelPart, None]:
        """The function's answer to all messages written as one prompt."""
        answer = self._function(prompt(messages))
        text = text_of(await answer if inspect.isawaitable(answer) else answer)
        if options.stream and text:
            yield TextDelta(text)
        yield Reply(assistant(text), "stop", Usage(requests=1))

    async def aclose(self) -> None:
        """Nothing to give back."""


def prompt(messages: Sequence[Message]) -> str:
    """A conversation as one text: the system's words first, then who said what."""
    names = {"system": "", "user": "User: ", "assistant": "Assistant: ", "tool": "Tool result: "}
    said = [f"{names[message.role]}{message.content}" for message in messages]
    return "\n\n".join([*said, "Assistant:"])


def text_of(answer: Answer) -> str:
    """The text of a service's answer: itself, the first field that holds one, or the dict as JSON."""
    if isinstance(answer, str):
        return answer
    wants_calls = "tool_calls" in answer or answer.get("action") == "tool_call"
    for field in () if wants_calls else FIELDS:
        inner = answer.get(field)
        if isinstance(inner, str) and inner:
            return inner
        if isinstance(inner, Mapping):
            return text_of(inner)
    return orjson.dumps(dict(answer), default=str).decode()
