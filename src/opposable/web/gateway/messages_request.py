"""Parsing of requests of Anthropic's messages API."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opposable.agent.history import match_results_to_calls
from opposable.domain.content import ContentPart, FilePart, ImagePart, TextPart, decode_base64
from opposable.domain.errors import BadInput
from opposable.domain.messages import Message, assistant_message, system_message, tool_message, user_message
from opposable.domain.tools import ToolCall
from opposable.models.base import ForcedTool, ModelOptions, ToolChoice
from opposable.web.gateway.parameters import select_parameters
from opposable.web.gateway.request import CompletionRequest, parse_model_name, parse_number, parse_stop, split_parts
from opposable.web.gateway.tool_schemas import parse_tools
from opposable.web.openai_errors import MESSAGES_ERROR_TYPES, GatewayError, bad_request_error

MAX_TOOL_NAME_LENGTH = 128
"""Characters of a tool's name that Anthropic's API allows; OpenAI's allow 64."""

HINTS = frozenset(
    {"thinking", "metadata", "service_tier", "context_management", "cache_control", "inference_geo", "speed", "betas"}
)
"""Parameters that do not change what a valid reply is; other models than Anthropic's ignore and report them."""

_OWNED = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "max_tokens", "temperature", "stop_sequences", "stream"}
    | {"output_config", "output_format"}
)


def parse_messages_request(body: Mapping[str, Any], *, is_count: bool = False) -> CompletionRequest:
    """Parse the body of a request to `/v1/messages`.

    Args:
        body: The body.
        is_count: Whether the request only counts tokens, so that `max_tokens` may be missing.

    Raises:
        GatewayError: 400, with the path of the wrong parameter.
    """
    model = parse_model_name(body)
    if body.get("thread"):
        message = "thread is not supported for this model. Send the whole conversation."
        raise build_thread_error(400, message, error_code="thread_unsupported_request", unsupported=["model"])
    max_tokens = parse_number(body, "max_tokens", int, low=1)
    if max_tokens is None and not is_count:
        raise bad_request_error("max_tokens", "max_tokens is missing.")
    tools = parse_tools(_to_chat_tools(body.get("tools")), MAX_TOOL_NAME_LENGTH)
    choice, is_single = _parse_tool_choice(body.get("tool_choice"), [tool.name for tool in tools])
    config = body.get("output_config")
    ignored = [f"output_config.{name}" for name in config if name != "format"] if isinstance(config, dict) else []
    messages = [*_parse_system(body.get("system")), *_parse_messages(body.get("messages"))]
    options = ModelOptions(
        stream=body.get("stream") is True,
        tool_choice=choice,
        max_tokens=max_tokens,
        temperature=parse_number(body, "temperature", float, low=0, high=1),
        stop=parse_stop(body.get("stop_sequences"), "stop_sequences"),
        response_schema=_parse_output_schema(body),
    )
    return CompletionRequest(
        model,
        tuple(match_results_to_calls(messages)),
        tools,
        options,
        is_single,
        extra=select_parameters(body, body.keys() - _OWNED - HINTS),
        ignored=(
            *select_parameters(body, HINTS),
            *ignored,
            *_find_server_blocks(body["messages"]),
            *(["messages.tool_result.is_error"] if any(message.is_error for message in messages) else ()),
        ),
    )


def _find_server_blocks(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the kinds of blocks of tools that Anthropic ran, whose place only its API has: `messages.KIND`."""
    contents = [message["content"] for message in messages if message["role"] == "assistant"]
    blocks = [block for content in contents if not isinstance(content, str) for block in content]
    return sorted({f"messages.{block['type']}" for block in blocks if _is_server_block(block["type"])})


def _is_server_block(kind: Any) -> bool:
    return isinstance(kind, str) and (kind in ("server_tool_use", "mcp_tool_use") or kind.endswith("_tool_result"))


def build_thread_error(status: int, message: str, **details: Any) -> GatewayError:
    """Return an error with the details after which the SDK of Anthropic sends the whole conversation."""
    error = GatewayError(status, message)
    kind = MESSAGES_ERROR_TYPES.get(status, "invalid_request_error")
    error.body = {"type": "error", "error": {"type": kind, "message": message, "details": details}}
    return error


def _to_chat_tools(tools: Any) -> Any:
    """Return the tools in the form of chat completions, which share their validation.

    They lose `strict`: it may have other schemas in Anthropic's API than in OpenAI's, whose servers reject them.
    """
    if not isinstance(tools, list):
        return tools
    converted = []
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict) or tool.get("type", "custom") not in ("custom", None):
            kind = tool.get("type") if isinstance(tool, dict) else tool
            raise bad_request_error(
                f"tools[{index}]",
                f"tools[{index}] has the type {kind!r}. Only tools that the client runs are supported: "
                "an object with name, description and input_schema.",
            )
        function = {
            "name": tool.get("name"),
            "description": tool.get("description"),
            "parameters": tool.get("input_schema"),
        }
        converted.append({"type": "function", "function": function})
    return converted


def _parse_tool_choice(value: Any, names: Sequence[str]) -> tuple[ToolChoice, bool]:
    """Return the tool choice, and whether a reply may have at most one call."""
    if value is None:
        return "auto", False
    kind = value.get("type") if isinstance(value, dict) else None
    is_single = isinstance(value, dict) and value.get("disable_parallel_tool_use") is True
    if kind == "tool" and value.get("name") in names:
        return ForcedTool(value["name"]), is_single
    choices: dict[Any, ToolChoice] = {"auto": "auto", "none": "none", "any": "required"}
    if not isinstance(kind, str) or kind not in choices or (kind == "any" and not names):
        raise bad_request_error(
            "tool_choice",
            'tool_choice must be {"type": "auto"}, {"type": "any"}, {"type": "none"} or {"type": "tool", "name": …} '
            "with one of the tools.",
        )
    return choices[kind], is_single


def _parse_output_schema(body: Mapping[str, Any]) -> dict[str, Any] | None:
    config = body.get("output_config")
    output_format = config.get("format") if isinstance(config, dict) else body.get("output_format")
    if output_format is None:
        return None
    schema = output_format.get("schema") if isinstance(output_format, dict) else None
    if not isinstance(schema, dict):
        raise bad_request_error("output_config", 'output_config.format must be {"type": "json_schema", "schema": {…}}.')
    return schema


def _parse_system(value: Any) -> list[Message]:
    if not value:
        return []
    text, media = _parse_blocks(value, "system")
    if media:
        raise bad_request_error("system", "system must be text.")
    return [system_message(text)]


def _parse_messages(value: Any) -> list[Message]:
    if not isinstance(value, list) or not value:
        raise bad_request_error("messages", "messages must be a list with at least one message.")
    messages: list[Message] = []
    tool_names: dict[str, str] = {}
    for index, raw in enumerate(value):
        path = f"messages[{index}]"
        role = raw.get("role") if isinstance(raw, dict) else None
        if role == "assistant":
            message = _parse_assistant(raw.get("content"), f"{path}.content")
            tool_names |= {call.id: call.name for call in message.tool_calls}
            if message.content or message.tool_calls or message.thinking or raw["content"] == "":
                messages.append(message)  # servers reject a reply without any of them, such as one that only searched
        elif role in ("user", "system"):
            messages += _parse_user(raw.get("content"), f"{path}.content", tool_names, is_system=role == "system")
        else:
            raise bad_request_error(path, f"{path} must be an object with the role user or assistant and content.")
    return messages


def _parse_assistant(content: Any, path: str) -> Message:
    if isinstance(content, str):
        return assistant_message(content)
    texts: list[str] = []
    previous: Mapping[str, Any] = {}
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    for block, block_path in _iterate_blocks(content, path):
        match block.get("type"):
            case "text" if isinstance(block.get("text"), str):
                is_after_text = previous.get("type") == "text"
                if is_after_text and (block.get("citations") or previous.get("citations")):
                    texts[-1] += block["text"]  # a citation splits a sentence into blocks
                else:
                    texts.append(block["text"])
            case "thinking" if isinstance(block.get("thinking"), str):
                thoughts.append(block["thinking"])
            case "compaction" if isinstance(block.get("content"), str | None):
                texts.append(block.get("content") or "")
            case "redacted_thinking":
                pass
            case kind if _is_server_block(kind):
                pass
            case "tool_use" if (
                isinstance(block.get("id"), str)
                and isinstance(block.get("name"), str)
                and isinstance(block.get("input"), dict)
            ):
                calls.append(ToolCall(block["id"], block["name"], block["input"]))
            case kind:
                raise _unsupported_block_error(block_path, kind, "text, thinking and tool_use")
        previous = block
    return assistant_message("\n".join(filter(None, texts)), tuple(calls), "\n".join(thoughts))


def _parse_user(content: Any, path: str, tool_names: dict[str, str], *, is_system: bool) -> list[Message]:
    """Return the results of tools, then the user's message."""
    if isinstance(content, str):
        return [system_message(content) if is_system else user_message(content)]
    results: list[Message] = []
    others: list[ContentPart] = []
    for block, block_path in _iterate_blocks(content, path):
        if block.get("type") != "tool_result":
            others.append(_parse_block(block, block_path))
            continue
        call_id = block.get("tool_use_id")
        if not isinstance(call_id, str) or not call_id:
            raise bad_request_error(block_path, f"{block_path} is the result of a tool and must have a tool_use_id.")
        text, parts = _parse_blocks(block.get("content") or "", f"{block_path}.content")
        is_error = block.get("is_error") is True
        results.append(tool_message(call_id, tool_names.get(call_id, ""), text, parts, is_error=is_error))
    if not others:
        return results
    text, parts = split_parts(others)
    return [*results, system_message(text) if is_system else user_message(text, parts)]


def _parse_blocks(content: Any, path: str) -> tuple[str, tuple[ContentPart, ...]]:
    """Return the text of blocks, and all parts if there are images or documents."""
    if isinstance(content, str):
        return content, ()
    return split_parts([_parse_block(block, block_path) for block, block_path in _iterate_blocks(content, path)])


def _parse_block(block: dict[str, Any], path: str) -> ContentPart:
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return TextPart(block["text"])
    if kind == "tool_reference" and isinstance(block.get("tool_name"), str):
        return TextPart(block["tool_name"])  # other servers get deferred tools from the beginning
    source = block.get("source")
    if kind == "search_result" and isinstance(source, str):
        return _parse_text_document(block, block.get("content"), f"{path}.content", source)
    if kind not in ("image", "document") or not isinstance(source, dict):
        raise _unsupported_block_error(path, kind, "text, image, document, search_result and tool_result")
    if source.get("type") == "text" and isinstance(source.get("data"), str):
        return _parse_text_document(block, source["data"], path)
    if source.get("type") == "content":
        return _parse_text_document(block, source.get("content"), f"{path}.source.content")
    url = source.get("url")
    if source.get("type") == "url" and isinstance(url, str) and url.startswith(("https://", "http://")):
        return ImagePart(url) if kind == "image" else FilePart(url)
    media_type, data = source.get("media_type"), source.get("data")
    if source.get("type") != "base64" or not isinstance(media_type, str) or not isinstance(data, str):
        raise bad_request_error(f"{path}.source", f"{path}.source must have the type base64 or url, with its data.")
    try:
        raw = decode_base64(data)
    except BadInput as error:
        raise bad_request_error(f"{path}.source", f"{path}.source: {error}") from error
    if kind == "image":
        return ImagePart("", raw, media_type)
    return FilePart("", raw, media_type, str(block.get("title") or ""))


def _parse_text_document(block: Mapping[str, Any], content: Any, path: str, source: str = "") -> TextPart:
    """Return the text of a document or search result after its title, source and context."""
    text, media = _parse_blocks(content, path)
    if media:
        raise bad_request_error(path, f"{path} must be text.", "unsupported_content")
    return TextPart("\n".join(str(part) for part in (block.get("title"), source, block.get("context"), text) if part))


def _iterate_blocks(content: Any, path: str) -> Iterator[tuple[dict[str, Any], str]]:
    if not isinstance(content, list):
        raise bad_request_error(path, f"{path} must be a string or a list of blocks.")
    for index, block in enumerate(content):
        if not isinstance(block, dict):
            raise bad_request_error(f"{path}[{index}]", f"{path}[{index}] must be an object with a type.")
        yield block, f"{path}[{index}]"


def _unsupported_block_error(path: str, kind: Any, supported: str) -> Exception:
    return bad_request_error(
        path, f"{path} has the type {kind!r}, or lacks a field of it. Supported are {supported}.", "unsupported_content"
    )
