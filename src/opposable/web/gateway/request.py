"""Parsing and validation of chat-completions requests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import Request

from opposable.agent.history import match_results_to_calls
from opposable.domain.content import ContentPart, FilePart, ImagePart, TextPart, join_text, parse_data_url
from opposable.domain.errors import BadInput
from opposable.domain.json_text import dump_json, parse_json
from opposable.domain.messages import Message, Role, assistant_message, system_message, tool_message, user_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.base import ForcedTool, ModelOptions, ToolChoice
from opposable.parsers import parse_arguments
from opposable.web.gateway.parameters import HINTS, OWNED_PARAMETERS, select_parameters
from opposable.web.gateway.tool_schemas import parse_tools
from opposable.web.openai_errors import GatewayError, bad_request_error

Number = TypeVar("Number", int, float)

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A chat-completions request.

    Attributes:
        model: The requested name of the model.
        messages: The conversation.
        tools: The tools that the model may call.
        options: The other options of the model request.
        single_call_only: Whether a reply may have at most one call (`parallel_tool_calls: false`).
        include_usage: Whether a stream ends with the token counts.
        extra: The parameters that the gateway does not use itself.
        hints: More such parameters, which models that do not support them ignore.
        ignored: The names of parameters that have no effect on models of other servers.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    options: ModelOptions
    single_call_only: bool = False
    include_usage: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    hints: Mapping[str, Any] = field(default_factory=dict, hash=False)
    ignored: tuple[str, ...] = ()

    @property
    def is_without_tools(self) -> bool:
        """Whether the request has no tools, calls or tool results."""
        return not self.tools and not any(message.tool_calls or message.role == "tool" for message in self.messages)


def parse_json_object(raw: bytes) -> dict[str, Any]:
    """Return the JSON object of a body.

    Raises:
        GatewayError: 400, if it is not one.
    """
    try:
        body = parse_json(raw)
    except ValueError as error:
        raise GatewayError(400, f"The body is not valid JSON: {error}.", code="invalid_json") from error
    if not isinstance(body, dict):
        raise GatewayError(400, "The body must be a JSON object.", code="invalid_json")
    return body


def parse_model_name(body: Mapping[str, Any]) -> str:
    """Return the requested model.

    Raises:
        GatewayError: 400, if it is missing.
    """
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise bad_request_error("model", "model is missing. GET /v1/models lists the available models.")
    return model


def parse_body(body: Mapping[str, Any]) -> CompletionRequest:
    """Parse the body of a request.

    Raises:
        GatewayError: 400, with the path of the wrong parameter.
    """
    model = parse_model_name(body)
    if body.get("functions"):
        raise bad_request_error("functions", "functions is not supported. Use tools instead.")
    if body.get("n") not in (None, 1):
        raise bad_request_error("n", "n must be 1: this gateway returns one choice.", "unsupported_value")
    choice, tools = parse_tool_choice(body.get("tool_choice"), parse_tools(body.get("tools")))
    stream = body.get("stream") is True
    stream_options = body.get("stream_options")
    return CompletionRequest(
        model,
        tuple(match_results_to_calls(_parse_messages(body.get("messages")))),
        tools,
        _parse_options(body, stream, choice),
        body.get("parallel_tool_calls") is False,
        stream and isinstance(stream_options, dict) and stream_options.get("include_usage") is True,
        select_parameters(body, body.keys() - OWNED_PARAMETERS - HINTS),
        select_parameters(body, HINTS),
    )


def _parse_options(body: Mapping[str, Any], stream: bool, choice: ToolChoice) -> ModelOptions:
    limit_name = "max_completion_tokens" if body.get("max_completion_tokens") is not None else "max_tokens"
    return ModelOptions(
        stream=stream,
        tool_choice=choice,
        max_tokens=parse_number(body, limit_name, int, low=1),
        temperature=parse_number(body, "temperature", float, low=0, high=2),
        stop=parse_stop(body.get("stop")),
        seed=parse_number(body, "seed", int, low=-(2**63)),
        response_schema=parse_response_format(body.get("response_format")),
    )


def parse_number(
    body: Mapping[str, Any], name: str, kind: type[Number], *, low: float, high: float = float("inf")
) -> Number | None:
    """Return a number of a body, None without one. An integer is a `float` too.

    Raises:
        GatewayError: 400, if it is not a number of this range.
    """
    value: Number | None = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, kind)) or not low <= value <= high:
        expected = "an integer" if kind is int else "a number"
        allowed_range = f"from {low} to {high}" if high != float("inf") else f"of at least {low}"
        raise bad_request_error(name, f"{name} must be {expected} {allowed_range}, not {value!r}.", "invalid_value")
    return value


def parse_stop(value: Any, name: str = "stop") -> tuple[str, ...]:
    """Return the texts that end a reply.

    Raises:
        GatewayError: 400, if they are not texts.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise bad_request_error(name, f"{name} must be a string or a list of strings.", "invalid_value")


def parse_response_format(value: Any, name: str = "response_format") -> dict[str, Any] | None:
    """Return the schema of a response format, None for text.

    Raises:
        GatewayError: 400, if it is not one.
    """
    kind = value.get("type") if isinstance(value, dict) else None
    if value is None or kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    json_schema = value.get("json_schema") if kind == "json_schema" else None
    schema = json_schema.get("schema") if isinstance(json_schema, dict) else None
    if isinstance(schema, dict):
        return schema
    raise bad_request_error(
        name,
        f'{name} must be {{"type": "text"}}, {{"type": "json_object"}}, '
        'or {"type": "json_schema", "json_schema": {"name": …, "schema": {…}}}.',
    )


def parse_tool_choice(value: Any, tools: tuple[ToolDefinition, ...]) -> tuple[ToolChoice, tuple[ToolDefinition, ...]]:
    """Return the tool choice and the tools that it allows.

    Raises:
        GatewayError: 400, if it is not one.
    """
    if isinstance(value, dict) and value.get("type") == "allowed_tools":
        allowed = value.get("allowed_tools", value)
        if not isinstance(allowed, dict):
            raise bad_request_error("tool_choice", "tool_choice.allowed_tools must be an object with mode and tools.")
        allowed_tools = allowed.get("tools")
        names = {_get_function_name(tool) for tool in allowed_tools} if isinstance(allowed_tools, list) else set()
        return parse_tool_choice(allowed.get("mode", "auto"), tuple(tool for tool in tools if tool.name in names))
    if value is None:
        return "auto", tools
    if value in ("none", "auto"):
        return value, tools
    name = _get_function_name(value)
    if value != "required" and name is None:
        raise bad_request_error(
            "tool_choice",
            'tool_choice must be "none", "auto", "required" or {"type": "function", "function": {"name": …}}.',
        )
    if not tools:
        raise bad_request_error("tool_choice", "tool_choice requires a call, but there are no tools.")
    if name is None:
        return "required", tools
    if all(tool.name != name for tool in tools):
        raise bad_request_error("tool_choice", f"tool_choice names {name!r}, which is not one of the tools.")
    return ForcedTool(name), tools


def _get_function_name(value: Any) -> str | None:
    if not isinstance(value, dict) or value.get("type") != "function":
        return None
    function = value.get("function", value)
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


def _parse_messages(value: Any) -> list[Message]:
    if not isinstance(value, list) or not value:
        raise bad_request_error("messages", "messages must be a list with at least one message.")
    tool_names: dict[str, str] = {}
    return [_parse_message(raw, f"messages[{index}]", tool_names) for index, raw in enumerate(value)]


def _parse_message(raw: Any, path: str, tool_names: dict[str, str]) -> Message:
    """Parse a message; `tool_names` collects the tool names of calls by call id."""
    if not isinstance(raw, dict):
        raise bad_request_error(path, f"{path} must be an object with role and content.")
    role_name = raw.get("role")
    role = ROLES.get(role_name) if isinstance(role_name, str) else None
    content = raw.get("content")
    if role is None:
        message = f"{path} has the unknown role {role_name!r}. Roles are {', '.join(ROLES)}."
        raise bad_request_error(f"{path}.role", message)
    if content is None and role in ("system", "user"):
        raise bad_request_error(f"{path}.content", f"{path} has no content.")
    text, parts = parse_content(content, f"{path}.content", _parse_part)
    if parts and role != "user":
        raise bad_request_error(
            f"{path}.content", f"{path} has the role {role_name!r}. Only user messages may have images and files."
        )
    if role == "assistant":
        thinking, refusal = raw.get("reasoning_content"), raw.get("refusal")
        text = text or (refusal if isinstance(refusal, str) else "")
        calls = _parse_tool_calls(raw, path)
        tool_names.update((call.id, call.name) for call in calls)
        return assistant_message(text, calls, thinking if isinstance(thinking, str) else "")
    if role == "tool":
        call_id = _get_call_id(raw, path)
        return tool_message(call_id, tool_names.get(call_id, ""), text)
    return system_message(text) if role == "system" else user_message(text, parts)


def parse_content(
    content: Any, path: str, parse_part: Callable[[Any, str], ContentPart]
) -> tuple[str, tuple[ContentPart, ...]]:
    """Return the text of a message, and all its parts if there are images or files.

    Raises:
        GatewayError: 400, if it is neither text nor a list of parts.
    """
    if content is None or isinstance(content, str):
        return content or "", ()
    if not isinstance(content, list):
        raise bad_request_error(path, f"{path} must be a string or a list of parts.")
    return split_parts([parse_part(part, f"{path}[{index}]") for index, part in enumerate(content)])


def split_parts(parts: Sequence[ContentPart]) -> tuple[str, tuple[ContentPart, ...]]:
    """Return the text of the parts of a message, and all parts if there are images or files."""
    return join_text(parts), tuple(parts) if any(not isinstance(part, TextPart) for part in parts) else ()


def _parse_part(part: Any, path: str) -> ContentPart:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("text", "refusal") and isinstance(part.get(kind), str):
        return TextPart(part[kind])
    inner = part.get(kind) if kind in ("image_url", "file") else None
    if kind == "image_url" and isinstance(inner, dict) and isinstance(inner.get("url"), str):
        return parse_image(inner["url"], f"{path}.image_url.url", str(inner.get("detail") or ""))
    if kind == "file" and isinstance(inner, dict) and isinstance(inner.get("file_data"), str):
        return parse_file(inner["file_data"], f"{path}.file.file_data", str(inner.get("filename") or ""))
    raise bad_request_error(
        path,
        f"{path} has the type {kind!r}. Supported are text, image_url with a URL, and file with file_data.",
        "unsupported_content",
    )


def parse_image(url: str, path: str, detail: str = "") -> ImagePart:
    """Return the image of an HTTP or data URL.

    Raises:
        GatewayError: 400, if it is not one.
    """
    if url.startswith(("https://", "http://")):
        return ImagePart(url, detail=detail)
    media_type, data = _decode_data_url(url, path)
    return ImagePart("", data, media_type, detail)


def parse_file(url: str, path: str, name: str) -> FilePart:
    """Return the file of a data URL.

    Raises:
        GatewayError: 400, if it is not one.
    """
    media_type, data = _decode_data_url(url, path)
    return FilePart("", data, media_type, name)


def _decode_data_url(url: str, path: str) -> tuple[str, bytes]:
    try:
        return parse_data_url(url)
    except BadInput as error:
        raise bad_request_error(path, f"{path}: {error}", "unsupported_content") from error


def _parse_tool_calls(raw: dict[str, Any], path: str) -> tuple[ToolCall, ...]:
    """Parse the calls of an earlier reply."""
    calls = raw.get("tool_calls") or ()
    if not calls and isinstance(raw.get("function_call"), dict):
        name = str(raw["function_call"].get("name"))
        calls = [{"id": f"function_{name}", "function": raw["function_call"]}]
    if not isinstance(calls, list | tuple):
        raise bad_request_error(f"{path}.tool_calls", f"{path}.tool_calls must be a list.")
    parsed_calls = []
    for index, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not all(
            isinstance(value, str) for value in (function.get("name"), call.get("id"))
        ):
            call_path = f"{path}.tool_calls[{index}]"
            raise bad_request_error(call_path, f"{call_path} must have an id and a function with a name.")
        arguments = normalize_arguments(function.get("arguments"))
        parsed_calls.append(ToolCall.from_json(call["id"], function["name"], arguments))
    return tuple(parsed_calls)


def normalize_arguments(arguments: Any) -> str:
    """Return the arguments as the text of a JSON object.

    They are unchanged if they are one, else repaired, else the value of the key `unreadable`.
    """
    text = arguments if isinstance(arguments, str) else dump_json(arguments if arguments is not None else {}).decode()
    try:
        if isinstance(parse_json(text), dict):
            return text
    except ValueError:
        pass
    value = parse_arguments(text, {}).value
    return dump_json({"unreadable": text} if value is None else value).decode()


def _get_call_id(raw: dict[str, Any], path: str) -> str:
    if raw["role"] == "function":
        return f"function_{raw.get('name')}"
    call_id = raw.get("tool_call_id")
    if not isinstance(call_id, str) or not call_id:
        raise bad_request_error(f"{path}.tool_call_id", f"{path} is the result of a tool and must have a tool_call_id.")
    return call_id


async def read_json_body(request: Request, max_bytes: int) -> bytes:
    """Return the body of a JSON request.

    Raises:
        GatewayError: 400 for another content type, 413 for a body of more than `max_bytes`.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise GatewayError(400, "The body must be sent as Content-Type: application/json.", code="invalid_content_type")
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > max_bytes:
        raise _too_large_error(max_bytes)
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > max_bytes:
            raise _too_large_error(max_bytes)
        chunks.append(chunk)
    return b"".join(chunks)


def _too_large_error(max_bytes: int) -> GatewayError:
    return GatewayError(413, f"The request body is larger than {max_bytes:,} bytes.", code="request_too_large")
