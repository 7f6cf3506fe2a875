"""The chat-completions wire format: OpenAI, DashScope, DeepSeek, vLLM, Ollama, llama.cpp and whoever speaks it."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from opposable.domain.errors import ContextFull, ModelError, ModelRejected
from opposable.domain.events import CallDelta, FinishReason, ModelPart, Reply, TextDelta, ThinkingDelta, Token
from opposable.domain.messages import Message
from opposable.domain.tools import ToolCall, ToolDefinition, new_call_id
from opposable.domain.usage import Usage
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions, Named
from opposable.models.http_client import CONTEXT_WORDS, Endpoint, Patience, to_json

FINISH: dict[str | None, FinishReason] = {
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


@dataclass(frozen=True, slots=True)
class Habits:
    """Where servers of this format differ.

    `thinking_back`: the server wants a reply's reasoning back with it. `max_tokens_key`: the name of the bound on the
    reply. `usage_in_stream`: the server must be asked for token counts when streaming. `extra` goes into each request.
    """

    thinking_back: bool = False
    max_tokens_key: str = "max_tokens"
    usage_in_stream: bool = True
    extra: dict[str, Any] = field(default_factory=dict)


class OpenAICompatibleModel:
    """A model behind a chat-completions URL.

    `base_url` ends before `/chat/completions` (usually in `/v1`). Messages and tools are serialised once and their
    bytes kept, so a turn costs the same early and late in a run.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        api_key: str = "",
        *,
        headers: dict[str, str] | None = None,
        habits: Habits | None = None,
        patience: Patience | None = None,
    ) -> None:
        self.name = model
        self._habits = habits or Habits()
        self._format = "chat+thinking" if self._habits.thinking_back else "chat"
        authorization = {"authorization": f"Bearer {api_key}"} if api_key else {}
        hint = "The base URL of an OpenAI-compatible server usually ends in /v1."
        url = base_url.rstrip("/") + "/chat/completions"
        self._endpoint = Endpoint(url, {**authorization, **(headers or {})}, api_key, patience or Patience(), hint)
        self._settings: tuple[ModelOptions, bytes] | None = None
        self._tools: dict[int, tuple[Sequence[ToolDefinition], bytes]] = {}

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelPart, None]:
        """One reply in parts. Raises: `ModelError` kinds."""
        body = self._body(messages, tools, options)
        if not options.stream:
            yield self._whole(await self._endpoint.post(body))
            return
        writing = _Writing()
        lines = self._endpoint.lines(body)
        try:
            async for line in lines:
                chunk = _loads(line)
                choices = chunk.get("choices")
                if choices and (text := (delta := choices[0].get("delta") or {}).get("content")) and len(delta) == 1:
                    writing.text.append(text)  # the common case by far: a piece of text and nothing else
                    yield TextDelta(text)
                    if finish := choices[0].get("finish_reason"):
                        writing.finish = finish
                    if usage := chunk.get("usage"):
                        writing.usage = _usage(usage)
                    continue
                if "error" in chunk:
                    raise self._told(chunk["error"])
                for part in writing.read(chunk):
                    yield part
        finally:
            await lines.aclose()
        yield writing.reply()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    def _body(self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions) -> bytes:
        """The request: the settings, then the messages' and tools' kept bytes."""
        wire = self._format
        pieces = [message.memo.get(wire) or self._message(message) for message in messages]
        end = self._tools_bytes(tools, options) if tools else b"}"
        return b"".join((self._settings_bytes(options), b',"messages":[', b",".join(pieces), b"]", end))

    def _settings_bytes(self, options: ModelOptions) -> bytes:
        if self._settings is not None and self._settings[0] is options:
            return self._settings[1]
        body: dict[str, Any] = {"model": self.name, **self._habits.extra}
        if options.stream:
            body["stream"] = True
            if self._habits.usage_in_stream:
                body["stream_options"] = {"include_usage": True}
        if options.max_tokens is not None:
            body[self._habits.max_tokens_key] = options.max_tokens
        if options.temperature is not None:
            body["temperature"] = options.temperature
        if options.stop:
            body["stop"] = options.stop
        if options.seed is not None:
            body["seed"] = options.seed
        if options.alternatives is not None:
            body |= {"logprobs": True, "top_logprobs": options.alternatives}
        if options.response_schema is not None:
            closed = options.response_schema.get("additionalProperties") is False  # what strict servers ask for
            schema = {"name": "reply", "schema": options.response_schema, "strict": closed}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        raw = orjson.dumps(body)[:-1]
        self._settings = (options, raw)
        return raw

    def _tools_bytes(self, tools: Sequence[ToolDefinition], options: ModelOptions) -> bytes:
        kept = self._tools.get(id(tools))
        if kept is None or kept[0] is not tools:
            raw = b',"tools":[' + b",".join([_tool(definition) for definition in tools]) + b"]"
            if len(self._tools) >= 64:
                self._tools.clear()
            kept = self._tools[id(tools)] = (tools, raw)
        return (
            kept[1] + _CHOICES[options.tool_choice]
            if isinstance(options.tool_choice, str)
            else (kept[1] + _named_choice(options.tool_choice))
        )

    def _message(self, message: Message) -> bytes:
        """The wire form of a message, made once."""
        wire: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.role == "tool":
            wire["tool_call_id"] = message.call_id
        if message.tool_calls:
            wire["content"] = message.content or None
            wire["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in message.tool_calls
            ]
        if message.thinking and self._habits.thinking_back:
            wire["reasoning_content"] = message.thinking
        raw = message.memo[self._format] = to_json(wire)
        return raw

    def _whole(self, answer: Any) -> Reply:
        """The reply of an answer that came in one piece."""
        if isinstance(answer, dict) and answer.get("error"):
            raise self._told(answer["error"])
        try:
            choice = answer["choices"][0]
            message = choice["message"]
            calls = tuple(_call(raw) for raw in message.get("tool_calls") or ())
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise ModelRejected(
                f"The server at {self._endpoint.url} sent no chat completion: {str(answer)[:200]}"
            ) from error
        thinking = message.get("reasoning_content") or message.get("reasoning") or ""
        said = Message("assistant", message.get("content") or "", tool_calls=calls, thinking=thinking)
        finish = _finish(choice.get("finish_reason"), bool(calls))
        return Reply(said, finish, _usage(answer.get("usage") or {}), _tokens(choice.get("logprobs")))

    def _told(self, error: Any) -> ModelError:
        """An error the server told with status 200."""
        said = error.get("message") if isinstance(error, dict) else error
        text = self._endpoint.redacted(str(said or error)[:600])
        if CONTEXT_WORDS.search(text) or CONTEXT_WORDS.search(str(error)):
            return ContextFull(f"The messages do not fit into the model's context window: {text}")
        return ModelRejected(f"The model server at {self._endpoint.url} broke off: {text}")


class _Writing:
    """A streamed reply while it is being written."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.finish: str | None = None
        self.usage = Usage(requests=1)
        self._thinking: list[str] = []
        self._calls: list[list[str]] = []  # [id, name, arguments…] in order of appearance
        self._places: dict[Any, int] = {}  # the server's index -> place in _calls

    def read(self, chunk: dict[str, Any]) -> list[ModelPart]:
        """What a chunk brings."""
        if chunk.get("usage"):
            self.usage = _usage(chunk["usage"])
        if not chunk.get("choices"):
            return []
        choice = chunk["choices"][0]
        self.finish = choice.get("finish_reason") or self.finish
        delta = choice.get("delta") or choice.get("message") or {}
        parts: list[ModelPart] = []
        if thought := delta.get("reasoning_content") or delta.get("reasoning"):
            self._thinking.append(thought)
            parts.append(ThinkingDelta(thought))
        if text := delta.get("content"):
            self.text.append(text)
            parts.append(TextDelta(text))
        parts += [self._piece(raw) for raw in delta.get("tool_calls") or ()]
        return parts

    def _piece(self, raw: dict[str, Any]) -> CallDelta:
        function = raw.get("function") or {}
        arguments = function.get("arguments") or ""
        arguments = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
        key = raw.get("index", raw.get("id"))  # some servers send no index
        place = self._places.get(key) if key is not None else (len(self._calls) - 1 if self._calls else None)
        if place is None:
            place = self._places[key] = len(self._calls)
            self._calls.append([raw.get("id") or new_call_id(), function.get("name") or "", arguments])
            return CallDelta(place, self._calls[place][0], self._calls[place][1], arguments)
        call = self._calls[place]
        late_name = function.get("name") or "" if not call[1] else ""
        call[1] = call[1] or late_name
        call.append(arguments)
        return CallDelta(place, name=late_name, arguments=arguments)

    def reply(self) -> Reply:
        """The whole reply."""
        cut = self.finish == "length"
        last = len(self._calls) - 1
        calls = tuple(
            ToolCall(call[0], call[1], "".join(call[2:]), truncated=cut and i == last)
            for i, call in enumerate(self._calls)
        )
        message = Message("assistant", "".join(self.text), tool_calls=calls, thinking="".join(self._thinking))
        return Reply(message, _finish(self.finish, bool(calls)), self.usage)


def _call(raw: dict[str, Any]) -> ToolCall:
    function = raw["function"]
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode()
    return ToolCall(raw.get("id") or new_call_id(), function.get("name") or "", text)


def _finish(said: str | None, calls: bool) -> FinishReason:
    """Why the model stopped; some servers say "stop" beside calls."""
    reason = FINISH.get(said, "stop")
    return "tool_calls" if calls and reason == "stop" else reason


def _usage(raw: dict[str, Any]) -> Usage:
    return Usage(raw.get("prompt_tokens") or 0, raw.get("completion_tokens") or 0, 1)


def _tokens(raw: Any) -> tuple[Token, ...]:
    """The tokens of a reply with their alternatives, where the server gave any."""
    content = raw.get("content") if isinstance(raw, dict) else None
    return tuple(
        Token(one["token"], tuple((other["token"], other["logprob"]) for other in one.get("top_logprobs") or ()))
        for one in content or ()
    )


def _tool(definition: ToolDefinition) -> bytes:
    raw = definition.memo.get("chat")
    if raw is None:
        function = {
            "name": definition.name,
            "description": definition.description,
            "parameters": definition.parameters,
        }
        raw = definition.memo["chat"] = to_json({"type": "function", "function": function})
    return raw


_CHOICES = {"auto": b"}", "none": b',"tool_choice":"none"}', "required": b',"tool_choice":"required"}'}


def _named_choice(choice: Named) -> bytes:
    return b',"tool_choice":' + orjson.dumps({"type": "function", "function": {"name": choice.name}}) + b"}"


def _loads(line: bytes) -> dict[str, Any]:
    try:
        chunk = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ModelRejected(f"The server streamed something that is no JSON: {line[:120]!r}") from error
    return chunk if isinstance(chunk, dict) else {}
