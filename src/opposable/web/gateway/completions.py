"""A request answered by a model so that a client can use it: calls held until they are right, text as it comes."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import orjson

from opposable.agent.history import detect_conversation_language
from opposable.domain.errors import ModelError
from opposable.domain.events import CallDelta, FinishReason, ModelEvent, Reply, TextDelta
from opposable.domain.messages import Message, assistant_message, system_message
from opposable.domain.tools import ToolCall
from opposable.domain.usage import Usage
from opposable.models.base import ForcedTool, Model, ModelOptions
from opposable.models.text_protocol import TextProtocolModel
from opposable.web.gateway.request import CompletionRequest
from opposable.web.gateway.tool_calls import CallTriage, build_correction_messages, triage_calls

_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)


async def stream_reply(model: Model, request: CompletionRequest) -> AsyncGenerator[ModelEvent, None]:
    """The reply in parts: text and reasoning as they come, and a `Reply` last, whose calls are right.

    Where a reply's only calls are of tools not offered or cannot be read, or a demanded call is missing, the model is
    told so and asked once more. Raises: `ModelError` kinds.
    """
    if request.is_without_tools:
        parts = _unwrap_text_protocol(model).stream(request.messages, (), request.options)
    elif request.options.response_schema is not None and request.options.tool_choice == "auto":
        parts = _stream_with_response_format(model, request)
    else:
        parts = _stream_with_calls(model, request)
    async with aclosing(parts):
        async for part in parts:
            yield part


def _unwrap_text_protocol(model: Model) -> Model:
    """The model whose text nobody reads for calls."""
    while isinstance(model, TextProtocolModel):
        model = model.inner
    return model


async def _stream_with_calls(model: Model, request: CompletionRequest) -> AsyncGenerator[ModelEvent, None]:
    """A reply whose calls are right, after at most one more try."""
    first = _Attempt(model, request, request.messages)
    async with aclosing(first.stream()) as parts:
        async for part in parts:
            yield part
    found = first.triage
    if found.valid_calls or found.is_cut_off or not (found.invalid_calls or found.is_call_missing):
        yield _finalize_reply(request, first.reply, found.valid_calls, is_cut_off=found.is_cut_off)
        return
    second = _Attempt(model, request, [*request.messages, *build_correction_messages(first.reply, found, request)])
    try:
        async with aclosing(second.stream(preceding_text=first.reply.message.content)) as parts:
            async for part in parts:
                yield part
    except ModelError:
        if not _get_raw_text(first):
            raise
        second = first
    reply = first.reply if second is first else _join_replies(first.reply, second.reply)
    calls = second.triage.valid_calls or _get_unparsed_native_calls(second.triage, request)
    if not calls and not reply.message.content and (text := _get_raw_text(second) or _get_raw_text(first)):
        reply = replace(reply, message=assistant_message(text, (), reply.message.thinking))
        if request.options.stream:
            yield TextDelta(text)
    yield _finalize_reply(request, reply, calls, is_cut_off=second.triage.is_cut_off)


class _Attempt:
    """One asking of the model, and what came of it."""

    def __init__(self, model: Model, request: CompletionRequest, messages: Sequence[Message]) -> None:
        self.reply = Reply(assistant_message(""))
        self.triage = CallTriage(())
        self._model = model
        self._request = request
        self._messages = messages

    async def stream(self, preceding_text: str = "") -> AsyncGenerator[ModelEvent, None]:
        """Text and reasoning as they come, set off from the text `after` which they come; calls and reply are kept."""
        gap = "\n\n" if preceding_text else ""
        stream = self._model.stream(self._messages, self._request.tools, self._request.options)
        async with aclosing(stream) as parts:
            async for part in parts:
                if type(part) is Reply:
                    self.reply = part
                    self.triage = triage_calls(part, self._request)
                elif type(part) is TextDelta and gap:
                    yield TextDelta(gap + part.text)
                    gap = ""
                elif type(part) is not CallDelta:
                    yield part


async def _stream_with_response_format(model: Model, request: CompletionRequest) -> AsyncGenerator[ModelEvent, None]:
    """A reply with calls, or one whose text fits the schema that was asked for.

    A server that enforces the schema leaves no room for calls. So the schema is told in words, and enforced in a
    second asking where the answer does not fit.
    """
    schema = request.options.response_schema or {}
    told = _add_schema_instruction(request.messages, schema)
    free = replace(request, messages=told, options=replace(request.options, response_schema=None))
    reply = Reply(assistant_message(""))
    async with aclosing(_stream_with_calls(model, free)) as parts:
        async for part in parts:
            if type(part) is Reply:
                reply = part
    if not reply.message.tool_calls and reply.finish == "stop":
        text = _extract_matching_json(reply.message.content, schema)
        if text is None:
            options: ModelOptions = replace(request.options, tool_choice="none", stream=False)
            async with aclosing(model.stream(told, request.tools, options)) as parts:
                async for part in parts:
                    if type(part) is Reply:
                        reply = replace(part, usage=reply.usage + part.usage)
            text = _extract_matching_json(reply.message.content, schema) or reply.message.content
        reply = replace(reply, message=assistant_message(text, (), reply.message.thinking))
    if request.options.stream and reply.message.content:
        yield TextDelta(reply.message.content)
    yield reply


def _add_schema_instruction(messages: Sequence[Message], schema: dict[str, Any]) -> tuple[Message, ...]:
    """The messages with the schema of the final answer told in the system message."""
    written = orjson.dumps(schema).decode()
    if detect_conversation_language(messages) == "zh":
        words = f"最终答案必须是符合以下 JSON Schema 的 JSON，不要有其他内容：\n{written}"
    else:
        words = f"Your final answer must be JSON that fits this JSON Schema, and nothing else:\n{written}"
    if messages and messages[0].role == "system":
        return (system_message(f"{messages[0].content}\n\n{words}"), *messages[1:])
    return (system_message(words), *messages)


def _extract_matching_json(text: str, schema: dict[str, Any]) -> str | None:
    """The JSON in `text` if it fits the schema."""
    import jsonschema_rs

    fence = _FENCE.match(text)
    inner = (fence[1] if fence else text).strip()
    try:
        value = orjson.loads(inner)
        fits = jsonschema_rs.is_valid(schema, value, retriever=_refuse_reference)
    except (orjson.JSONDecodeError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError, ValueError):
        return None
    return inner if fits else None


def _refuse_reference(uri: str) -> Any:
    raise ValueError(f"{uri} stands elsewhere and is not fetched.")


def _get_unparsed_native_calls(triage: CallTriage, request: CompletionRequest) -> tuple[ToolCall, ...]:
    """Calls of offered tools that the model server itself parsed, whose arguments nobody can read.

    They go to the client as they are, which can tell its model what is wrong with them.
    """
    choice = request.options.tool_choice
    names = {choice.name} if isinstance(choice, ForcedTool) else {tool.name for tool in request.tools}
    return tuple(call for call, _ in triage.invalid_calls if call.dialect == "native" and call.name in names)


def _get_raw_text(attempt: _Attempt) -> str:
    """The text of a try; where there is none, what it wrote that was taken for a call."""
    return attempt.reply.message.content or "\n".join(call.arguments_json for call, _ in attempt.triage.invalid_calls)


def _join_replies(first: Reply, second: Reply) -> Reply:
    said = second.message
    text = "\n\n".join(filter(None, (first.message.content, said.content)))
    thinking = "\n\n".join(filter(None, (first.message.thinking, said.thinking)))
    usage: Usage = first.usage + second.usage
    return Reply(assistant_message(text, said.tool_calls, thinking), second.finish, usage)


def _finalize_reply(
    request: CompletionRequest, reply: Reply, calls: tuple[ToolCall, ...], *, is_cut_off: bool
) -> Reply:
    """The reply as the client gets it."""
    given = calls[:1] if request.single_call_only else calls
    finish: FinishReason = "tool_calls" if given else reply.finish
    if not given and finish == "tool_calls":
        finish = "length" if is_cut_off else "stop"
    return Reply(assistant_message(reply.message.content, given, reply.message.thinking), finish, reply.usage)
