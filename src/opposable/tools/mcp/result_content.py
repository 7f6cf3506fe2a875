"""The result of an MCP call as a value: structured where the server structures it, else text with what is not text beside."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opposable.safety.redaction import without

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock


class Content(str):
    """The text of a result's blocks; where a block is no text, its place says what it is.

    `blocks` holds all blocks as the server sent them (JSON objects of the protocol), with images and audio in base64.
    """

    __slots__ = ("blocks",)

    blocks: tuple[dict[str, Any], ...]

    def __new__(cls, text: str, blocks: Sequence[dict[str, Any]] = ()) -> "Content":
        """Text that remembers its blocks."""
        made = super().__new__(cls, text)
        made.blocks = tuple(blocks)
        return made


def value_of(result: "CallToolResult", secrets: set[str]) -> Any:
    """What a call brought: the structured value if there is one, else a plain text, else `Content`.

    What the server was given in secret is taken out, wherever it comes back.
    """
    if result.structured_content is not None:
        return _without(result.structured_content, secrets)
    text = _without(text_of(result.content), secrets)
    if all(block.type == "text" for block in result.content):
        return text
    blocks = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
    return Content(text, _without(blocks, secrets))


def text_of(blocks: Sequence["ContentBlock"]) -> str:
    """Blocks as text, each on lines of its own."""
    return "\n".join(_told(block) for block in blocks)


def _told(block: "ContentBlock") -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type} {block.mime_type}, {_size(block.data)}]"
        case "resource_link":
            about = f": {block.description}" if block.description else ""
            return f"[resource {block.name} at {block.uri}{about}]"
        case "resource":
            resource = block.resource
            text = getattr(resource, "text", None)
            if text is not None:
                return f"[resource {resource.uri}]\n{text}"
            return f"[resource {resource.uri}, {resource.mime_type or 'bytes'}, {_size(getattr(resource, 'blob', ''))}]"


def _size(base64: str) -> str:
    return f"{len(base64.rstrip('=')) * 3 // 4:,} bytes"


def _without(value: Any, secrets: set[str]) -> Any:
    """A JSON value without known secrets; nothing else in it is touched."""
    if not secrets:
        return value
    if isinstance(value, str):
        return without(value, secrets)
    if isinstance(value, list):
        return [_without(item, secrets) for item in value]
    if isinstance(value, dict):
        return {key: _without(item, secrets) for key, item in value.items()}
    return value
