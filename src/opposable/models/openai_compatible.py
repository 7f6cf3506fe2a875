"""Models of the chat-completions API, such as OpenAI, vLLM and llama.cpp."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from opposable.domain.content import ContentPart, ImagePart, TextPart, join_text, to_data_url
from opposable.domain.errors import ModelError
from opposable.domain.events import CallDelta, FinishReason, ModelEvent, Reply, TextDelta, ThinkingDelta, Token
from opposable.domain.json_text import dump_json, preview_json
from opposable.domain.messages import Message, NativeReply, encode_messages, tool_message, user_message
from opposable.domain.tools import ToolCall, ToolDefinition, new_call_id
from opposable.domain.usage import Usage, parse_token_count
from opposable.models.base import DEFAULT_OPTIONS, ForcedTool, ModelOptions
from opposable.models.http_client import DONE, Endpoint, RetryPolicy, parse_chunk, to_model_error
from opposable.models.profile import ModelProfile
from opposable.models.upstream import ApiPath, Upstream

_REASON_NAMES: dict[FinishReason, tuple[str, ...]] = {
    "length": ("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded", "model_length"),
    "tool_calls": ("tool_calls", "function_call"),
    "content_filter": ("content_filter", "sensitive"),
    "incomplete": ("abort", "error", "insufficient_system_resource", "network_error"),
}
FINISH_REASONS = {name: reason for reason, names in _REASON_NAMES.items() for name in names}

_Fields = dict[str, Any]
CALL_FIELDS = frozenset({"id", "index", "type", "function"})
"""The fields of a call. Further ones, such as the signature of its reasoning, go back to the model unchanged."""
RETURNED_FIELDS = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
"""The reasoning of a reply goes back to its model unchanged: Kimi and DeepSeek reject calls without it."""
JSON_OBJECT = {"type": "json_object"}
"""The format of a reply that is any JSON object."""

CHAT_APIS: frozenset[ApiPath] = frozenset({"chat/completions", "completions", "embeddings"})
"""The APIs that servers with chat completions usually have."""


@dataclass(frozen=True, slots=True)
class ServerQuirks:
    """Differences between servers of this API.

    Attributes:
        max_tokens_key: The name of the field that limits the reply.
        extra_body: Fields added to every request.
        apis: The APIs of the server.
        images: Whether models of the server can take images.
    """

    max_tokens_key: str = "max_tokens"
    extra_body: dict[str, Any] = field(default_factory=dict)
    apis: frozenset[ApiPath] = CHAT_APIS
    images: bool = True


class OpenAICompatibleModel:
    """A model of a server with a chat-completions API.

    Messages and tools are encoded once and their bytes cached, so that late turns of a run cost no more than early
    ones.

    Args:
        model: The name of the model on the server.
        base_url: The URL before `/chat/completions`; it usually ends in `/v1`.
        api_key: The API key, "" for none.
        headers: Further headers.
        quirks: How the server differs from OpenAI's.
        retry_policy: Time-outs and retries.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        api_key: str = "",
        *,
        headers: dict[str, str] | None = None,
        quirks: ServerQuirks | None = None,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        self.name = model
        self._quirks = quirks or ServerQuirks()
        self.profile = ModelProfile(images=self._quirks.images)
        self._memo_key = f"chat {model}"
        self._base_url = base_url.rstrip("/")
        self._endpoint = create_endpoint(f"{self._base_url}/chat/completions", api_key, headers, retry_policy)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream one reply in parts. Raises: `ModelError`."""
        if not options.stream:
            yield await self.fetch_whole_reply(messages, tools, options)
            return
        accumulator = StreamAccumulator(self.name)
        async with aclosing(self._endpoint.stream_data(self._build_body(messages, tools, options))) as received:
            async for payloads in received:
                for payload in payloads:
                    if payload == DONE:  # some servers send no finish reason
                        accumulator.finish = accumulator.finish or "stop"
                        continue
                    try:
                        chunk = parse_chunk(payload)
                        choice = (chunk.get("choices") or [{}])[0]
                        delta = choice.get("delta") or {}
                        if len(delta) == 1 and (text := delta.get("content")) and type(text) is str:
                            accumulator.text.append(text)  # by far the most frequent chunk: a text delta alone
                            yield TextDelta(text)
                            accumulator.finish = choice.get("finish_reason") or accumulator.finish
                            if usage := chunk.get("usage"):
                                accumulator.usage = parse_usage(usage)
                            continue
                        if "error" in chunk:
                            raise to_model_error(chunk["error"], self._endpoint)
                        for part in accumulator.add_chunk(chunk):
                            yield part
                    except (KeyError, IndexError, TypeError, AttributeError) as error:
                        raise ModelError(f"The server streamed a malformed event: {payload[:120]!r}") from error
        yield accumulator.to_reply()

    async def fetch_whole_reply(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions
    ) -> Reply:
        """Return one reply that is not streamed. Raises: `ModelError`."""
        response = await self._endpoint.post(self._build_body(messages, tools, options))
        if isinstance(response, dict) and response.get("error"):
            raise to_model_error(response["error"], self._endpoint)
        try:
            return parse_completion(response, self.name)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            message = f"The server at {self._endpoint.url} sent no chat completion: {preview_json(response)}"
            raise ModelError(message) from error

    def get_upstream(self, path: ApiPath) -> Upstream | None:
        """Return an API of the server, for requests that are passed on unchanged; None if it does not have it."""
        if path not in self._quirks.apis:
            return None
        keys = {"completions": "max_tokens", "responses": "max_output_tokens", "embeddings": ""}
        max_tokens_key = keys.get(path, self._quirks.max_tokens_key)
        return Upstream(self._endpoint, f"{self._base_url}/{path}", self.name, self._quirks.extra_body, max_tokens_key)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    def _build_body(self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions) -> bytes:
        """Return the request body: the settings, then the encoded messages and tools."""
        sent = messages if not any(message.parts for message in messages) else move_result_media(messages)
        encoded_messages = encode_messages(sent, self._memo_key, self._encode_message)
        ending = _encode_tools(tools, options) if tools or options.extra_body.get("tools") else b"}"
        return b"".join((self._encode_settings(options), b',"messages":[', b",".join(encoded_messages), b"]", ending))

    def _encode_settings(self, options: ModelOptions) -> bytes:
        settings = encode_options(options, self._quirks.max_tokens_key)
        body: dict[str, Any] = {**self._quirks.extra_body, **options.extra_body, "model": self.name, **settings}
        body |= {"stream_options": {"include_usage": True}} if options.stream else {}
        if options.top_logprobs is not None:
            body |= {"logprobs": True, "top_logprobs": options.top_logprobs}
        if options.response_schema is not None:
            schema = encode_schema(options.response_schema)
            body["response_format"] = {"type": "json_schema", "json_schema": schema} if schema else JSON_OBJECT
        return dump_json({name: value for name, value in body.items() if name != "tools"})[:-1]

    def _encode_message(self, message: Message) -> bytes:
        """Return the wire form of a message."""
        wire: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.parts:
            wire["content"] = [_encode_part(part) for part in message.ordered_parts]
        if message.role == "tool":
            wire["tool_call_id"] = message.call_id
        items = message.get_native_items(self.name, "chat")
        wire |= next(({name: item[name] for name in item.keys() & RETURNED_FIELDS} for item in items), {})
        if message.tool_calls:
            wire["content"] = message.content or None
            fields = {item["id"]: item for item in items if item.get("type") == "function"}
            wire["tool_calls"] = [
                fields.get(c.id, {})
                | {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments_json}}
                for c in message.tool_calls
            ]
        return dump_json(wire)


def encode_options(options: ModelOptions, max_tokens_key: str) -> dict[str, Any]:
    """Return the options in the fields that the APIs of OpenAI share."""
    fields = {
        "stream": options.stream or None,
        max_tokens_key: options.max_tokens,
        "temperature": options.temperature,
        "stop": options.stop or None,
        "seed": options.seed,
    }
    return {name: value for name, value in fields.items() if value is not None}


def encode_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return the format of a reply that matches a schema.

    None for any JSON object, for which `JSON_OBJECT` is the format: some servers have no other.
    """
    return None if schema == {"type": "object"} else {"name": "reply", "schema": schema, "strict": _is_closed(schema)}


def _is_closed(schema: Any) -> bool:
    """Return whether every object of a schema has exactly its properties: OpenAI rejects other schemas as strict."""
    nodes = [schema]
    for node in nodes:  # the list grows while it is read, so that schemas of any depth are read
        if isinstance(node, list):
            nodes += node
        if not isinstance(node, dict):
            continue
        names, required = node.get("properties", {}), node.get("required", [])
        is_object = node.get("type") == "object" and isinstance(names, dict) and isinstance(required, list)
        is_closed = is_object and node.get("additionalProperties") is False and all(name in required for name in names)
        if not is_closed and (node.get("type") == "object" or "properties" in node):
            return False
        nodes += node.values()
    return True


def create_endpoint(
    url: str, api_key: str, headers: Mapping[str, str] | None, retry_policy: RetryPolicy | None
) -> Endpoint:
    """Return the connection to an API of OpenAI or a compatible server."""
    authorization = {"authorization": f"Bearer {api_key}"} if api_key else {}
    hint = "The base URL of an OpenAI-compatible server usually ends in /v1."
    return Endpoint(url, {**authorization, **(headers or {})}, api_key, retry_policy or RetryPolicy(), hint)


def parse_completion(response: Any, model: str = "") -> Reply:
    """Return the reply of a whole chat completion of a model.

    Raises: `KeyError`, `IndexError`, `TypeError` or `AttributeError` for anything else.
    """
    choice = response["choices"][0]
    message = choice["message"]
    raw_calls = message.get("tool_calls") or ()
    calls = tuple(_parse_call(raw) for raw in raw_calls)
    content, thinking = _read_text(message)
    fields = {name: message[name] for name in RETURNED_FIELDS if message.get(name)}
    created = _create_message(model, content, thinking, calls, raw_calls, fields)
    reply_message = created if message.get("content") or not content else replace(created, is_refusal=True)
    finish = _parse_finish_reason(choice.get("finish_reason"), bool(calls))
    return Reply(reply_message, finish, parse_usage(response.get("usage") or {}), _parse_tokens(choice.get("logprobs")))


class StreamAccumulator:
    """The accumulated parts of a streamed reply of a model."""

    def __init__(self, model: str = "") -> None:
        self._model, self._is_refusal = model, False
        self.text: list[str] = []
        self.finish: str | None = None
        self.usage = Usage(requests=1)
        self._thinking: list[str] = []
        self._details: dict[Any, _Fields] = {}  # items of `reasoning_details`, by index and type
        self._reasoning_names: set[str] = set()
        self._calls: list[list[str]] = []  # [id, name, arguments…] in order of appearance
        self._call_positions: dict[Any, int] = {}  # index of the server -> position in _calls
        self._call_fields: list[dict[str, Any]] = []  # further fields of each of the _calls

    def add_chunk(self, chunk: dict[str, Any]) -> list[ModelEvent]:
        """Add a chunk and return its parts."""
        if chunk.get("usage"):
            self.usage = parse_usage(chunk["usage"])
        if not chunk.get("choices"):
            return []
        choice = chunk["choices"][0]
        self.finish = choice.get("finish_reason") or self.finish
        delta = choice.get("delta") or choice.get("message") or {}
        parts: list[ModelEvent] = []
        text, thought = _read_text(delta)
        self._reasoning_names |= {name for name in ("reasoning_content", "reasoning") if delta.get(name)}
        for part in delta.get("reasoning_details") or ():
            key = (part.get("type"), len(self._details) if part.get("index") is None else part["index"])
            item, new = self._details.setdefault(key, {}), {k: v for k, v in part.items() if v is not None}
            item |= {k: item.get(k, "") + v if k in ("text", "summary") else v for k, v in new.items()}
        if thought:
            self._thinking.append(thought)
            parts.append(ThinkingDelta(thought))
        if text:
            self._is_refusal = not delta.get("content")
            self.text.append(text)
            parts.append(TextDelta(text, self._is_refusal))
        parts += [self._add_call_delta(raw) for raw in delta.get("tool_calls") or ()]
        return parts

    def _add_call_delta(self, raw: dict[str, Any]) -> CallDelta:
        function = raw.get("function") or {}
        arguments = function.get("arguments") or ""
        arguments = arguments if isinstance(arguments, str) else dump_json(arguments).decode()
        key = raw.get("id") if raw.get("index") is None else raw["index"]  # some servers send no index
        position = self._call_positions.get(key) if key is not None else (len(self._calls) - 1 if self._calls else None)
        if position is None or self._is_another_call(raw, position):
            position = self._call_positions[key] = len(self._calls)
            self._calls.append([str(raw.get("id") or new_call_id()), str(function.get("name") or ""), arguments])
            self._call_fields.append(raw)
            return CallDelta(position, self._calls[position][0], self._calls[position][1], arguments)
        call = self._calls[position]
        self._call_fields[position] |= {name: value for name, value in raw.items() if value is not None}
        late_name = str(function.get("name") or "") if not call[1] else ""
        call[1] = call[1] or late_name
        call.append(arguments)
        return CallDelta(position, name=late_name, arguments=arguments)

    def _is_another_call(self, raw: dict[str, Any], position: int) -> bool:
        """Return whether a delta begins another call than the one at `position`.

        Some servers give every call the index 0, and some no id. Others give each delta of a call another id, but no name.
        """
        call_id, function = self._call_fields[position].get("id"), raw.get("function") or {}
        name, (_, earlier_name, *parts) = function.get("name"), self._calls[position]
        if name and not call_id and not raw.get("id"):
            is_new = name != earlier_name or bool(function.get("arguments"))
            return is_new and ToolCall.from_json("", "", "".join(parts)).has_valid_arguments
        return bool(name and call_id and raw.get("id") and raw["id"] != call_id)

    def to_reply(self) -> Reply:
        """Return the complete reply."""
        is_cut_off = self.finish == "length"
        calls = tuple(
            ToolCall.from_json(call[0], call[1], "".join(call[2:]), truncated=is_cut_off and call is self._calls[-1])
            for call in self._calls
        )
        text, thinking = "".join(self.text), "".join(self._thinking)
        fields: _Fields = {"reasoning_details": list(self._details.values())} if self._details else {}
        fields |= dict.fromkeys(self._reasoning_names, thinking)
        message = _create_message(self._model, text, thinking, calls, self._call_fields, fields)
        finish = "incomplete" if self.finish is None else _parse_finish_reason(self.finish, bool(calls))
        return Reply(replace(message, is_refusal=self._is_refusal), finish, self.usage)


def _read_text(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return the text and the reasoning of a message or a delta.

    A refusal is a text. Some servers send the content as a list of texts and thoughts.
    """
    content = message.get("content") or message.get("refusal") or ""
    thinking = message.get("reasoning_content") or message.get("reasoning") or ""
    thinking = thinking if isinstance(thinking, str) else dump_json(thinking).decode()
    if isinstance(content, str):
        return content, thinking
    thoughts = [thought for part in content for thought in part.get("thinking") or ()]
    return "".join(part.get("text") or "" for part in content), thinking or "".join(one["text"] for one in thoughts)


def _parse_call(raw: dict[str, Any]) -> ToolCall:
    function = raw["function"]
    return ToolCall.from_reply(raw.get("id"), function.get("name"), function.get("arguments"))


def _create_message(
    model: str, text: str, thinking: str, calls: tuple[ToolCall, ...], raw_calls: Sequence[_Fields], fields: _Fields
) -> Message:
    """Return the message of a reply, with the fields of it and of its calls that their server wants back."""
    items: list[_Fields] = [{"type": "reply", **fields}] if fields else []
    call_fields = [{k: v for k, v in raw.items() if k not in CALL_FIELDS and v is not None} for raw in raw_calls]
    if any(call_fields):
        items += [{"type": "function", "id": call.id, **one} for call, one in zip(calls, call_fields, strict=True)]
    native = NativeReply(model, tuple(items), "chat") if items else None
    return Message("assistant", text, tool_calls=calls, thinking=thinking, native=native)


def _parse_finish_reason(raw_reason: str | None, has_calls: bool) -> FinishReason:
    """Return why the model stopped; some servers report "stop" for replies with calls."""
    reason = FINISH_REASONS.get(str(raw_reason).lower(), "stop")
    return "tool_calls" if has_calls and reason == "stop" else reason


def parse_usage(raw: Mapping[str, Any], input_name: str = "prompt", output_name: str = "completion") -> Usage:
    """Return the tokens of a reply from its `usage`; the names are the beginnings of its keys."""
    return Usage(
        parse_token_count(raw, f"{input_name}_tokens"),
        parse_token_count(raw, f"{output_name}_tokens"),
        1,
        parse_token_count(raw.get(f"{input_name}_tokens_details"), "cached_tokens"),
        parse_token_count(raw.get(f"{output_name}_tokens_details"), "reasoning_tokens"),
    )


def _parse_tokens(raw: Any) -> tuple[Token, ...]:
    """Return the tokens of a reply with their alternatives, if the server sent any."""
    content = raw.get("content") if isinstance(raw, dict) else None
    return tuple(
        Token(token["token"], tuple((one["token"], one["logprob"]) for one in token.get("top_logprobs") or ()))
        for token in content or ()
    )


def move_result_media(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with the images and files of tool results in a user message after the results.

    The API allows text only in results.
    """
    moved: list[Message] = []
    media: list[ContentPart] = []
    for message in messages:
        if message.role != "tool" and media:
            moved.append(user_message(join_text(media), tuple(media)))
            media = []
        if message.role == "tool" and message.media:
            media += [TextPart(f"[Result of {message.name or message.call_id}]"), *message.media]
            message = tool_message(message.call_id, message.name, message.content)
        moved.append(message)
    return [*moved, user_message(join_text(media), tuple(media))] if media else moved


def _encode_part(part: ContentPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart):
        detail = {"detail": part.detail} if part.detail else {}
        return {"type": "image_url", "image_url": {"url": to_data_url(part), **detail}}
    return {"type": "file", "file": {"filename": part.name or "file", "file_data": to_data_url(part)}}


def _encode_tools(tools: Sequence[ToolDefinition], options: ModelOptions) -> bytes:
    """Return the end of a request body, with the tools, those that the server runs first, and their choice."""
    hosted, choice = options.extra_body.get("tools") or (), options.tool_choice
    encoded_tools = b",".join([*map(dump_json, hosted), *(tool.encode_once("chat", _encode_tool) for tool in tools)])
    wire = {"type": "function", "function": {"name": choice.name}} if isinstance(choice, ForcedTool) else choice
    encoded_choice = b',"tool_choice":' + dump_json(wire) if choice != "auto" else b""
    return b',"tools":[' + encoded_tools + b"]" + encoded_choice + b"}"


def _encode_tool(tool: ToolDefinition) -> bytes:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.flat_parameters}
    return dump_json({"type": "function", "function": function | ({"strict": True} if tool.strict else {})})
