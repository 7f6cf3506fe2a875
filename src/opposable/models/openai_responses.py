"""Models of OpenAI's responses API, which returns the reasoning between tool calls to the model."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from opposable.domain.content import ContentPart, ImagePart, TextPart, to_data_url
from opposable.domain.errors import ModelError
from opposable.domain.events import CUT_OFF, CallDelta, FinishReason, ModelEvent, Reply, TextDelta, ThinkingDelta
from opposable.domain.json_text import dump_json, preview_json
from opposable.domain.messages import Message, NativeReply, encode_messages
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.base import DEFAULT_OPTIONS, ForcedTool, ModelOptions
from opposable.models.http_client import Endpoint, RetryPolicy, parse_event, to_model_error
from opposable.models.openai_compatible import (
    JSON_OBJECT,
    OpenAICompatibleModel,
    ServerQuirks,
    create_endpoint,
    encode_options,
    encode_schema,
    parse_usage,
)
from opposable.models.profile import get_profile

_CUT_OFF_REASONS: dict[str | None, FinishReason] = {"max_output_tokens": "length", "content_filter": "content_filter"}
_RENAMED_PARAMETERS = {"reasoning_effort": ("reasoning", "effort"), "verbosity": ("text", "verbosity")}
"""Parameters of chat completions, with their place in this API."""


class OpenAIResponsesModel:
    """A model of a server with the responses API.

    The server stores nothing. The reasoning comes back encrypted, and is sent with the later requests of a
    conversation to the same model.

    Args:
        model: The name of the model on the server.
        base_url: The URL before `/responses`; it usually ends in `/v1`.
        api_key: The API key, "" for none.
        reasoning: Whether the model reasons; others reject the request for encrypted reasoning.
        quirks: How the server's other APIs differ from OpenAI's.
        retry_policy: Time-outs and retries.

    Attributes:
        extra_parameters: The parameters of chat completions that the API has too.
        inner: The same model in the API of chat completions, for requests that are passed on unchanged.
    """

    extra_parameters = frozenset(
        {"top_p", "user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key", *_RENAMED_PARAMETERS}
    )

    def __init__(
        self,
        model: str,
        base_url: str,
        api_key: str = "",
        *,
        reasoning: bool = True,
        quirks: ServerQuirks | None = None,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        self.name = model
        self.inner = OpenAICompatibleModel(model, base_url, api_key, quirks=quirks, retry_policy=retry_policy)
        self.profile = replace(get_profile(self.inner), reasoning=reasoning)
        self._endpoint = create_endpoint(f"{base_url.rstrip('/')}/responses", api_key, None, retry_policy)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream one reply in parts. Raises: `ModelError`."""
        body = self._build_body(messages, tools, options)
        if not options.stream:
            yield parse_response(await self._endpoint.post(body), self.name, self._endpoint)
            return
        accumulator = _StreamAccumulator(self.name, self._endpoint)
        async with aclosing(self._endpoint.stream_data(body)) as received:
            async for payloads in received:
                for payload in payloads:
                    for part in parse_event(payload, accumulator.add_event):
                        yield part
        yield accumulator.to_reply()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()
        await self.inner.aclose()

    def _build_body(self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions) -> bytes:
        """Return the request body: the settings and tools, then the encoded messages."""
        body: dict[str, Any] = {"store": False}
        body |= {"include": ["reasoning.encrypted_content"]} if self.profile.reasoning else {}
        body |= {**_move_parameters(options.extra_body), "model": self.name}
        body |= encode_options(options, "max_output_tokens")  # the API has neither stop nor seed: the server says so
        if options.response_schema is not None:
            schema = encode_schema(options.response_schema)
            reply_format = {"type": "json_schema", **schema} if schema else JSON_OBJECT
            body["text"] = {**body.get("text", {}), "format": reply_format}
        if tools:
            body["tools"] = [*(body.get("tools") or ()), *map(_encode_tool, tools)]
            choice = options.tool_choice
            wire = {"type": "function", "name": choice.name} if isinstance(choice, ForcedTool) else choice
            body |= {"tool_choice": wire} if choice != "auto" else {}
        items = b",".join(encode_messages(messages, f"responses:{self.name}", self._encode_message))
        return dump_json(body)[:-1] + b',"input":[' + items + b"]}"

    def _encode_message(self, message: Message) -> bytes:
        """Return the items of a message, separated by commas."""
        return dump_json(self._build_items(message))[1:-1]

    def _build_items(self, message: Message) -> list[dict[str, Any]]:
        items = list(message.get_native_items(self.name, "responses"))
        ids = [item["call_id"] for item in items if "call_id" in item]  # also of the outputs of the server's tools
        if items and [one for one in ids if ids.count(one) == 1] == [call.id for call in message.tool_calls]:
            return items  # each call has a result in it, or gets one
        content: Any = [_encode_part(part) for part in message.ordered_parts] if message.parts else message.content
        if message.role == "tool":
            return [{"type": "function_call_output", "call_id": message.call_id, "output": content}]
        calls = [
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments_json}
            for call in message.tool_calls
        ]
        return calls if calls and not content else [{"role": message.role, "content": content}, *calls]


def parse_response(response: Any, model: str, endpoint: Endpoint) -> Reply:
    """Return the reply of a response.

    Raises:
        ModelError: The response has failed, or is none.
    """
    if isinstance(response, dict) and response.get("error"):
        raise to_model_error(response["error"], endpoint)
    try:
        items = response["output"]
        finish = _parse_finish_reason(response, items)
        calls = _parse_calls(items, is_cut_off=finish == "length")
        texts = [_join_parts(item["content"], "") for item in items if item["type"] == "message"]
        is_refusal = any(part.get("refusal") for item in items if item["type"] == "message" for part in item["content"])
        reasoning = [item for item in items if item["type"] == "reasoning"]
        thoughts = [_join_parts(item.get("summary") or item.get("content") or (), "\n\n") for item in reasoning]
        usage = parse_usage(response.get("usage") or {}, "input", "output")
        native = None if finish in CUT_OFF else _select_native_items(items)
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"The server at {endpoint.url} sent no response: {preview_json(response)}") from error
    message = Message(
        "assistant",
        "\n\n".join(filter(None, texts)),
        tool_calls=calls,
        thinking="\n\n".join(filter(None, thoughts)),
        native=NativeReply(model, native, "responses") if native else None,
        is_refusal=is_refusal,
    )
    return Reply(message, finish, usage)


def _parse_finish_reason(response: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> FinishReason:
    match response.get("status", "completed"):
        case "completed":
            return "tool_calls" if any(item["type"] == "function_call" for item in items) else "stop"
        case "incomplete":
            return _CUT_OFF_REASONS.get((response.get("incomplete_details") or {}).get("reason"), "incomplete")
    return "incomplete"


def _parse_calls(items: Sequence[Mapping[str, Any]], *, is_cut_off: bool) -> tuple[ToolCall, ...]:
    """Return the calls; one that is not complete is marked, as is the last one of a reply that was cut off."""
    calls = [item for item in items if item["type"] == "function_call"]
    return tuple(
        ToolCall.from_reply(
            item["call_id"],
            item["name"],
            item["arguments"],
            truncated=item.get("status") in ("in_progress", "incomplete") or (is_cut_off and item is calls[-1]),
        )
        for item in calls
    )


def _join_parts(parts: Sequence[Mapping[str, Any]], separator: str) -> str:
    return separator.join(part.get("text") or part.get("refusal") or "" for part in parts)


def _select_native_items(items: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return the items to send back, () where a text and then calls are all there is.

    More are reasoning that the model can read, what the server's tools did, and the phases of messages. The server
    rejects items without their reasoning.
    """
    sent = [one for one in items if one["type"] != "reasoning" or one.get("encrypted_content") or one.get("content")]
    kinds = ["" if one.get("phase") else one["type"] for one in sent]
    is_plain = {*kinds[:1]} <= {"message", "function_call"} and {*kinds[1:]} <= {"function_call"}
    lacks_reasoning = len(sent) < len(items) and all(one["type"] != "reasoning" for one in sent)
    return () if is_plain or lacks_reasoning else tuple(sent)


class _StreamAccumulator:
    """The accumulated events of a streamed response."""

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        self._model = model
        self._endpoint = endpoint
        self._response: dict[str, Any] | None = None
        self._items: dict[int, dict[str, Any]] = {}  # by output index, complete or not
        self._received: dict[int, list[str]] = {}  # the deltas of items that are not complete
        self._call_positions: dict[int, int] = {}
        self._has_text = self._has_thinking = False

    def add_event(self, event: dict[str, Any]) -> list[ModelEvent]:
        """Add an event and return its parts.

        Raises: `ModelError` for an error of the server; `KeyError`, `TypeError` or `AttributeError` if it is malformed.
        """
        match event.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                self._has_text = True
                return [TextDelta(self._add_delta(event), event["type"] == "response.refusal.delta")]
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._has_thinking = True
                return [ThinkingDelta(str(event["delta"]))]
            case "response.reasoning_summary_part.added" if self._has_thinking:
                return [ThinkingDelta("\n\n")]
            case "response.function_call_arguments.delta":
                return [CallDelta(self._call_positions[event["output_index"]], arguments=self._add_delta(event))]
            case "response.output_item.added":
                return self._open_item(event["output_index"], event["item"])
            case "response.output_item.done":
                self._items[event["output_index"]] = event["item"]
                self._received.pop(event["output_index"], None)
            case "response.completed" | "response.incomplete":
                self._response = event["response"]
            case "response.failed":
                raise to_model_error(event["response"].get("error") or event, self._endpoint)
            case "error":
                raise to_model_error(event.get("error") or event, self._endpoint)
            case None if "output" in event:  # a whole response to a streamed request
                self._response = event
        return []

    def _add_delta(self, event: dict[str, Any]) -> str:
        self._received.setdefault(event["output_index"], []).append(str(event["delta"]))
        return self._received[event["output_index"]][-1]

    def _open_item(self, index: int, item: dict[str, Any]) -> list[ModelEvent]:
        self._items[index] = item
        if item["type"] == "message" and self._has_text:
            return [TextDelta("\n\n")]
        if item["type"] != "function_call":
            return []
        position = self._call_positions[index] = len(self._call_positions)
        return [CallDelta(position, str(item["call_id"]), str(item["name"]))]

    def to_reply(self) -> Reply:
        """Return the complete reply; without the last event of a response it is incomplete."""
        response = self._response if isinstance(self._response, dict) else {"status": "in_progress"}
        if not response.get("output"):
            response = {**response, "output": [self._close_item(index) for index in self._items]}
        return parse_response(response, self._model, self._endpoint)

    def _close_item(self, index: int) -> dict[str, Any]:
        """Return an item, with the deltas received so far if it is not complete."""
        item = self._items[index]
        if index not in self._received:
            return item
        text = "".join(self._received[index])
        return {**item, "arguments": text, "content": [{"type": "output_text", "text": text}], "status": "incomplete"}


def _move_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of chat completions in their place in this API."""
    moved: dict[str, Any] = {}
    for name, value in parameters.items():
        if name in _RENAMED_PARAMETERS:
            group, key = _RENAMED_PARAMETERS[name]
            moved[group] = {**moved.get(group, parameters.get(group, {})), key: value}
        elif name not in moved:
            moved[name] = value
    return moved


def _encode_tool(tool: ToolDefinition) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.flat_parameters}
    return {"type": "function", **function, "strict": tool.strict}


def _encode_part(part: ContentPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, ImagePart):
        return {"type": "input_image", "image_url": to_data_url(part), "detail": part.detail or "auto"}
    if part.url:
        return {"type": "input_file", "file_url": part.url}
    return {"type": "input_file", "filename": part.name or "file", "file_data": to_data_url(part)}
