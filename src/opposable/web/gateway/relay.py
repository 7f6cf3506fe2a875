"""Chat completions relayed unchanged between a client and a model's server.

Only calls are held back until the reply is complete: a reply that was cut off has none, and an invalid one is repaired
where that is possible. Everything else passes byte by byte.
"""

import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cached_property
from typing import Any

from opposable.agent.history import match_results_to_calls
from opposable.domain.errors import ModelError, ModelRejected
from opposable.domain.events import CUT_OFF, Reply, TextDelta
from opposable.domain.json_text import dump_json, parse_reply_json, preview_json
from opposable.domain.messages import Message, assistant_message, tool_message
from opposable.domain.tools import ToolCall
from opposable.models.base import Model
from opposable.models.marker_calls import add_marked_calls, split_at_marker
from opposable.models.openai_compatible import StreamAccumulator, parse_completion
from opposable.models.profile import get_profile
from opposable.models.upstream import ClientRequest, Upstream, find_upstream
from opposable.parsers import escape_special_tokens
from opposable.web.gateway.call_rewriting import CallRewriter, drop_cut_off_calls, drop_cut_off_deltas, parse_frame
from opposable.web.gateway.completions import finalize_reply
from opposable.web.gateway.relay_meter import RelayMeter
from opposable.web.gateway.request import CompletionRequest, parse_body
from opposable.web.gateway.response import ChunkSerializer, get_finish_reason, serialize_call
from opposable.web.gateway.tool_calls import resolve_native_calls
from opposable.web.openai_errors import GatewayError

_USAGE_NOT_REQUESTED = b',"usage":null'
"""What servers add to each chunk if usage is requested. Unescaped, it cannot be part of a text."""

_MAY_HAVE_CALLS = re.compile(rb'"(?:tool_calls|function_call)"')


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
    return upstream if get_profile(model).calling in ("native", "auto") else None


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


class CompletionRelay:
    """One relayed completion.

    Args:
        upstream: The server.
        model: The model, whose profile says how it calls tools.
        client: The request of the client.
    """

    def __init__(self, upstream: Upstream, model: Model, client: ClientRequest) -> None:
        self._upstream = upstream
        self._model = model
        self._client = client
        self._body = body = client.body
        self._meter = RelayMeter(model, body)
        self.has_tools = bool(body.get("tools") or body.get("functions"))

    @cached_property
    def request(self) -> CompletionRequest | None:
        """The parsed request, None if the gateway cannot check its calls: with other tools, or several choices."""
        try:
            return parse_body(self._body)
        except GatewayError:
            return None

    @cached_property
    def is_searched(self) -> bool:
        """Whether the text of the reply may have calls in markers."""
        is_auto = get_profile(self._model).calling == "auto" and self._body.get("tool_choice") != "none"
        return is_auto and self.has_tools and self.request is not None

    async def fetch(self) -> bytes:
        """Return the body of a whole completion.

        Raises:
            ModelError: If the server fails.
        """
        with self._meter:
            raw = await self._upstream.send(self._get_upstream_request())
            response = self._parse_response(raw)
            self._meter.read_usage(response.get("usage"))
        if not self.has_tools:
            return raw
        if self.request is None:
            return dump_json(response) if drop_cut_off_calls(response) else raw
        try:
            reply = parse_completion(response)
        except (KeyError, IndexError, TypeError, AttributeError):
            return raw
        checked = self._check(reply)
        if checked is None:
            return raw
        final, sent_calls = checked
        if sent_calls is not None:
            CallRewriter(reply, sent_calls, final.finish).rewrite_completion(response)
        else:
            _replace_reply(response, final)
        return dump_json(response)

    def _parse_response(self, raw: bytes) -> dict[str, Any]:
        try:
            response = parse_reply_json(raw)
        except ValueError as error:
            raise self._upstream.endpoint.build_not_json_error(raw) from error
        if isinstance(response, dict) and "choices" in response:
            return response
        if isinstance(response, dict) and response.get("error"):
            raise ModelRejected(f"The model server at {self._upstream.url} broke off.", status=400, response=raw)
        raise ModelError(f"The server at {self._upstream.url} sent no chat completion: {raw[:200]!r}")

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield a streamed completion as server-sent events.

        Raises:
            ModelError: If the server fails.
        """
        frames = HeldFrames(self)
        with self._meter:
            try:
                async with aclosing(self._upstream.stream(self._get_upstream_request())) as blocks:
                    async for received in blocks:
                        self._meter.count_events(received)
                        block = self._filter_usage(received) if b'"usage"' in received else received
                        if not frames.must_check(block):
                            yield block
                            continue
                        if sent := frames.take(block):
                            yield sent
                        if frames.has_error:
                            return
                        if frames.is_ended:  # the server may close the connection later
                            for event in self._release(frames):
                                yield event
            except ModelError:
                if frames.held:
                    yield frames.drop_cut_off()
                raise
        for event in self._release(frames):
            yield event

    def _release(self, frames: "HeldFrames") -> Iterator[bytes]:
        """Yield the events that are held, without calls that may be incomplete."""
        if frames.held:
            yield from [frames.drop_cut_off()] if self.request is None else self._finish(frames)
            frames.held.clear()

    def _finish(self, frames: "HeldFrames") -> Iterator[bytes]:
        """Yield the held events, or new ones if the calls were changed."""
        held, sent_text = frames.held, frames.sent_text
        reply = frames.to_reply()
        checked = self._check(reply)
        if checked is None:
            yield _join_frames(held)
            return
        final, sent_calls = checked
        if sent_calls is not None and (reply.finish != "incomplete" or any(map(_has_finish_reason, held))):
            rewriter = CallRewriter(reply, sent_calls, final.finish)
            yield _join_frames(filter(None, map(rewriter.rewrite_frame, held)))
            return
        serializer = ChunkSerializer(str(frames.head.get("model", "")), self._is_usage_requested, frames.head)
        rest = final.message.content
        if self.is_searched and rest.startswith(sent_text) and len(rest) > len(sent_text):
            yield serializer.serialize(TextDelta(rest[len(sent_text) :]))
        yield serializer.serialize(final)

    def _check(self, reply: Reply) -> tuple[Reply, tuple[ToolCall | None, ...] | None] | None:
        """Return the reply for the client, None if it is unchanged.

        With it come, for each call of the server, the one for the client or None; they are None if the text changed.
        """
        request = self.request
        if request is None:
            return None
        marked = add_marked_calls(reply, request.tools) if self.is_searched else reply
        is_cut_off = reply.finish in CUT_OFF
        calls = () if is_cut_off else resolve_native_calls(marked.message.tool_calls, request)
        final = finalize_reply(request, marked, calls, is_cut_off=is_cut_off)
        if marked is not reply:
            return final, None
        received = reply.message.tool_calls
        if _are_same_calls(final.message.tool_calls, received):
            return None
        dropped = (None,) * (len(received) - len(final.message.tool_calls))
        return final, (*final.message.tool_calls, *dropped)

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
        profile = get_profile(self._model)
        if profile.calling == "auto" and profile.local and body.get("tools"):
            body["messages"] = [
                {**message, "content": escape_special_tokens(message["content"])}
                if message.get("role") == "tool" and isinstance(message.get("content"), str)
                else message
                for message in body["messages"]
            ]
        return self._meter.limit_to_budget(replace(self._client, body=body), self._upstream)

    def _filter_usage(self, block: bytes) -> bytes:
        """Return the events without the usage that the client did not request, and note it."""
        sent: list[bytes] = []
        for frame in block.split(b"\n\n"):
            if b'"usage":{' in frame or b'"usage": {' in frame:
                chunk = parse_frame(frame)
                self._meter.read_usage(chunk.get("usage"))
                if not self._is_usage_requested and not chunk.get("choices"):
                    continue
            sent.append(frame)
        joined = b"\n\n".join(sent)
        return joined if self._is_usage_requested else joined.replace(_USAGE_NOT_REQUESTED, b"")


class HeldFrames:
    """The events of a stream that are held back: from the first call, or from what may begin one in the text.

    Args:
        relay: The relayed completion. Its request is parsed only for a block that may have to be held.
    """

    def __init__(self, relay: CompletionRelay) -> None:
        self.held: list[bytes] = []
        self.head: dict[str, Any] = {}
        self.has_error = False
        self._relay = relay
        self._accumulator = StreamAccumulator()
        self._held_text, self._sent_length = "", 0
        self._has_call = self.is_ended = False

    @property
    def sent_text(self) -> str:
        """The text of the events that are not held."""
        return "".join(self._accumulator.text[: self._sent_length])

    def must_check(self, block: bytes) -> bool:
        """Return whether a block of events may have to be held."""
        is_checked = self._relay.has_tools and not self.is_ended
        return is_checked and bool(self.held or self._relay.is_searched or _MAY_HAVE_CALLS.search(block))

    def take(self, block: bytes) -> bytes:
        """Add a block of events, and return the events to send now.

        Raises:
            ModelError: A chunk is malformed.
        """
        sent: list[bytes] = []
        for frame in filter(None, block.split(b"\n\n")):
            chunk = parse_frame(frame)
            if self.held and chunk.get("error"):  # calls before an error may be incomplete
                self.has_error = True
                return _join_frames([*sent, *drop_cut_off_deltas(self.held, is_ended=False), frame])
            self._add(frame, chunk)
            if not self._held_text and not self._has_call:
                sent += self.held
                self._sent_length = len(self._accumulator.text)
                self.held.clear()
        return _join_frames(sent) if sent else b""

    def _add(self, frame: bytes, chunk: dict[str, Any]) -> None:
        self.head = self.head or chunk
        self.is_ended = self.is_ended or frame.replace(b" ", b"") == b"data:[DONE]"
        if self._relay.request is not None:
            try:
                self._accumulator.add_chunk(chunk)
            except (KeyError, TypeError, AttributeError) as error:
                raise ModelError(f"The server streamed a malformed chunk: {preview_json(chunk, 120)}") from error
        text, has_calls = _read_delta(chunk)
        self._has_call = self._has_call or has_calls
        if self._relay.is_searched and not self._has_call and text:
            _, self._held_text, self._has_call = split_at_marker(self._held_text + text)
        self.held.append(frame)

    def drop_cut_off(self) -> bytes:
        """Return the held events without calls that may be incomplete."""
        return _join_frames(drop_cut_off_deltas(self.held, self.is_ended))

    def to_reply(self) -> Reply:
        """Return the reply of the complete stream."""
        if self.is_ended:  # some servers send no finish reason
            self._accumulator.finish = self._accumulator.finish or "stop"
        return self._accumulator.to_reply()


def _join_frames(frames: Iterable[bytes]) -> bytes:
    return b"\n\n".join(frames) + b"\n\n"


def _read_delta(chunk: dict[str, Any]) -> tuple[str, bool]:
    """Return the text of a chunk, and whether it has calls."""
    try:
        delta = chunk["choices"][0].get("delta") or {}
        text = delta.get("content")
        return text if isinstance(text, str) else "", bool(delta.get("tool_calls") or delta.get("function_call"))
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
