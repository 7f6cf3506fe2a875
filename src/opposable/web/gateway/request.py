"""A chat-completions request, read: what is wrong with it is told, what a model need not know is left out."""

from dataclasses import dataclass
from typing import Any

import orjson

from opposable.agent.history import repaired
from opposable.domain.messages import Message, Role, assistant, system, tool, user
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.base import ModelOptions, Named, ToolChoice
from opposable.parsers import defuse, read_arguments
from opposable.web.gateway.tool_schemas import definitions
from opposable.web.openai_errors import WireError, bad_request

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a client asks for.

    `one_call` is true where it wants no more than one call a reply, `include_usage` where a stream should end with
    token counts.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    options: ModelOptions
    one_call: bool = False
    include_usage: bool = False

    @property
    def plain(self) -> bool:
        """Whether tools play no part in it."""
        return not self.tools and not any(message.tool_calls or message.role == "tool" for message in self.messages)


def read_request(raw: bytes) -> ChatRequest:
    """The request in `raw`. Parameters that are not known are ignored. Raises: `WireError` 400."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise WireError(400, f"The body is no JSON: {error}.", code="invalid_json") from error
    if not isinstance(body, dict):
        raise WireError(400, "The body must be a JSON object.", code="invalid_json")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise bad_request("model", "You must name a model; GET /v1/models lists them.")
    if body.get("functions"):
        raise bad_request("functions", "functions is the old way; send the same as tools.")
    if body.get("n") not in (None, 1):
        raise bad_request("n", "n must be 1: this gateway gives one choice a request.", "unsupported_value")
    choice, tools = _tool_choice(body.get("tool_choice"), definitions(body.get("tools")))
    stream = body.get("stream") is True
    asked = body.get("stream_options")
    return ChatRequest(
        model,
        tuple(repaired(_messages(body.get("messages")))),
        tools,
        _options(body, stream, choice),
        body.get("parallel_tool_calls") is False,
        stream and isinstance(asked, dict) and asked.get("include_usage") is True,
    )


def _options(body: dict[str, Any], stream: bool, choice: ToolChoice) -> ModelOptions:
    bound = "max_completion_tokens" if body.get("max_completion_tokens") is not None else "max_tokens"
    max_tokens = _number(body, bound, low=1, whole=True)
    seed = _number(body, "seed", low=-(2**63), whole=True)
    return ModelOptions(
        stream=stream,
        tool_choice=choice,
        max_tokens=None if max_tokens is None else int(max_tokens),
        temperature=_number(body, "temperature", low=0, high=2),
        stop=_stop(body.get("stop")),
        seed=None if seed is None else int(seed),
        response_schema=_response_schema(body.get("response_format")),
    )


def _number(
    body: dict[str, Any], name: str, *, low: float, high: float = float("inf"), whole: bool = False
) -> float | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not low <= value <= high:
        kind = "a whole number" if whole else "a number"
        bounds = f"from {low} to {high}" if high != float("inf") else f"of at least {low}"
        raise bad_request(name, f"{name} must be {kind} {bounds}, not {value!r}.", "invalid_value")
    return value


def _stop(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    raise bad_request("stop", "stop must be a text or a list of texts.", "invalid_value")


def _response_schema(value: Any) -> dict[str, Any] | None:
    kind = value.get("type") if isinstance(value, dict) else None
    if value is None or kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    told = value.get("json_schema") if kind == "json_schema" else None
    schema = told.get("schema") if isinstance(told, dict) else None
    if isinstance(schema, dict):
        return schema
    raise bad_request(
        "response_format",
        'response_format must be {"type": "text"}, {"type": "json_object"}, '
        'or {"type": "json_schema", "json_schema": {"name": …, "schema": {…}}}.',
    )


def _tool_choice(value: Any, tools: tuple[ToolDefinition, ...]) -> tuple[ToolChoice, tuple[ToolDefinition, ...]]:
    """The choice, and the tools it leaves."""
    if isinstance(value, dict) and value.get("type") == "allowed_tools":
        allowed = value.get("allowed_tools", value)
        listed = allowed.get("tools") if isinstance(allowed, dict) else None
        names = {_named(one) for one in listed} if isinstance(listed, list) else set()
        return _tool_choice(allowed.get("mode", "auto"), tuple(tool for tool in tools if tool.name in names))
    if value is None:
        return "auto", tools
    if value in ("none", "auto"):
        return value, tools
    name = _named(value)
    if value != "required" and name is None:
        raise bad_request(
            "tool_choice",
            'tool_choice must be "none", "auto", "required" or {"type": "function", "function": {"name": …}}.',
        )
    if not tools:
        raise bad_request("tool_choice", "tool_choice asks for a call, but no tools are given.")
    if name is None:
        return "required", tools
    if all(tool.name != name for tool in tools):
        raise bad_request("tool_choice", f"tool_choice names {name!r}, but the tools have no such tool.")
    return Named(name), tools


def _named(value: Any) -> str | None:
    if not isinstance(value, dict) or value.get("type") != "function":
        return None
    function = value.get("function", value)
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


def _messages(value: Any) -> list[Message]:
    if not isinstance(value, list) or not value:
        raise bad_request("messages", "messages must be a list of at least one message.")
    names: dict[str, str] = {}
    return [_message(raw, f"messages[{n}]", names) for n, raw in enumerate(value)]


def _message(raw: Any, where: str, names: dict[str, str]) -> Message:
    """One message; `names` are those of the tools called before it, by the ids of the calls."""
    if not isinstance(raw, dict):
        raise bad_request(where, f"{where} must be an object with role and content.")
    named = raw.get("role")
    role = ROLES.get(named) if isinstance(named, str) else None
    content = raw.get("content")
    if role is None:
        raise bad_request(f"{where}.role", f"{where} has the role {named!r}; roles are {', '.join(ROLES)}.")
    if content is None and role in ("system", "user"):
        raise bad_request(f"{where}.content", f"{where} has no content.")
    text = _text(content, f"{where}.content")
    if role == "assistant":
        thinking = raw.get("reasoning_content")
        calls = _calls(raw, where)
        names.update((call.id, call.name) for call in calls)
        return assistant(text, calls, thinking if isinstance(thinking, str) else "")
    if role == "tool":
        call_id = _call_id(raw, where)
        return tool(call_id, names.get(call_id, ""), defuse(text))
    return system(text) if role == "system" else user(text)


def _text(content: Any, where: str) -> str:
    """The text of a message's content, which may come in parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise bad_request(where, f"{where} must be a text or a list of parts.")
    texts = []
    for n, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        text: Any = part.get(kind) if kind in ("text", "refusal") else part
        if not isinstance(text, str):
            raise bad_request(
                f"{where}[{n}]",
                f"{where}[{n}] is of type {kind!r}; this gateway takes text only.",
                "unsupported_content",
            )
        texts.append(text)
    return "\n".join(texts)


def _calls(raw: dict[str, Any], where: str) -> tuple[ToolCall, ...]:
    """The calls of an earlier reply, each with arguments that are a JSON object."""
    calls = raw.get("tool_calls") or ()
    if not calls and isinstance(raw.get("function_call"), dict):
        name = str(raw["function_call"].get("name"))
        calls = [{"id": f"function_{name}", "function": raw["function_call"]}]
    if not isinstance(calls, list | tuple):
        raise bad_request(f"{where}.tool_calls", f"{where}.tool_calls must be a list.")
    read = []
    for n, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not all(
            isinstance(one, str) for one in (function.get("name"), call.get("id"))
        ):
            raise bad_request(
                f"{where}.tool_calls[{n}]", f"{where}.tool_calls[{n}] must have an id and a function with a name."
            )
        read.append(ToolCall(call["id"], function["name"], _arguments(function.get("arguments"))))
    return tuple(read)


def _arguments(given: Any) -> str:
    """Arguments as a JSON object: as they are where they are one, mended where that can be, else quoted in one."""
    text = given if isinstance(given, str) else orjson.dumps(given if given is not None else {}).decode()
    try:
        if isinstance(orjson.loads(text), dict):
            return text
    except orjson.JSONDecodeError:
        pass
    value = read_arguments(text, {}).value
    return orjson.dumps({"unreadable": text} if value is None else value).decode()


def _call_id(raw: dict[str, Any], where: str) -> str:
    if raw["role"] == "function":
        return f"function_{raw.get('name')}"
    call_id = raw.get("tool_call_id")
    if not isinstance(call_id, str) or not call_id:
        raise bad_request(f"{where}.tool_call_id", f"{where} is the result of a tool and must have a tool_call_id.")
    return call_id
