"""Models of the messages API of Anthropic."""

import base64
import itertools
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from opposable.domain.content import ContentPart, FilePart, ImagePart, TextPart
from opposable.domain.errors import ModelError
from opposable.domain.events import CUT_OFF, CallDelta, FinishReason, ModelEvent, Reply, TextDelta, ThinkingDelta
from opposable.domain.json_text import dump_json, preview_json
from opposable.domain.messages import Message, NativeReply
from opposable.domain.parameter_names import choose_free_name, choose_names
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import Usage, parse_token_count
from opposable.models.base import DEFAULT_OPTIONS, ForcedTool, ModelOptions, ToolChoice
from opposable.models.http_client import Endpoint, RetryPolicy, parse_event, to_model_error
from opposable.models.parameter_names import stream_with_names
from opposable.models.profile import ModelProfile
from opposable.models.upstream import ApiPath, Upstream

API_VERSION = "2023-06-01"
CONTEXT_TOKENS = 200_000
DEFAULT_MAX_TOKENS = 32_000
"""The API requires a length. All models of Claude 4 and later can write this much."""
OLD_DEFAULT_MAX_TOKENS = 8192
"""The default for Claude 3, and for models of other makers."""
_SAMPLED_MODELS = re.compile(r"(?!claude-)|claude-(?:instant|[123]|[a-z]+-4(?![-.](?:[7-9]|\d\d\b)))")
"""Models that take `temperature`, `top_p` and `top_k`: those of Claude since 4.7 reject every request with them."""
FINISH_REASONS: dict[str | None, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "incomplete": "incomplete",
    "pause_turn": "incomplete",
}
MAX_PAUSES = 20
"""Continuations of one reply that the server pauses."""

_TEXT_FIELDS = ("text", "thinking", "signature", "content", "encrypted_content")
_DELTA_FIELDS = {name: name for name in _TEXT_FIELDS} | {"partial_json": "input"}
"""The field of a block that a field of its deltas is added to."""


class AnthropicModel:
    """A model of the messages API of Anthropic; `base_url` ends before `/v1/messages`, or before `/messages`."""

    extra_parameters = frozenset({"top_p", "top_k"})
    unsupported_options = frozenset({"seed", "response_schema"})
    profile = ModelProfile(images=True, context=CONTEXT_TOKENS)

    def __init__(
        self, model: str, api_key: str, base_url: str | None = None, *, retry_policy: RetryPolicy | None = None
    ) -> None:
        self.name = model
        if not _SAMPLED_MODELS.match(model):
            self.extra_parameters, self.unsupported_options = frozenset(), self.unsupported_options | {"temperature"}
        self._base_url = f"{(base_url or 'https://api.anthropic.com').rstrip('/').removesuffix('/v1')}/v1"
        headers = {"x-api-key": api_key, "anthropic-version": API_VERSION}
        hint = "The base URL of Anthropic's API ends before /v1/messages."
        self._endpoint = Endpoint(f"{self._base_url}/messages", headers, api_key, retry_policy or RetryPolicy(), hint)

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream one reply in parts. One that the server pauses between its own tools is continued.

        Raises: `ModelError`.
        """
        names = {tool.name: choose_names(tool.flat_parameters.get("properties", ())) for tool in tools}
        if any(names.values()):
            return stream_with_names(self._stream, messages, tools, options, names)
        return self._stream(messages, tools, options)

    async def _stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        blocks: list[dict[str, Any]] = []
        sent, usage = messages, Usage()
        for _ in range(MAX_PAUSES + 1):
            body = build_request(self.name, sent, tools, options)
            accumulator = _StreamAccumulator(self._endpoint, blocks)
            if options.stream:
                async with aclosing(self._endpoint.stream_data(body)) as received:
                    async for payloads in received:
                        for payload in payloads:
                            for part in parse_event(payload, accumulator.add_event):
                                yield part
            response = accumulator.to_response() if options.stream else await self._endpoint.post(body)
            reply = parse_reply(response, self.name, blocks)
            usage += reply.usage
            if response.get("stop_reason") != "pause_turn":
                break
            blocks += response["content"]
            sent = (*messages, replace(reply.message, native=NativeReply(self.name, tuple(blocks), "messages")))
        yield replace(reply, usage=usage)

    def get_upstream(self, path: ApiPath) -> Upstream | None:
        """Return an API of the server, for requests that are passed on unchanged; None if it does not have it."""
        if path not in ("messages", "messages/count_tokens"):
            return None
        max_tokens_key = "max_tokens" if path == "messages" else ""
        return Upstream(self._endpoint, f"{self._base_url}/{path}", self.name, max_tokens_key=max_tokens_key)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()


def build_request(
    model: str, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions
) -> bytes:
    """Return the request body, with results in user messages and alternating roles."""
    is_recent = model.startswith("claude-") and not model.startswith("claude-3")
    extra_body = dict(options.extra_body)
    is_single_call = extra_body.pop("parallel_tool_calls", None) is False
    body: dict[str, Any] = {
        **extra_body,
        "model": model,
        "max_tokens": options.max_tokens or (DEFAULT_MAX_TOKENS if is_recent else OLD_DEFAULT_MAX_TOKENS),
        "messages": (encoded := _encode_messages(messages, model)),
    }
    if tools and is_recent and encoded and encoded[-1]["role"] == "user" and "cache_control" not in body:
        encoded[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}  # the next turn sends it all again
    instructions = "\n\n".join(message.content for message in messages if message.role == "system")
    settings = {"system": instructions, "stream": options.stream, "stop_sequences": options.stop}
    body |= {name: value for name, value in settings.items() if value}
    if options.temperature is not None and _SAMPLED_MODELS.match(model):
        body["temperature"] = options.temperature
    if tools:
        body["tools"] = [*body.get("tools", ())] + [
            {"name": tool.name, "description": tool.description, "input_schema": tool.flat_parameters} for tool in tools
        ]
        body["tool_choice"] = _encode_tool_choice(options.tool_choice, is_single_call=is_single_call)
    return dump_json(body)


def parse_reply(response: Any, model: str, paused_blocks: Sequence[dict[str, Any]] = ()) -> Reply:
    """Return the reply of a response, which may continue one with `paused_blocks`.

    Raises: `ModelError` for any other response.
    """
    try:
        blocks = [*paused_blocks, *response["content"]]
        text, thinking = _join_blocks(blocks, "text"), _join_blocks(blocks, "thinking")
        finish = FINISH_REASONS.get(response.get("stop_reason"), "stop")
        uses = [block for block in blocks if block["type"] == "tool_use"]
        is_cut_off = finish == "length"
        calls = tuple(
            ToolCall.from_reply(use["id"], use["name"], use["input"], truncated=is_cut_off and use is uses[-1])
            for use in uses
        )
        usage = _parse_usage(response.get("usage") or {})
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"The server sent no message: {preview_json(response)}") from error
    kinds = [block["type"] for block in blocks if block["type"] != "thinking" or block.get("signature")]
    is_native = "text" in kinds[1:] or not {"text", "tool_use"}.issuperset(kinds)
    message = Message("assistant", text, tool_calls=calls, thinking=thinking)
    if is_native and finish not in CUT_OFF:  # the model gets its signed thinking and the order of its blocks back
        inputs = iter([dict(call.arguments) for call in calls])
        items = ({**block, "input": next(inputs)} if block["type"] == "tool_use" else block for block in blocks)
        message = replace(message, native=NativeReply(model, tuple(items), "messages"))
    return Reply(message, finish, usage)


def _join_blocks(blocks: Sequence[Mapping[str, Any]], kind: str) -> str:
    """Return the texts of the blocks of a kind, apart where other blocks come between them: citations split a text."""
    groups = itertools.groupby(blocks, lambda block: block["type"])
    texts = ("".join(block.get(kind) or "" for block in group) for found, group in groups if found == kind)
    return "\n\n".join(filter(None, texts))


def _parse_usage(counts: Mapping[str, Any]) -> Usage:
    """Return the tokens of a reply; the API counts those of its cache apart from the other input tokens."""
    cached = parse_token_count(counts, "cache_read_input_tokens")
    uncached = parse_token_count(counts, "input_tokens") + parse_token_count(counts, "cache_creation_input_tokens")
    thinking = parse_token_count(counts.get("output_tokens_details"), "thinking_tokens")
    return Usage(uncached + cached, parse_token_count(counts, "output_tokens"), 1, cached, thinking)


class _StreamAccumulator:
    """The accumulated parts of a streamed reply, which may continue one with `paused_blocks`."""

    def __init__(self, endpoint: Endpoint, paused_blocks: Sequence[dict[str, Any]]) -> None:
        self._endpoint = endpoint
        self._blocks: dict[int, dict[str, Any]] = {}
        self._received: dict[tuple[int, str], list[str]] = {}  # the deltas of a field of a block
        self._call_positions: dict[int, int] = {}
        self._usage: dict[str, Any] = {}
        self._stop_reason: str | None = None
        self._has_ended = self._is_apart = False
        self._last_kind = paused_blocks[-1]["type"] if paused_blocks else ""
        self._written = {block["type"] for block in paused_blocks if block.get(block["type"])}

    def add_event(self, event: dict[str, Any]) -> list[ModelEvent]:
        """Add an event and return its parts.

        Raises: `ModelError` for an error of the server; `KeyError`, `TypeError` or `AttributeError` if it is malformed.
        """
        match event.get("type"):
            case "message_start":
                self._usage |= event["message"].get("usage") or {}
            case "content_block_start":
                return self._open_block(event["index"], event["content_block"])
            case "content_block_delta":
                return self._add_delta(event["index"], event["delta"])
            case "message_delta":
                self._stop_reason = event["delta"].get("stop_reason") or self._stop_reason
                counts = event.get("usage") or {}
                self._usage |= {name: count for name, count in counts.items() if count is not None}
            case "message_stop":
                self._has_ended = True
            case "message":  # a whole response to a streamed request
                self._blocks, self._usage = dict(enumerate(event["content"])), event.get("usage") or {}
                self._stop_reason, self._has_ended = event.get("stop_reason"), True
                return [TextDelta(text)] if (text := _join_blocks(event["content"], "text")) else []
            case "error":
                raise to_model_error(event["error"], self._endpoint)
        return []

    def _open_block(self, index: int, block: dict[str, Any]) -> list[ModelEvent]:
        self._blocks[index] = {"input": {}, **block} if block["type"] == "tool_use" else block
        self._is_apart |= block["type"] != self._last_kind
        self._last_kind = block["type"]
        if block["type"] != "tool_use":
            return []
        position = self._call_positions[index] = len(self._call_positions)
        return [CallDelta(position, str(block["id"]), str(block["name"]))]

    def _add_delta(self, index: int, delta: dict[str, Any]) -> list[ModelEvent]:
        for name, field in _DELTA_FIELDS.items():
            if value := str(delta.get(name) or ""):
                self._received.setdefault((index, field), []).append(value)
        if text := delta.get("text"):
            return [TextDelta(self._separate("text") + text)]
        if thought := delta.get("thinking"):
            return [ThinkingDelta(self._separate("thinking") + thought)]
        if citation := delta.get("citation"):
            block = self._blocks[index]
            block["citations"] = [*(block.get("citations") or ()), citation]
        if (partial_json := delta.get("partial_json")) and index in self._call_positions:
            return [CallDelta(self._call_positions[index], arguments=str(partial_json))]
        return []

    def _separate(self, kind: str) -> str:
        """Return what separates a text or thought from an earlier one; see `_join_blocks`."""
        separator = "\n\n" if self._is_apart and kind in self._written else ""
        self._is_apart = False
        self._written.add(kind)
        return separator

    def to_response(self) -> dict[str, Any]:
        """Return the complete response."""
        for (index, field), received in self._received.items():
            block, value = self._blocks.get(index, {"type": field}), "".join(received)
            is_own_call = field == "input" and block["type"] != "tool_use"  # of a tool of the server
            parsed = dict(ToolCall.from_json("", "", value).arguments) if is_own_call else value
            self._blocks[index] = {**block, field: parsed}
        blocks = list(self._blocks.values())
        stop_reason = self._stop_reason if self._has_ended else "incomplete"
        return {"content": blocks, "stop_reason": stop_reason, "usage": self._usage}


def _encode_messages(messages: Sequence[Message], model: str) -> list[dict[str, Any]]:
    """Encode messages, those of the same role in a row as one, without empty replies, which the API rejects.

    It also rejects two calls of a conversation with one id; servers with other APIs number the calls of each reply.
    """
    encoded, used_ids, ids = [], set[str](), {}
    for message in messages:
        for call in message.tool_calls:
            ids[call.id] = choose_free_name(_encode_id(call.id), used_ids)
            used_ids.add(ids[call.id])
        encoded += [_encode_message(message, model, ids)] if message.role != "system" else []
    groups = itertools.groupby((one for one in encoded if one["content"]), lambda one: one["role"])
    return [{"role": role, "content": [block for one in group for block in one["content"]]} for role, group in groups]


def _encode_message(message: Message, model: str, ids: Mapping[str, str]) -> dict[str, Any]:
    """Encode a message with the `ids` of the latest calls in the conversation, by their own ids."""
    if message.role == "tool":
        content = _encode_parts(message) if message.parts else message.content
        call_id = ids.get(message.call_id) or _encode_id(message.call_id)
        block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        return {"role": "user", "content": [block | ({"is_error": True} if message.is_error else {})]}
    native = message.get_native_items(model, "messages")
    blocks = [one for one in native if one["type"] != "text" or str(one.get("text") or "").strip()]
    if [one["id"] for one in blocks if one["type"] == "tool_use"] != [call.id for call in message.tool_calls]:
        blocks = []  # each call needs a result, and each result a call
    blocks = blocks or _encode_parts(message) + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
        for call in message.tool_calls
    ]
    blocks = [{**one, "id": ids[one["id"]]} if one["type"] == "tool_use" else one for one in blocks]
    empty = [{"type": "text", "text": message.content}] if message.role == "user" else []  # the server rejects it
    return {"role": message.role, "content": blocks or empty}


def _encode_id(call_id: str) -> str:
    """Return an id with the characters that the API accepts; other servers have ids such as `functions.add:0`.

    Each other character becomes its code point in hex, so that different ids stay different.
    """
    return re.sub(r"[^a-zA-Z0-9_-]", lambda match: f"_{ord(match[0]):x}_", call_id)


def _encode_parts(message: Message) -> list[dict[str, Any]]:
    """Return the parts of a message as blocks, without blank texts, which the API rejects."""
    return [_encode_part(one) for one in message.ordered_parts if not isinstance(one, TextPart) or one.text.strip()]


def _encode_part(part: ContentPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    source = {"type": "base64", "media_type": part.media_type, "data": base64.b64encode(part.data).decode()}
    if part.url:
        source = {"type": "url", "url": part.url}
    elif isinstance(part, FilePart) and part.media_type != "application/pdf":  # the API takes other files as text
        with suppress(UnicodeDecodeError):
            source = {"type": "text", "media_type": "text/plain", "data": part.data.decode()}
    if isinstance(part, ImagePart):
        return {"type": "image", "source": source}
    return {"type": "document", "source": source} | ({"title": part.name} if part.name else {})


def _encode_tool_choice(choice: ToolChoice, *, is_single_call: bool) -> dict[str, Any]:
    single = {"disable_parallel_tool_use": True} if is_single_call and choice != "none" else {}
    if isinstance(choice, ForcedTool):
        return {"type": "tool", "name": choice.name, **single}
    return {"type": "any" if choice == "required" else choice, **single}
