"""A model from a Python function that takes a prompt and returns text or a dict."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import orjson

from opposable.domain.errors import ModelError
from opposable.domain.events import ModelEvent, Reply, TextDelta
from opposable.domain.json_text import dump_json
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions

CallableAnswer = str | Mapping[str, Any]
TEXT_FIELDS = ("response", "result", "text", "content", "sql")
"""Fields of a dict that may contain the text, in order of preference."""

_CALL_FIELDS = ("action", "tool_calls")
_ANSWER_META_FIELDS = frozenset(("action", "reasoning", "thought", "thinking"))


class CallableModel:
    """A model from a function `prompt -> text or dict`, async, or sync and then called in a thread.

    It ignores tools: wrap it in `TextProtocolModel` for tool calls. Errors of the function are not translated.
    """

    unsupported_options = frozenset({"max_tokens", "temperature", "seed", "top_logprobs", "response_schema"})

    def __init__(
        self, function: Callable[[str], CallableAnswer | Awaitable[CallableAnswer]], name: str = "callable"
    ) -> None:
        self.name = name
        self._function = function

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Call the function with all messages as one prompt."""
        is_async = any(map(inspect.iscoroutinefunction, (self._function, type(self._function).__call__)))
        prompt = render_prompt(messages)
        answer = self._function(prompt) if is_async else await asyncio.to_thread(self._function, prompt)
        text = extract_text(await answer if inspect.isawaitable(answer) else answer)
        text = text[: min((at for stop in options.stop if (at := text.find(stop)) >= 0), default=len(text))]
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
    """Return the text of an answer: a text field of a dict, or the dict as JSON.

    A text that is such a dict as JSON is read like the dict.

    Raises:
        ModelError: The answer is neither text nor a dict.
    """
    if isinstance(answer, str):
        wrapped = _parse_wrapper(answer)
        return answer if wrapped is None else extract_text(wrapped)
    if not isinstance(answer, Mapping):
        raise ModelError(
            f"The function of the model returned {answer!r:.100} ({type(answer).__name__}). Return text or a dict with "
            f"one of the fields {', '.join(TEXT_FIELDS)}."
        )
    wants_calls = "tool_calls" in answer or answer.get("action") == "tool_call"
    for field in () if wants_calls else TEXT_FIELDS:
        inner = answer.get(field)
        if isinstance(inner, str) and inner:
            return inner
        if isinstance(inner, Mapping) and any(name in inner for name in (*TEXT_FIELDS, *_CALL_FIELDS)):
            return extract_text(inner)
        if inner is not None and inner != "":
            return dump_json(inner).decode()
    return dump_json(dict(answer), default=str).decode()


def _parse_wrapper(text: str) -> Mapping[str, Any] | None:
    """Return the dict that a text is the JSON of, if it holds an answer and nothing else."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = orjson.loads(text.encode("utf-8", "replace"))
    except orjson.JSONDecodeError:
        return None
    fields = set(value) & set(TEXT_FIELDS)
    return value if fields and set(value) <= fields | _ANSWER_META_FIELDS else None
