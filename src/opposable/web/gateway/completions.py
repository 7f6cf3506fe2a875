"""Completions of models, with validation and correction of their tool calls."""

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from opposable.agent.history import detect_conversation_language
from opposable.app.media import inline_remote_media
from opposable.domain.errors import BadInput, InvalidArguments, ModelError
from opposable.domain.events import CUT_OFF, CallDelta, FinishReason, ModelEvent, Reply, TextDelta
from opposable.domain.json_text import dump_json, parse_reply_json
from opposable.domain.messages import Message, add_instructions, assistant_message
from opposable.domain.tools import ToolCall
from opposable.domain.usage import Usage
from opposable.models.base import Model, ModelOptions
from opposable.models.profile import adapt_media, get_profile
from opposable.models.text_protocol import TextProtocolModel
from opposable.tools.json_schema_validation import compile_validator
from opposable.web.gateway.parameters import find_names, resolve_extra_body
from opposable.web.gateway.request import CompletionRequest
from opposable.web.gateway.tool_calls import (
    CallTriage,
    add_correction,
    resolve_native_calls,
    triage_calls,
)
from opposable.web.gateway.tool_schemas import normalize_tools
from opposable.web.openai_errors import GatewayError
from opposable.web.telemetry.metered_model import MeteredModel

_FENCE = re.compile(r"\s*```(?:json)?[^\S\n]*\n(.*)```\s*\Z", re.DOTALL)


async def stream_reply(model: Model, request: CompletionRequest) -> AsyncGenerator[ModelEvent, None]:
    """Yield text and reasoning as they arrive, and at last a `Reply` with its calls.

    A model that writes its calls as text gets one chance to correct a reply that has only invalid calls, or lacks a
    required call.

    Raises:
        BadInput: If the model does not take the images of the request.
        GatewayError: 400, for a parameter that the model does not support.
        ModelError: If the model fails.
    """
    if any(message.parts for message in request.messages):
        messages = adapt_media(model, request.messages)
        request = replace(request, messages=await inline_remote_media(messages))
    if request.extra or request.hints:
        extra_body = resolve_extra_body(model, request.extra, request.hints)
        request = replace(request, options=replace(request.options, extra_body=extra_body))
    stream_calls = _choose_stream(model)
    if stream_calls is _stream_with_calls:
        request = replace(request, tools=normalize_tools(request.tools))
    if request.options.response_schema is not None and "response_schema" in find_names(model, "unsupported_options"):
        unwrapped = _unwrap_text_protocol(model) if request.is_without_tools else model
        events = _stream_with_response_format(unwrapped, request)
    elif stream_calls is _stream_native:
        events = _stream_native(model, request)
    elif request.is_without_tools:
        events = _unwrap_text_protocol(model).stream(request.messages, (), request.options)
    elif request.options.response_schema is not None and request.options.tool_choice == "auto":
        events = _stream_with_response_format(model, request)
    else:
        events = _stream_with_calls(model, request)
    async with aclosing(events):
        async for event in events:
            yield event


async def fetch_reply(model: Model, request: CompletionRequest) -> Reply:
    """Return the whole reply. Raises: as `stream_reply`."""
    return await read_reply(stream_reply(model, request))


async def read_reply(stream: AsyncGenerator[ModelEvent, None]) -> Reply:
    """Return the reply at the end of a stream.

    Raises:
        GatewayError: 502, if the stream has no reply.
    """
    async with aclosing(stream) as events:
        async for event in events:
            if type(event) is Reply:
                return event
    raise GatewayError(502, "The model returned no reply.", kind="server_error", code="model_failed")


async def _stream_native(model: Model, request: CompletionRequest) -> AsyncGenerator[ModelEvent, None]:
    """Pass a provider's reply on, without the calls of a reply that was cut off.

    Valid calls are unchanged, invalid ones are repaired where that is possible without loss.
    """
    options = request.options
    if request.single_call_only and request.tools:
        options = replace(options, extra_body={**options.extra_body, "parallel_tool_calls": False})
    async with aclosing(model.stream(request.messages, request.tools, options)) as events:
        async for event in events:
            if type(event) is Reply:
                is_cut_off = event.finish in CUT_OFF
                calls = () if is_cut_off else resolve_native_calls(event.message.tool_calls, request)
                yield finalize_reply(request, event, calls, is_cut_off=is_cut_off)
            else:
                yield event


def _unwrap_text_protocol(model: Model) -> Model:
    """Return the model without the wrappers that parse calls in its text."""
    if isinstance(model, MeteredModel):
        return model.with_inner(_unwrap_text_protocol(model.inner))
    while isinstance(model, TextProtocolModel):
        model = model.inner
    return model


def _choose_stream(model: Model) -> Callable[[Model, CompletionRequest], AsyncGenerator[ModelEvent, None]]:
    return _stream_native if get_profile(model).calling in ("native", "auto") else _stream_with_calls


async def _stream_with_calls(model: Model, request: CompletionRequest) -> AsyncGenerator[ModelEvent, None]:
    """Stream a reply with valid calls, after at most one correction by the model."""
    first = _Attempt(model, request, request.messages)
    async with aclosing(first.stream()) as events:
        async for event in events:
            yield event
    triage = first.triage
    if triage.valid_calls or triage.is_cut_off or not (triage.invalid_calls or triage.is_call_missing):
        yield finalize_reply(request, first.reply, triage.valid_calls, is_cut_off=triage.is_cut_off)
        return
    second = _Attempt(model, request, add_correction(first.reply, triage, request))
    try:
        async with aclosing(second.stream(preceding_text=first.reply.message.content)) as events:
            async for event in events:
                yield event
    except ModelError:
        if not _get_raw_text(first):
            raise
        second = first
    reply = first.reply if second is first else _join_replies(first.reply, second.reply)
    unrepaired = tuple(call for call, _ in second.triage.invalid_calls if call.dialect == "native")
    calls = second.triage.valid_calls or unrepaired
    if not calls and not reply.message.content and (text := _get_raw_text(second) or _get_raw_text(first)):
        reply = replace(reply, message=assistant_message(text, (), reply.message.thinking))
        if request.options.stream:
            yield TextDelta(text)
    yield finalize_reply(request, reply, calls, is_cut_off=second.triage.is_cut_off)


class _Attempt:
    """One model request and its outcome.

    Attributes:
        reply: The reply, once the stream has ended.
        triage: The calls of the reply.
    """

    def __init__(self, model: Model, request: CompletionRequest, messages: Sequence[Message]) -> None:
        self.reply = Reply(assistant_message(""))
        self.triage = CallTriage(())
        self._model = model
        self._request = request
        self._messages = messages

    async def stream(self, preceding_text: str = "") -> AsyncGenerator[ModelEvent, None]:
        """Yield text and reasoning, and store the reply and its calls.

        The text is separated from the preceding text.
        """
        separator = "\n\n" if preceding_text else ""
        stream = self._model.stream(self._messages, self._request.tools, self._request.options)
        async with aclosing(stream) as events:
            async for event in events:
                if type(event) is Reply:
                    self.reply = event
                    self.triage = triage_calls(event, self._request)
                elif type(event) is TextDelta and separator:
                    yield TextDelta(separator + event.text, event.is_refusal)
                    separator = ""
                elif type(event) is not CallDelta:
                    yield event


async def _stream_with_response_format(model: Model, request: CompletionRequest) -> AsyncGenerator[ModelEvent, None]:
    """Stream a reply with calls, or with a text that matches the requested schema.

    A server that enforces a schema cannot return calls, and some models cannot enforce one. So the instructions state
    the schema, and only a final answer that does not match it is requested again, with enforcement where there is one.
    """
    schema = request.options.response_schema or {}
    messages = _add_schema_instruction(request.messages, schema)
    unenforced = replace(request, messages=messages, options=replace(request.options, response_schema=None))
    reply = await read_reply(_choose_stream(model)(model, unenforced))
    if not reply.message.tool_calls and reply.finish == "stop" and not reply.message.is_refusal:
        text = _extract_matching_json(reply.message.content, schema)
        if text is None:
            options: ModelOptions = replace(request.options, tool_choice="none", stream=False)
            enforced = await read_reply(model.stream(messages, request.tools, options))
            reply = replace(enforced, usage=reply.usage + enforced.usage)
            text = _extract_matching_json(reply.message.content, schema) or reply.message.content
        reply = replace(reply, message=assistant_message(text, (), reply.message.thinking))
    if request.options.stream and reply.message.content:
        yield TextDelta(reply.message.content, reply.message.is_refusal)
    yield reply


def _add_schema_instruction(messages: Sequence[Message], schema: dict[str, Any]) -> tuple[Message, ...]:
    """Return the messages with the schema of the final answer in the system message."""
    schema_text = dump_json(schema).decode()
    if detect_conversation_language(messages) == "zh":
        instruction = f"最终答案必须是符合以下 JSON Schema 的 JSON，不要有其他内容：\n{schema_text}"
    else:
        instruction = f"Your final answer must be JSON that fits this JSON Schema, and nothing else:\n{schema_text}"
    return tuple(add_instructions(messages, instruction))


def _extract_matching_json(text: str, schema: dict[str, Any]) -> str | None:
    """Return the JSON in `text` if it matches the schema, else None. A schema that cannot be used accepts any JSON."""
    fence = _FENCE.match(text)
    json_text = (fence[1] if fence else text).strip()
    try:
        value = parse_reply_json(json_text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    try:
        with suppress(BadInput, ValueError):  # of a schema that cannot be used, or a value that cannot be checked
            compile_validator(schema)(value)
    except InvalidArguments:
        return None
    return json_text


def _get_raw_text(attempt: _Attempt) -> str:
    """Return the text of an attempt, or the text of its invalid calls."""
    return attempt.reply.message.content or "\n".join(call.arguments_json for call, _ in attempt.triage.invalid_calls)


def _join_replies(first: Reply, second: Reply) -> Reply:
    text = "\n\n".join(filter(None, (first.message.content, second.message.content)))
    thinking = "\n\n".join(filter(None, (first.message.thinking, second.message.thinking)))
    usage: Usage = first.usage + second.usage
    return Reply(assistant_message(text, second.message.tool_calls, thinking), second.finish, usage)


def finalize_reply(request: CompletionRequest, reply: Reply, calls: tuple[ToolCall, ...], *, is_cut_off: bool) -> Reply:
    """Return the reply with these calls and the matching finish reason."""
    sent_calls = calls[:1] if request.single_call_only else calls
    finish: FinishReason = "tool_calls" if sent_calls else reply.finish
    if not sent_calls and finish == "tool_calls":
        finish = "length" if is_cut_off else "stop"
    return Reply(replace(reply.message, tool_calls=sent_calls), finish, reply.usage)
