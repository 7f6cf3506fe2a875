"""Chat completions relayed unchanged between a client and a model's server.

Only calls are held back until the reply is complete: a reply that was cut off has none, and an invalid one is repaired
or corrected. Everything else passes byte by byte.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from opposable.agent.history import match_results_to_calls
from opposable.domain.errors import ModelRejected
from opposable.domain.events import CUT_OFF, Reply, TextDelta
from opposable.domain.json_text import dump_json, parse_reply_json
from opposable.domain.messages import Message, assistant_message, tool_message
from opposable.domain.tools import ToolCall
from opposable.models.base import Model
from opposable.models.marker_calls import add_marked_calls, split_at_marker
from opposable.models.openai_compatible import StreamAccumulator, parse_completion
from opposable.models.profile import get_profile
from opposable.models.upstream import ClientRequest, Upstream, find_upstream
from opposable.parsers import escape_special_tokens
from opposable.web.gateway.call_rewriting import CallRewriter, parse_frame
from opposable.web.gateway.completions import finalize_reply, read_reply, stream_with_calls
from opposable.web.gateway.relay_meter import RelayMeter
from opposable.web.gateway.request import CompletionRequest, parse_body
from opposable.web.gateway.response import ChunkSerializer, get_finish_reason, serialize_call, serialize_usage
from opposable.web.gateway.tool_calls import resolve_native_calls, triage_calls
from opposable.web.openai_errors import GatewayError

_USAGE_NOT_REQUESTED = b',"usage":null'
"""What servers add to each chunk if usage is requested. Unescaped, it cannot be part of a text."""


def find_relay(model: Model, body: Mapping[str, Any]) -> Upstream | None:
    """Return the server to which a request can be relayed, None if the gateway has to process it.

    Requests without tools are relayed to every server. With tools, the server must return calls natively.
    """
    upstream = find_upstream(model, "chat/completions")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        return None
    if get_profile(model).image_placeholders and any(isinstance(message.get("content"), list) for message in messages):
        return None
    if not body.get("tools") and not body.get("functions") and not _has_calls(messages):
        return upstream
    calling = get_profile(model).calling
    response_format = body.get("response_format")
    has_schema = isinstance(response_format, dict) and response_format.get("type") != "text"
    return upstream if calling == "native" or (calling == "auto" and not has_schema) else None


def _has_calls(messages: Sequence[Mapping[str, Any]]) -> bool:
    return any(message.get("tool_calls") or message.get("role") == "tool" for message in messages)


def _match_results(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages with the results of every call directly after it, as servers require."""
    outlines = [_outline(message) for message in messages]
    originals = {id(outline): message for outline, message in zip(outlines, messages, strict=True)}
    return [
        originals.get(id(message)) or {"role": "tool", "tool_call_id": message.call_id, "content": message.content}
        for message in match_results_to_calls(outlines)
    ]


def _outline(message: Mapping[str, Any]) -> Message:
    """Return what identifies the calls or the result of a message."""
    if message.get("role") == "tool":
        return tool_message(str(message.get("tool_call_id")), "", "")
    calls, text = message.get("tool_calls"), message.get("content")
    identified = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    made = tuple(ToolCall(str(call.get("id")), "", {}) for call in identified)
    return assistant_message(text if isinstance(text, str) else "", made)


@dataclass(frozen=True, slots=True)
class _CheckedReply:
    """A changed reply.

    Attributes:
        reply: The reply for the client; the one of the server, if its model has to correct it.
        sent_calls: For each call of the server the one for the client, None for a dropped one; None if the text changed.
        needs_correction: Whether the model should correct the calls of the reply, or add a required one.
    """

    reply: Reply
    sent_calls: tuple[ToolCall | None, ...] | None = None
    needs_correction: bool = False


class CompletionRelay:
    """One relayed completion.

    Args:
        upstream: The server.
        model: The model, for a correction of invalid calls.
        client: The request of the client.
    """

    def __init__(self, upstream: Upstream, model: Model, client: ClientRequest) -> None:
        self._upstream = upstream
        self._model = model
        self._client = client
        self._body = body = client.body
        self._meter = RelayMeter(model, body)
        has_tools = bool(body.get("tools")) and body.get("n") in (None, 1)
        self._checks_calls = has_tools
        self._is_searched = has_tools and get_profile(model).calling == "auto" and body.get("tool_choice") != "none"

    @cached_property
    def _request(self) -> CompletionRequest | None:
        """The parsed request, None if it has tools that the gateway cannot check."""
        try:
            return parse_body(self._body)
        except GatewayError:
            return None

    async def fetch(self) -> bytes:
        """Return the body of a whole completion.

        Raises:
            ModelError: If the server fails.
        """
        with self._meter:
            raw = await self._upstream.send(self._get_upstream_request())
            response = self._parse_response(raw)
            self._meter.read_usage(response.get("usage") or {})
        if not self._checks_calls:
            return raw
        try:
            reply = parse_completion(response)
        except (KeyError, IndexError, TypeError, AttributeError):
            return raw
        checked = self._check(reply)
        if checked is None:
            return raw
        if checked.sent_calls is not None:
            CallRewriter(reply, checked.sent_calls, checked.reply.finish).rewrite_completion(response)
        elif checked.needs_correction:
            assert self._request is not None
            corrected = await read_reply(stream_with_calls(self._model, self._request, checked.reply))
            _replace_reply(response, corrected)
            response["usage"] = serialize_usage(corrected.usage)
        else:
            _replace_reply(response, checked.reply)
        return dump_json(response)

    def _parse_response(self, raw: bytes) -> dict[str, Any]:
        try:
            response = parse_reply_json(raw)
        except ValueError as error:
            raise ModelRejected(f"The response of {self._upstream.url} is not JSON ({raw[:120]!r}).") from error
        if isinstance(response, dict) and "choices" in response:
            return response
        if isinstance(response, dict) and response.get("error"):
            raise ModelRejected(f"The model server at {self._upstream.url} broke off.", status=400, response=raw)
        raise ModelRejected(f"The server at {self._upstream.url} sent no chat completion: {raw[:200]!r}")

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield a streamed completion as server-sent events.

        Raises:
            ModelError: If the server fails.
        """
        accumulator = StreamAccumulator()
        held: list[bytes] = []
        held_text, sent_length = "", 0
        head: dict[str, Any] = {}
        is_holding = False
        with self._meter:
            async with aclosing(self._upstream.stream(self._get_upstream_request())) as blocks:
                async for received in blocks:
                    self._meter.count_events(received)
                    block = self._filter_usage(received) if b'"usage"' in received else received
                    is_unchecked = not held and not self._is_searched and b'"tool_calls"' not in block
                    if not self._checks_calls or is_unchecked or self._request is None:
                        yield block
                        continue
                    sent: list[bytes] = []
                    for frame in filter(None, block.split(b"\n\n")):
                        chunk = parse_frame(frame)
                        if held and chunk.get("error"):  # calls before an error may be incomplete
                            yield frame + b"\n\n"
                            return
                        head = head or chunk
                        _add_chunk(accumulator, chunk)
                        text, has_calls = _read_delta(chunk)
                        is_holding = is_holding or has_calls
                        if self._is_searched and not is_holding and text:
                            _, held_text, is_holding = split_at_marker(held_text + text)
                        held.append(frame)
                        if not held_text and not is_holding:
                            sent += held
                            sent_length = len(accumulator.text)
                            held.clear()
                    if sent:
                        yield b"\n\n".join(sent) + b"\n\n"
        if held:
            reply = replace(accumulator.to_reply(), usage=replace(self._meter.usage, requests=1))
            async for event in self._finish(reply, held, "".join(accumulator.text[:sent_length]), head):
                yield event

    async def _finish(
        self, reply: Reply, held: list[bytes], sent_text: str, head: dict[str, Any]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the held events, or new ones if the calls were changed."""
        checked = self._check(reply)
        if checked is None:
            yield b"\n\n".join(held) + b"\n\n"
            return
        if checked.sent_calls is not None and any(_has_finish_reason(frame) for frame in held):
            rewriter = CallRewriter(reply, checked.sent_calls, checked.reply.finish)
            yield b"\n\n".join(filter(None, map(rewriter.rewrite_frame, held))) + b"\n\n"
            return
        serializer = ChunkSerializer(str(head.get("model", "")), self._is_usage_requested, head)
        if not checked.needs_correction:
            rest = checked.reply.message.content
            if self._is_searched and rest.startswith(sent_text) and len(rest) > len(sent_text):
                yield serializer.serialize(TextDelta(rest[len(sent_text) :]))
            yield serializer.serialize(checked.reply)
            return
        assert self._request is not None
        async with aclosing(stream_with_calls(self._model, self._request, checked.reply)) as events:
            async for event in events:
                if chunks := serializer.serialize(event):
                    yield chunks

    def _check(self, reply: Reply) -> _CheckedReply | None:
        """Return the reply for the client, None if it is unchanged."""
        request = self._request
        if request is None:
            return None
        marked, invalid_calls = reply, []
        if self._is_searched:
            marked = add_marked_calls(reply, request.tools)
            triage = triage_calls(marked, request)
            calls, is_cut_off = triage.valid_calls, triage.is_cut_off or marked.finish in CUT_OFF
            if triage.is_call_missing or (triage.invalid_calls and not calls and not is_cut_off):
                return _CheckedReply(marked, needs_correction=True)
            invalid_calls = [call for call, _ in triage.invalid_calls]
        else:
            is_cut_off = reply.finish in CUT_OFF
            calls = () if is_cut_off else resolve_native_calls(reply.message.tool_calls, request)
        final = finalize_reply(request, marked, () if is_cut_off else calls, is_cut_off=is_cut_off)
        if marked is not reply:
            return _CheckedReply(final)
        received = reply.message.tool_calls
        if _are_same_calls(final.message.tool_calls, received):
            return None
        valid = [n for n, call in enumerate(received) if not call.truncated and call not in invalid_calls]
        sent = dict(zip(valid, final.message.tool_calls, strict=False))
        return _CheckedReply(final, tuple(sent.get(n) for n in range(len(received))))

    @property
    def _is_usage_requested(self) -> bool:
        options = self._body.get("stream_options")
        return isinstance(options, dict) and options.get("include_usage") is True

    def _get_upstream_request(self) -> ClientRequest:
        """Return the request with the usage of a stream requested, and results matched and escaped for a text prompt."""
        body = dict(self._body)
        options = body.get("stream_options")
        if body.get("stream") is True and (options is None or isinstance(options, dict)):
            body["stream_options"] = {**(options or {}), "include_usage": True}
        if _has_calls(body["messages"]):
            body["messages"] = _match_results(body["messages"])
        if get_profile(self._model).calling == "auto" and body.get("tools"):
            body["messages"] = [
                {**message, "content": escape_special_tokens(message["content"])}
                if message.get("role") == "tool" and isinstance(message.get("content"), str)
                else message
                for message in body["messages"]
            ]
        return self._meter.bound_by_budget(replace(self._client, body=body), self._upstream)

    def _filter_usage(self, block: bytes) -> bytes:
        """Return the events without the usage that the client did not request, and note it."""
        sent: list[bytes] = []
        for frame in block.split(b"\n\n"):
            if b'"usage":{' in frame or b'"usage": {' in frame:
                chunk = parse_frame(frame)
                self._meter.read_usage(chunk.get("usage") or {})
                if not self._is_usage_requested and not chunk.get("choices"):
                    continue
            sent.append(frame)
        joined = b"\n\n".join(sent)
        return joined if self._is_usage_requested else joined.replace(_USAGE_NOT_REQUESTED, b"")


def _add_chunk(accumulator: StreamAccumulator, chunk: dict[str, Any]) -> None:
    try:
        accumulator.add_chunk(chunk)
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelRejected(f"The server streamed a malformed chunk: {str(chunk)[:120]}") from error


def _read_delta(chunk: dict[str, Any]) -> tuple[str, bool]:
    """Return the text of a chunk, and whether it has calls."""
    try:
        delta = chunk["choices"][0].get("delta") or {}
        text = delta.get("content")
        return text if isinstance(text, str) else "", bool(delta.get("tool_calls"))
    except (KeyError, IndexError, TypeError, AttributeError):
        return "", False


def _are_same_calls(calls: tuple[ToolCall, ...], others: tuple[ToolCall, ...]) -> bool:
    return [(call.id, call.name, call.arguments_json) for call in calls] == [
        (call.id, call.name, call.arguments_json) for call in others
    ]


def _has_finish_reason(frame: bytes) -> bool:
    choices = parse_frame(frame).get("choices")
    return bool(choices and choices[0].get("finish_reason"))


def _replace_reply(response: dict[str, Any], reply: Reply) -> None:
    """Replace the text and calls of a completion."""
    choice = response["choices"][0]
    message = choice["message"]
    message.pop("tool_calls", None)
    message["content"] = reply.message.content or (None if reply.message.tool_calls else message.get("content"))
    if reply.message.tool_calls:
        message["tool_calls"] = [serialize_call(call, call.arguments_json) for call in reply.message.tool_calls]
    choice["finish_reason"] = get_finish_reason(reply)
