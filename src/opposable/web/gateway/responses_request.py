"""Parsing of requests of OpenAI's responses API."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import orjson

from opposable.agent.history import match_results_to_calls
from opposable.domain.content import ContentPart, FilePart, TextPart
from opposable.domain.messages import Message, assistant_message, system_message, tool_message, user_message
from opposable.domain.tools import ToolCall
from opposable.models.base import ModelOptions
from opposable.tools.tool_names import to_hashed_name
from opposable.web.gateway.parameters import select_parameters
from opposable.web.gateway.request import (
    CompletionRequest,
    normalize_arguments,
    parse_content,
    parse_file,
    parse_image,
    parse_model_name,
    parse_number,
    parse_response_format,
    parse_tool_choice,
)
from opposable.web.gateway.tool_schemas import parse_tools
from opposable.web.openai_errors import bad_request_error

HINTS = frozenset(
    {"include", "truncation", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"}
    | {"client_metadata", "safety_identifier", "user", "max_tool_calls", "stream_options"}
)
"""Parameters that do not change what a valid reply is; other models than OpenAI's ignore and report them."""

UNSUPPORTED = ("background", "conversation", "prompt", "context_management", "moderation")

_OWNED = frozenset(
    {"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens"}
    | {"temperature", "text", "store", "previous_response_id", "stream", *UNSUPPORTED}
    | {"reasoning", "metadata", "service_tier"}
)
MAX_NAME_CHARACTERS = 64
_CUSTOM_INPUT = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "The whole input of the tool, as text."}},
    "required": ["input"],
    "additionalProperties": False,
}
_ID_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "reasoning": "rs",
}
_SERVER_ITEMS = (
    *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
    *("mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response"),
)
"""Items of tools that OpenAI ran, which have no place in other APIs: other models than OpenAI's ignore and report them."""
_TEXT_KINDS = ("input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text")


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """A request to create a response.

    Attributes:
        completion: The request to the model.
        body: The body, whose settings the response repeats.
        custom_tools: The names of tools that take a text instead of arguments.
        namespaces: The namespace and name of tools in a namespace, by the name that the model gets.
        previous_response_id: The response that this one continues, "" for none.
        is_stored: Whether later requests can continue the response.
        items: The items of the input, after those of the response that is continued; each has an id.
    """

    completion: CompletionRequest
    body: Mapping[str, Any]
    custom_tools: frozenset[str] = frozenset()
    namespaces: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    previous_response_id: str = ""
    is_stored: bool = True
    items: tuple[dict[str, Any], ...] = ()


def parse_response_request(body: Mapping[str, Any], history: Sequence[dict[str, Any]] = ()) -> ResponseRequest:
    """Parse the body of a request to `/v1/responses`, which continues the items of `history`.

    Raises:
        GatewayError: 400, with the path of the wrong parameter.
    """
    model = parse_model_name(body)
    for name in UNSUPPORTED:
        if body.get(name):
            raise bad_request_error(name, f"{name} is not supported. Remove it.", "unsupported_parameter")
    previous_id = body.get("previous_response_id") or ""
    if not isinstance(previous_id, str):
        raise bad_request_error("previous_response_id", "previous_response_id must be the id of a response.")
    flat_tools, namespaces = _flatten_namespaces(body.get("tools"))
    chat_tools, custom_tools = _to_chat_tools(flat_tools)
    choice, tools = parse_tool_choice(_to_chat_choice(body.get("tool_choice")), parse_tools(chat_tools))
    text = body.get("text") if isinstance(body.get("text"), dict) else {}
    options = ModelOptions(
        stream=body.get("stream") is True,
        tool_choice=choice,
        max_tokens=parse_number(body, "max_output_tokens", int, low=1),
        temperature=parse_number(body, "temperature", float, low=0, high=2),
        response_schema=_parse_format(text.get("format") if text else None),
    )
    instructions = body.get("instructions")
    head = [system_message(instructions)] if isinstance(instructions, str) and instructions else []
    items = (*history, *_read_items(body.get("input")))
    messages = tuple(match_results_to_calls([*head, *_parse_items(items, len(history))]))
    extra = select_parameters(body, body.keys() - _OWNED - HINTS)
    is_single = body.get("parallel_tool_calls") is False
    hints, ignored = _parse_hints(body)
    ignored += sorted({f"input.{item['type']}" for item in items if item["type"] in _SERVER_ITEMS})
    completion = CompletionRequest(
        model, messages, tools, options, is_single, extra=extra, hints=hints, ignored=tuple(ignored)
    )
    is_stored = body.get("store") is not False
    return ResponseRequest(completion, body, custom_tools, namespaces, previous_id, is_stored, items)


def _parse_hints(body: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the hints that servers of chat completions have too, by their names there, and the names of the others.

    Raises:
        GatewayError: 400, for log probabilities, which only a relayed response has.
    """
    include = body.get("include")
    if isinstance(include, list) and "message.output_text.logprobs" in include:
        message = "message.output_text.logprobs is not supported for this model. Remove it from include."
        raise bad_request_error("include", message, "unsupported_parameter")
    reasoning, text = body.get("reasoning"), body.get("text")
    reasoning = reasoning if isinstance(reasoning, dict) else {}
    effort = reasoning.get("effort")
    verbosity = text.get("verbosity") if isinstance(text, dict) else None
    hints = {"reasoning_effort": effort, "verbosity": verbosity, "service_tier": body.get("service_tier")}
    ignored = [f"reasoning.{name}" for name, value in reasoning.items() if name != "effort" and value is not None]
    return select_parameters(hints, hints), [*select_parameters(body, HINTS), *ignored]


def _parse_format(value: Any) -> dict[str, Any] | None:
    if isinstance(value, dict) and value.get("type") == "json_schema":
        value = {"type": "json_schema", "json_schema": value}
    return parse_response_format(value, "text.format")


def _flatten_namespaces(tools: Any) -> tuple[Any, dict[str, tuple[str, str]]]:
    """Return the tools with those of namespaces under one name, and the namespace and name of each of these."""
    if not isinstance(tools, list):
        return tools, {}
    flat: list[Any] = []
    namespaces: dict[str, tuple[str, str]] = {}
    for tool in tools:
        inner = tool.get("tools") if isinstance(tool, dict) and tool.get("type") == "namespace" else None
        if not isinstance(inner, list):
            flat.append(tool)
            continue
        for member in inner:
            name = str(member.get("name")) if isinstance(member, dict) else ""
            flat_name = _join_namespace(tool.get("name"), name)
            namespaces[flat_name] = (str(tool.get("name")), name)
            flat.append({**member, "name": flat_name} if isinstance(member, dict) else member)
    return flat, namespaces


def _join_namespace(namespace: Any, name: str) -> str:
    """Return the name that the model gets for a tool in a namespace; a longer one than servers accept is hashed."""
    flat_name = f"{namespace}__{name}" if namespace else name
    return to_hashed_name(flat_name) if namespace and len(flat_name) > MAX_NAME_CHARACTERS else flat_name


def _to_chat_tools(tools: Any) -> tuple[Any, frozenset[str]]:
    """Return the tools in the form of chat completions, and the names of those that take a text."""
    if not isinstance(tools, list):
        return tools, frozenset()
    converted: list[Any] = []
    custom: set[str] = set()
    for index, tool in enumerate(tools):
        kind = tool.get("type") if isinstance(tool, dict) else None
        if kind not in ("function", "custom"):
            raise bad_request_error(
                f"tools[{index}]",
                f"tools[{index}] has the type {kind!r}. Only tools that the client runs are supported: "
                "function, custom, and namespaces of both.",
                "unsupported_value",
            )
        parameters = tool.get("parameters")
        description = tool.get("description")
        if kind == "custom":
            custom.add(str(tool.get("name")))
            parameters = _CUSTOM_INPUT
            description = "\n\n".join(filter(None, (str(description or ""), _describe_grammar(tool.get("format")))))
        function = {"name": tool.get("name"), "description": description, "parameters": parameters}
        function["strict"] = tool.get("strict")
        converted.append({"type": "function", "function": function})
    return converted, frozenset(custom)


def _describe_grammar(value: Any) -> str:
    """Return the grammar of a tool that takes a text, for the description."""
    if not isinstance(value, dict) or value.get("type") != "grammar":
        return ""
    return f"The input must match this {value.get('syntax', '')} grammar:\n{value.get('definition', '')}"


def _to_chat_choice(value: Any) -> Any:
    """Return a tool choice with custom tools, which are functions in chat completions."""
    if isinstance(value, dict) and value.get("type") == "custom":
        return {"type": "function", "name": value.get("name")}
    if isinstance(value, dict) and isinstance(value.get("tools"), list):
        return {**value, "tools": [_to_chat_choice(tool) for tool in value["tools"]]}
    return value


def _read_items(value: Any) -> list[dict[str, Any]]:
    """Return the items of an input, each with an id."""
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list) or not value:
        raise bad_request_error("input", "input must be a text or a list with at least one item.")
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            raise bad_request_error(f"input[{index}]", f"input[{index}] must be an object with a type.")
    return [_complete_item(item) for item in value]


def _complete_item(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item with its type, an id, and the text of a message as a part, as the API lists it."""
    completed = {"type": "message", **item}
    if not completed.get("id"):
        completed["id"] = f"{_ID_PREFIXES.get(str(completed['type']), 'item')}_{uuid4().hex}"
    content = item.get("content")
    if completed["type"] == "message" and isinstance(content, str):
        is_reply = item.get("role") == "assistant"
        part = {"type": "output_text", "annotations": []} if is_reply else {"type": "input_text"}
        completed["content"] = [{**part, "text": content}]
    return completed


def _parse_items(items: Sequence[dict[str, Any]], history_length: int) -> list[Message]:
    """Return the messages of items; the paths in errors start after the history."""
    reader = _InputReader()
    for index, item in enumerate(items):
        reader.read(item, f"input[{index - history_length}]")
    return reader.messages


class _InputReader:
    """Reads items into messages; the items of one reply become one message."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._tool_names: dict[str, str] = {}

    def read(self, item: Any, path: str) -> None:
        """Add an item."""
        match item["type"]:
            case "message":
                self._read_message(item, path)
            case "function_call" | "custom_tool_call":
                self._read_call(item, path)
            case "function_call_output" | "custom_tool_call_output":
                self._read_result(item, path)
            case "reasoning":
                thinking, _ = parse_content(item.get("content") or item.get("summary") or [], path, _parse_part)
                self._extend_reply("", thinking=thinking)
            case kind if kind in _SERVER_ITEMS:
                return
            case kind:
                raise bad_request_error(
                    path,
                    f"{path} has the type {kind!r}. Supported are message, function_call, function_call_output, "
                    "custom_tool_call, custom_tool_call_output and reasoning.",
                    "unsupported_content",
                )

    def _read_message(self, item: dict[str, Any], path: str) -> None:
        role = item.get("role")
        text, parts = parse_content(item.get("content"), f"{path}.content", _parse_part)
        if role == "assistant":
            self._extend_reply(text)
        elif role == "user":
            self.messages.append(user_message(text, parts))
        elif role in ("system", "developer"):
            self.messages.append(system_message(text))
        else:
            raise bad_request_error(
                f"{path}.role", f"{path} has the role {role!r}. Roles are user, assistant, system and developer."
            )

    def _read_call(self, item: dict[str, Any], path: str) -> None:
        call_id, name = item.get("call_id"), item.get("name")
        if isinstance(name, str):
            name = _join_namespace(item.get("namespace"), name)
        if not isinstance(call_id, str) or not isinstance(name, str):
            raise bad_request_error(path, f"{path} must have a call_id and a name.")
        raw = item.get("arguments")
        if item["type"] == "custom_tool_call":
            raw = orjson.dumps({"input": str(item.get("input", ""))}).decode()
        self._tool_names[call_id] = name
        self._extend_reply("", call=ToolCall.from_json(call_id, name, normalize_arguments(raw)))

    def _read_result(self, item: dict[str, Any], path: str) -> None:
        call_id = item.get("call_id")
        if not isinstance(call_id, str) or not call_id:
            raise bad_request_error(f"{path}.call_id", f"{path} is the result of a tool and must have a call_id.")
        text, parts = parse_content(item.get("output"), f"{path}.output", _parse_part)
        self.messages.append(tool_message(call_id, self._tool_names.get(call_id, ""), text, parts))

    def _extend_reply(self, text: str, *, thinking: str = "", call: ToolCall | None = None) -> None:
        """Add to the reply of the model that is being read, or start one."""
        last = self.messages[-1] if self.messages and self.messages[-1].role == "assistant" else None
        if last is None or (last.tool_calls and not call) or (last.content and (text or thinking)):
            self.messages.append(assistant_message(text, (call,) if call else (), thinking))
            return
        self.messages[-1] = assistant_message(
            last.content or text,
            (*last.tool_calls, call) if call else last.tool_calls,
            "\n".join(filter(None, (last.thinking, thinking))),
        )


def _parse_part(part: Any, path: str) -> ContentPart:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in _TEXT_KINDS:
        text = part.get("refusal" if kind == "refusal" else "text")
        if isinstance(text, str):
            return TextPart(text)
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        return parse_image(part["image_url"], f"{path}.image_url", str(part.get("detail") or ""))
    url = part.get("file_url") if kind == "input_file" else None
    if isinstance(url, str) and url.startswith(("https://", "http://")):
        return FilePart(url, name=str(part.get("filename") or ""))
    if kind == "input_file" and isinstance(part.get("file_data"), str):
        return parse_file(part["file_data"], f"{path}.file_data", str(part.get("filename") or ""))
    raise bad_request_error(
        path,
        f"{path} has the type {kind!r}. Supported are input_text, output_text, input_image with image_url, and "
        "input_file with file_data or file_url.",
        "unsupported_content",
    )
