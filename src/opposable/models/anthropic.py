"""Models of the messages API of Anthropic."""

import base64
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import orjson

from opposable.domain.content import FilePart, ImagePart, TextPart
from opposable.domain.errors import ModelRejected
from opposable.domain.events import CallDelta, FinishReason, ModelEvent, Reply, TextDelta, ThinkingDelta
from opposable.domain.json_text import dump_json
from opposable.domain.messages import Message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import DEFAULT_OPTIONS, ForcedTool, ModelOptions
from opposable.models.http_client import Endpoint, RetryPolicy
from opposable.models.profile import ModelProfile
from opposable.models.upstream import ApiPath, Upstream

API_VERSION = "2023-06-01"
CONTEXT_TOKENS = 200_000
DEFAULT_MAX_TOKENS = 8192
FINISH_REASONS: dict[str | None, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


class AnthropicModel:
    """A model of the messages API of Anthropic; `base_url` ends before `/messages`."""

    extra_parameters = frozenset({"top_p", "top_k"})
    profile = ModelProfile(images=True, context=CONTEXT_TOKENS)

    def __init__(
        self, model: str, api_key: str, base_url: str | None = None, *, retry_policy: RetryPolicy | None = None
    ) -> None:
        self.name = model
        self._base_url = (base_url or "https://api.anthropic.com/v1").rstrip("/")
        url = self._base_url + "/messages"
        headers = {"x-api-key": api_key, "anthropic-version": API_VERSION}
        hint = "The base URL of Anthropic's API ends in /v1."
        self._endpoint = Endpoint(url, headers, api_key, retry_policy or RetryPolicy(), hint)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream one reply in parts. Raises: `ModelError`."""
        body = build_request(self.name, messages, tools, options)
        if not options.stream:
            yield parse_reply(await self._endpoint.post(body))
            return
        accumulator = _StreamAccumulator()
        lines = self._endpoint.stream_data(body)
        try:
            async for line in lines:
                for part in accumulator.add_event(orjson.loads(line)):
                    yield part
        finally:
            await lines.aclose()
        yield accumulator.to_reply()

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
    body: dict[str, Any] = {
        **options.extra_body,
        "model": model,
        "max_tokens": options.max_tokens or DEFAULT_MAX_TOKENS,
        "messages": _merge_same_role([_encode_message(message) for message in messages if message.role != "system"]),
    }
    if instructions := "\n\n".join(message.content for message in messages if message.role == "system"):
        body["system"] = instructions
    if options.stream:
        body["stream"] = True
    if options.temperature is not None:
        body["temperature"] = options.temperature
    if options.stop:
        body["stop_sequences"] = list(options.stop)
    if tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools
        ]
        body["tool_choice"] = _encode_tool_choice(options)
    return dump_json(body)


def parse_reply(response: Any) -> Reply:
    """Return the reply of a response that was not streamed.

    Raises: `ModelRejected` for any other response.
    """
    try:
        blocks = response["content"]
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        thinking = "".join(block.get("thinking", "") for block in blocks if block["type"] == "thinking")
        finish = FINISH_REASONS.get(response.get("stop_reason"), "stop")
        uses = [block for block in blocks if block["type"] == "tool_use"]
        calls = tuple(_parse_call(use, truncated=finish == "length" and use is uses[-1]) for use in uses)
        usage = response.get("usage") or {}
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelRejected(f"The server sent no message: {str(response)[:200]}") from error
    return Reply(Message("assistant", text, tool_calls=calls, thinking=thinking), finish, _parse_usage(usage))


def _parse_call(block: dict[str, Any], *, truncated: bool) -> ToolCall:
    arguments = block["input"]
    if isinstance(arguments, dict):
        return ToolCall(block["id"], block["name"], arguments, truncated=truncated)
    return ToolCall.from_json(block["id"], block["name"], dump_json(arguments).decode(), truncated=truncated)


class _StreamAccumulator:
    """The accumulated parts of a streamed reply."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[list[str]] = []
        self._call_positions: dict[int, int] = {}
        self._usage: dict[str, Any] = {}
        self._stop_reason: str | None = None
        self._has_ended = False

    def add_event(self, event: dict[str, Any]) -> list[ModelEvent]:
        """Add an event and return its parts. Raises: `ModelRejected` for an error event."""
        match event.get("type"):
            case "message_start":
                self._usage |= event["message"].get("usage") or {}
            case "content_block_start" if event["content_block"]["type"] == "tool_use":
                block = event["content_block"]
                self._call_positions[event["index"]] = len(self._calls)
                self._calls.append([block["id"], block["name"]])
                return [CallDelta(len(self._calls) - 1, block["id"], block["name"])]
            case "content_block_delta":
                return self._add_delta(event["index"], event["delta"])
            case "message_delta":
                self._stop_reason = event["delta"].get("stop_reason") or self._stop_reason
                self._usage |= event.get("usage") or {}
            case "message_stop":
                self._has_ended = True
            case "error":
                raise ModelRejected(f"The model server broke off: {event['error'].get('message', 'no reason given')}")
        return []

    def _add_delta(self, index: int, delta: dict[str, Any]) -> list[ModelEvent]:
        if text := delta.get("text"):
            self._text.append(text)
            return [TextDelta(text)]
        if thought := delta.get("thinking"):
            self._thinking.append(thought)
            return [ThinkingDelta(thought)]
        if (partial_json := delta.get("partial_json")) and index in self._call_positions:
            self._calls[self._call_positions[index]].append(partial_json)
            return [CallDelta(self._call_positions[index], arguments=partial_json)]
        return []

    def to_reply(self) -> Reply:
        """Return the complete reply."""
        finish = FINISH_REASONS.get(self._stop_reason, "stop") if self._has_ended else "incomplete"
        last = len(self._calls) - 1
        calls = tuple(
            ToolCall.from_json(call[0], call[1], "".join(call[2:]) or "{}", truncated=finish == "length" and n == last)
            for n, call in enumerate(self._calls)
        )
        message = Message("assistant", "".join(self._text), tool_calls=calls, thinking="".join(self._thinking))
        return Reply(message, finish, _parse_usage(self._usage))


def _encode_message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        content = _encode_parts(message) if message.parts else message.content
        block = {"type": "tool_result", "tool_use_id": message.call_id, "content": content}
        return {"role": "user", "content": [block]}
    blocks = _encode_parts(message)
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
        for call in message.tool_calls
    ]
    return {"role": message.role, "content": blocks or [{"type": "text", "text": "…"}]}


def _encode_parts(message: Message) -> list[dict[str, Any]]:
    if not message.parts:
        return [{"type": "text", "text": message.content}] if message.content.strip() else []
    return [
        {"type": "text", "text": part.text} if isinstance(part, TextPart) else _encode_media(part)
        for part in message.ordered_parts
    ]


def _encode_media(part: ImagePart | FilePart) -> dict[str, Any]:
    if part.url:
        source = {"type": "url", "url": part.url}
    else:
        data = base64.b64encode(part.data).decode()
        source = {"type": "base64", "media_type": part.media_type, "data": data}
    return {"type": "image" if isinstance(part, ImagePart) else "document", "source": source}


def _merge_same_role(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge consecutive messages of the same role."""
    merged: list[dict[str, Any]] = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1]["content"] += message["content"]
        else:
            merged.append(message)
    return merged


def _encode_tool_choice(options: ModelOptions) -> dict[str, str]:
    if isinstance(options.tool_choice, ForcedTool):
        return {"type": "tool", "name": options.tool_choice.name}
    return {"type": "any" if options.tool_choice == "required" else options.tool_choice}


def _parse_usage(raw: dict[str, Any]) -> Usage:
    return Usage(raw.get("input_tokens") or 0, raw.get("output_tokens") or 0, 1)
