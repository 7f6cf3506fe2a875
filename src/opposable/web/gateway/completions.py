"""A request answered by a model so that a client can use it: calls held until they are right, text as it comes."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import orjson

from opposable.agent.history import spoken
from opposable.domain.errors import ModelError
from opposable.domain.events import CallDelta, FinishReason, ModelPart, Reply, TextDelta
from opposable.domain.messages import Message, assistant, system
from opposable.domain.tools import ToolCall
from opposable.domain.usage import Usage
from opposable.models.base import Model, ModelOptions, Named
from opposable.models.text_protocol import TextProtocolModel
from opposable.web.gateway.request import ChatRequest
from opposable.web.gateway.tool_calls import Sorted, correction, sort_calls

_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)


async def answer(model: Model, request: ChatRequest) -> AsyncGenerator[ModelPart, None]:
    """The reply in parts: text and reasoning as they come, and a `Reply` last, whose calls are right.

    Where a reply's only calls are of tools not offered or cannot be read, or a demanded call is missing, the model is
    told so and asked once more. Raises: `ModelError` kinds.
    """
    if request.plain:
        parts = _verbatim(model).stream(request.messages, (), request.options)
    elif request.options.response_schema is not None and request.options.tool_choice == "auto":
        parts = _in_shape(model, request)
    else:
        parts = _with_calls(model, request)
    async with aclosing(parts):
        async for part in parts:
            yield part


def _verbatim(model: Model) -> Model:
    """The model whose text nobody reads for calls."""
    while isinstance(model, TextProtocolModel):
        model = model.inner
    return model


async def _with_calls(model: Model, request: ChatRequest) -> AsyncGenerator[ModelPart, None]:
    """A reply whose calls are right, after at most one more try."""
    first = _Try(model, request, request.messages)
    async with aclosing(first.parts()) as parts:
        async for part in parts:
            yield part
    found = first.found
    if found.good or found.cut or not (found.bad or found.missing):
        yield _final(request, first.reply, found.good, cut=found.cut)
        return
    second = _Try(model, request, [*request.messages, *correction(first.reply, found, request)])
    try:
        async with aclosing(second.parts(after=first.reply.message.content)) as parts:
            async for part in parts:
                yield part
    except ModelError:
        if not _written(first):
            raise
        second = first
    reply = first.reply if second is first else _joined(first.reply, second.reply)
    calls = second.found.good or _as_they_are(second.found, request)
    if not calls and not reply.message.content and (text := _written(second) or _written(first)):
        reply = replace(reply, message=assistant(text, (), reply.message.thinking))
        if request.options.stream:
            yield TextDelta(text)
    yield _final(request, reply, calls, cut=second.found.cut)


class _Try:
    """One asking of the model, and what came of it."""

    def __init__(self, model: Model, request: ChatRequest, messages: Sequence[Message]) -> None:
        self.reply = Reply(assistant(""))
        self.found = Sorted(())
        self._model = model
        self._request = request
        self._messages = messages

    async def parts(self, after: str = "") -> AsyncGenerator[ModelPart, None]:
        """Text and reasoning as they come, set off from the text `after` which they come; calls and reply are kept."""
        gap = "\n\n" if after else ""
        stream = self._model.stream(self._messages, self._request.tools, self._request.options)
        async with aclosing(stream) as parts:
            async for part in parts:
                if type(part) is Reply:
                    self.reply = part
                    self.found = sort_calls(part, self._request)
                elif type(part) is TextDelta and gap:
                    yield TextDelta(gap + part.text)
                    gap = ""
                elif type(part) is not CallDelta:
                    yield part


async def _in_shape(model: Model, request: ChatRequest) -> AsyncGenerator[ModelPart, None]:
    """A reply with calls, or one whose text fits the schema that was asked for.

    A server that enforces the schema leaves no room for calls. So the schema is told in words, and enforced in a
    second asking where the answer does not fit.
    """
    schema = request.options.response_schema or {}
    told = _told(request.messages, schema)
    free = replace(request, messages=told, options=replace(request.options, response_schema=None))
    reply = Reply(assistant(""))
    async with aclosing(_with_calls(model, free)) as parts:
        async for part in parts:
            if type(part) is Reply:
                reply = part
    if not reply.message.tool_calls and reply.finish == "stop":
        text = _fitting(reply.message.content, schema)
        if text is None:
            options: ModelOptions = replace(request.options, tool_choice="none", stream=False)
            async with aclosing(model.stream(told, request.tools, options)) as parts:
                async for part in parts:
                    if type(part) is Reply:
                        reply = replace(part, usage=reply.usage + part.usage)
            text = _fitting(reply.message.content, schema) or reply.message.content
        reply = replace(reply, message=assistant(text, (), reply.message.thinking))
    if request.options.stream and reply.message.content:
        yield TextDelta(reply.message.content)
    yield reply


def _told(messages: Sequence[Message], schema: dict[str, Any]) -> tuple[Message, ...]:
    """The messages with the schema of the final answer told in the system message."""
    written = orjson.dumps(schema).decode()
    if spoken(messages) == "zh":
        words = f"最终答案必须是符合以下 JSON Schema 的 JSON，不要有其他内容：\n{written}"
    else:
        words = f"Your final answer must be JSON that fits this JSON Schema, and nothing else:\n{written}"
    if messages and messages[0].role == "system":
        return (system(f"{messages[0].content}\n\n{words}"), *messages[1:])
    return (system(words), *messages)


def _fitting(text: str, schema: dict[str, Any]) -> str | None:
    """The JSON in `text` if it fits the schema."""
    import jsonschema_rs

    fence = _FENCE.match(text)
    inner = (fence[1] if fence else text).strip()
    try:
        value = orjson.loads(inner)
        fits = jsonschema_rs.is_valid(schema, value, retriever=_refuse)
    except (orjson.JSONDecodeError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError, ValueError):
        return None
    return inner if fits else None


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} stands elsewhere and is not fetched.")


def _as_they_are(found: Sorted, request: ChatRequest) -> tuple[ToolCall, ...]:
    """Calls of offered tools that the model server itself parsed, whose arguments nobody can read.

    They go to the client as they are, which can tell its model what is wrong with them.
    """
    choice = request.options.tool_choice
    names = {choice.name} if isinstance(choice, Named) else {tool.name for tool in request.tools}
    return tuple(call for call, _ in found.bad if call.dialect == "native" and call.name in names)


def _written(tried: _Try) -> str:
    """The text of a try; where there is none, what it wrote that was taken for a call."""
    return tried.reply.message.content or "\n".join(call.arguments for call, _ in tried.found.bad)


def _joined(first: Reply, second: Reply) -> Reply:
    said = second.message
    text = "\n\n".join(filter(None, (first.message.content, said.content)))
    thinking = "\n\n".join(filter(None, (first.message.thinking, said.thinking)))
    usage: Usage = first.usage + second.usage
    return Reply(assistant(text, said.tool_calls, thinking), second.finish, usage)


def _final(request: ChatRequest, reply: Reply, calls: tuple[ToolCall, ...], *, cut: bool) -> Reply:
    """The reply as the client gets it."""
    given = calls[:1] if request.one_call else calls
    finish: FinishReason = "tool_calls" if given else reply.finish
    if not given and finish == "tool_calls":
        finish = "length" if cut else "stop"
    return Reply(assistant(reply.message.content, given, reply.message.thinking), finish, reply.usage)
