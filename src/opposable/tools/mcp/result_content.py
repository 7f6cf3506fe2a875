"""Converts the result of an MCP call to a value: structured content, text, or text with other blocks."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from opposable.domain.content import DictWithMedia, ImagePart, decode_base64
from opposable.domain.errors import BadInput
from opposable.domain.json_text import dump_json, parse_json
from opposable.safety.redaction import redact_known_secrets

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock

_RESOURCE_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types of images in resources that models get. Providers reject requests with others, such as SVG."""


class McpContent(str):
    """The text of a result's blocks, with a placeholder for each block that is not text.

    `blocks` holds all blocks as the server sent them: JSON objects of the protocol, with images and audio in base64.
    """

    __slots__ = ("blocks",)

    blocks: tuple[dict[str, Any], ...]

    def __new__(cls, text: str, blocks: Sequence[dict[str, Any]] = ()) -> "McpContent":
        """Create the text with its blocks."""
        content = super().__new__(cls, text)
        content.blocks = tuple(blocks)
        return content

    @property
    def media(self) -> tuple[ImagePart, ...]:
        """The images of the blocks, and those in resources that models take. One that is not Base64 is left out."""
        parts = []
        for block in self.blocks:
            resource = block["resource"] if block.get("type") == "resource" else {}
            if block.get("type") == "image":
                data, media_type = block.get("data"), block.get("mimeType")
            elif "blob" in resource and resource.get("mimeType") in _RESOURCE_IMAGE_TYPES:
                data, media_type = resource["blob"], resource["mimeType"]
            else:
                continue
            with suppress(BadInput):
                parts.append(ImagePart("", decode_base64(str(data)), str(media_type)))
        return tuple(parts)


def result_to_value(result: "CallToolResult", secrets: set[str]) -> Any:
    """Return the structured value of a result if it has one, else plain text, else `McpContent`.

    A structured object has its images, and as text its resources and the text blocks that do not only repeat it.
    The secrets that the server was given are redacted everywhere.
    """
    is_text = all(block.type == "text" for block in result.content)
    if result.structured_content is not None:
        value = _remove_secrets(result.structured_content, secrets)
        text = _get_model_text(result.content, result.structured_content)
        if (is_text and not text) or not isinstance(value, dict):
            return value
        value = DictWithMedia(value)
        content = _create_content("", result, secrets)
        value.media, value.blocks = content.media, content.blocks
        value.text = _remove_secrets(text, secrets)
        return value
    text = _remove_secrets(blocks_to_text(result.content), secrets)
    if is_text:
        return text
    return _create_content(text, result, secrets)


def _get_model_text(content: "Sequence[ContentBlock]", value: Any) -> str:
    """Return the text for the model of a structured result with other content, "" if its JSON is all there is.

    Servers wrap a value that is not an object as `{"result": value}`. Text wrapped so stays text, without escapes.
    """
    unwrapped = value["result"] if isinstance(value, dict) and value.keys() == {"result"} else value
    texts = [block.text for block in content if block.type == "text"]
    if len(content) == 1 and texts == [unwrapped]:
        return texts[0]
    items = _flatten(unwrapped) if isinstance(unwrapped, list) else []
    is_listed = len(texts) == len(items) and all(map(_is_same, texts, items))
    repeated = {
        text for text in texts if is_listed or not text.strip() or _is_same(text, value) or _is_same(text, unwrapped)
    }
    further = [
        block for block in content if block.type != "image" and not (block.type == "text" and block.text in repeated)
    ]
    return "\n".join((dump_json(value).decode(), blocks_to_text(further))) if further else ""


def _flatten(value: Any) -> list[Any]:
    """Return the items of nested lists without nulls: the Python SDK makes a block of text from each."""
    if isinstance(value, list):
        return [leaf for item in value for leaf in _flatten(item)]
    return [] if value is None else [value]


def _is_same(text: str, value: Any) -> bool:
    with suppress(ValueError):
        return text == value or bool(parse_json(text) == value)
    return False


def _create_content(text: str, result: "CallToolResult", secrets: set[str]) -> McpContent:
    blocks = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
    return McpContent(text, _remove_secrets(blocks, secrets))


def error_to_text(result: "CallToolResult", secrets: set[str]) -> str:
    """Return the words of a failed result: its content, and its structured value as JSON. Secrets are redacted."""
    text, value = blocks_to_text(result.content), result.structured_content
    wrapped = [*value.values()] if isinstance(value, dict) and len(value) == 1 else []  # {"error": text}
    if value is not None and not any(_is_same(text, one) for one in (value, *wrapped)):
        text = "\n".join(filter(str.strip, (text, dump_json(value, default=str).decode())))
    return str(_remove_secrets(text, secrets))


def blocks_to_text(blocks: Sequence["ContentBlock"]) -> str:
    """Return blocks as text, each on its own lines."""
    return "\n".join(_block_to_text(block) for block in blocks)


def _block_to_text(block: "ContentBlock") -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type} {block.mime_type}, {_describe_size(block.data)}]"
        case "resource_link":
            size = "" if block.size is None else f"{block.size:,} bytes"
            facts = "".join(f", {fact}" for fact in (block.title, block.mime_type, size) if fact)
            description = f": {block.description}" if block.description else ""
            return f"[resource {block.name} at {block.uri}{facts}{description}]"
        case "resource":
            resource = block.resource
            text = getattr(resource, "text", None)
            if text is not None:
                return f"[resource {resource.uri}]\n{text}"
            return f"[resource {resource.uri}, {resource.mime_type or 'bytes'}, {_describe_size(getattr(resource, 'blob', ''))}]"


def _describe_size(base64: str) -> str:
    return f"{len(base64.rstrip('=')) * 3 // 4:,} bytes"


def _remove_secrets(value: Any, secrets: set[str]) -> Any:
    """Redact known secrets in a JSON value."""
    if not secrets:
        return value
    if isinstance(value, str):
        return redact_known_secrets(value, secrets)
    if isinstance(value, list):
        return [_remove_secrets(item, secrets) for item in value]
    if isinstance(value, dict):
        return {key: _remove_secrets(item, secrets) for key, item in value.items()}
    return value
