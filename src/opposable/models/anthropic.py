"""Anthropic's messages wire format."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import orjson

from opposable.domain.errors import ModelRejected
from opposable.domain.events import CallDelta, FinishReason, ModelPart, Reply, TextDelta, ThinkingDelta
from opposable.domain.messages import Message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions, Named
from opposable.models.http_client import Endpoint, Patience, to_json

VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 8192
FINISH: dict[str | None, FinishReason] = {"max_tokens": "length", "tool_use": "tool_calls", "refusal": "content_filter"}


class AnthropicModel:
    """A Claude model behind Anthropic's messages API (`base_url` ends before `/messages`)."""

    def __init__(
        self, model: str, api_key: str, base_url: str | None = None, *, patience: Patience | None = None
    ) -> None:
        self.name = model
        url = (base_url or "https://api.anthropic.com/v1").rstrip("/") + "/messages"
        headers = {"x-api-key": api_key, "anthropic-version": VERSION}
        hint = "The base URL of Anthropic's API ends in /v1."
        self._endpoint = Endpoint(url, headers, api_key, patience or Patience(), hint)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelPart, None]:
        """One reply in parts. Raises: `ModelError` kinds."""
        body = request(self.name, messages, tools, options)
        if not options.stream:
            yield whole(await self._endpoint.post(body))
            return
        writing = _Writing()
        lines = self._endpoint.lines(body)
        try:
            async for line in lines:
                for part in writing.read(orjson.loads(line)):
                    yield part
        finally:
            await lines.aclose()
        yield writing.reply()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()


def request(model: str, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions) -> bytes:
    """The request's JSON: the system's words apart, results inside user messages, roles taking turns."""
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": options.max_tokens or DEFAULT_MAX_TOKENS,
        "messages": _merged([_message(message) for message in messages if message.role != "system"]),
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
        body["tool_choice"] = _choice(options)
    return to_json(body)


def whole(answer: Any) -> Reply:
    """The reply of an answer that came in one piece. Raises: `ModelRejected` when it is none."""
    try:
        blocks = answer["content"]
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        thinking = "".join(block.get("thinking", "") for block in blocks if block["type"] == "thinking")
        finish = FINISH.get(answer.get("stop_reason"), "stop")
        uses = [block for block in blocks if block["type"] == "tool_use"]
        calls = tuple(
            ToolCall(
                use["id"],
                use["name"],
                orjson.dumps(use["input"]).decode(),
                truncated=finish == "length" and use is uses[-1],
            )
            for use in uses
        )
        usage = answer.get("usage") or {}
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelRejected(f"The server sent no message: {str(answer)[:200]}") from error
    return Reply(Message("assistant", text, tool_calls=calls, thinking=thinking), finish, _usage(usage))


class _Writing:
    """A streamed reply while it is being written."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[list[str]] = []
        self._place: dict[int, int] = {}
        self._usage: dict[str, Any] = {}
        self._stop: str | None = None

    def read(self, event: dict[str, Any]) -> list[ModelPart]:
        """What an event brings. Raises: `ModelRejected` for an error in mid-stream."""
        match event.get("type"):
            case "message_start":
                self._usage |= event["message"].get("usage") or {}
            case "content_block_start" if event["content_block"]["type"] == "tool_use":
                block = event["content_block"]
                self._place[event["index"]] = len(self._calls)
                self._calls.append([block["id"], block["name"]])
                return [CallDelta(len(self._calls) - 1, block["id"], block["name"])]
            case "content_block_delta":
                return self._delta(event["index"], event["delta"])
            case "message_delta":
                self._stop = event["delta"].get("stop_reason") or self._stop
                self._usage |= event.get("usage") or {}
            case "error":
                raise ModelRejected(f"The model server broke off: {event['error'].get('message', 'no reason given')}")
        return []

    def _delta(self, index: int, delta: dict[str, Any]) -> list[ModelPart]:
        if text := delta.get("text"):
            self._text.append(text)
            return [TextDelta(text)]
        if thought := delta.get("thinking"):
            self._thinking.append(thought)
            return [ThinkingDelta(thought)]
        if (piece := delta.get("partial_json")) and index in self._place:
            self._calls[self._place[index]].append(piece)
            return [CallDelta(self._place[index], arguments=piece)]
        return []

    def reply(self) -> Reply:
        """The whole reply."""
        finish = FINISH.get(self._stop, "stop")
        last = len(self._calls) - 1
        calls = tuple(
            ToolCall(call[0], call[1], "".join(call[2:]) or "{}", truncated=finish == "length" and n == last)
            for n, call in enumerate(self._calls)
        )
        message = Message("assistant", "".join(self._text), tool_calls=calls, thinking="".join(self._thinking))
        return Reply(message, finish, _usage(self._usage))


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        block = {"type": "tool_result", "tool_use_id": message.call_id, "content": message.content}
        return {"role": "user", "content": [block]}
    blocks: list[dict[str, Any]] = [{"type": "text", "text": message.content}] if message.content.strip() else []
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": orjson.loads(call.arguments)}
        for call in message.tool_calls
    ]
    return {"role": message.role, "content": blocks or [{"type": "text", "text": "…"}]}


def _merged(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbours of one role as one message."""
    merged: list[dict[str, Any]] = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1]["content"] += message["content"]
        else:
            merged.append(message)
    return merged


def _choice(options: ModelOptions) -> dict[str, str]:
    if isinstance(options.tool_choice, Named):
        return {"type": "tool", "name": options.tool_choice.name}
    return {"type": "any" if options.tool_choice == "required" else options.tool_choice}


def _usage(raw: dict[str, Any]) -> Usage:
    return Usage(raw.get("input_tokens") or 0, raw.get("output_tokens") or 0, 1)
