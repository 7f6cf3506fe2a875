"""The result of an MCP call as a value: structured where the server structures it, else text with what is not text beside."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opposable.safety.redaction import redact_known_secrets

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock


class McpContent(str):
    """The text of a result's blocks; where a block is no text, its place says what it is.

    `blocks` holds all blocks as the server sent them (JSON objects of the protocol), with images and audio in base64.
    """

    __slots__ = ("blocks",)

    blocks: tuple[dict[str, Any], ...]

    def __new__(cls, text: str, blocks: Sequence[dict[str, Any]] = ()) -> "McpContent":
        """Text that remembers its blocks."""
        made = super().__new__(cls, text)
        made.blocks = tuple(blocks)
        return made


def result_to_value(result: "CallToolResult", secrets: set[str]) -> Any:
    """What a call brought: the structured value if there is one, else a plain text, else `Content`.

    What the server was given in secret is taken out, wherever it comes back.
    """
    if result.structured_content is not None:
        return _remove_secrets(result.structured_content, secrets)
    text = _remove_secrets(blocks_to_text(result.content), secrets)
    if all(block.type == "text" for block in result.content):
        return text
    blocks = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
    return McpContent(text, _remove_secrets(blocks, secrets))


def blocks_to_text(blocks: Sequence["ContentBlock"]) -> str:
    """Blocks as text, each on lines of its own."""
    return "\n".join(_block_to_text(block) for block in blocks)


def _block_to_text(block: "ContentBlock") -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type} {block.mime_type}, {_describe_size(block.data)}]"
        case "resource_link":
            about = f": {block.description}" if block.description else ""
            return f"[resource {block.name} at {block.uri}{about}]"
        case "resource":
            resource = block.resource
            text = getattr(resource, "text", None)
            if text is not None:
                return f"[resource {resource.uri}]\n{text}"
            return f"[resource {resource.uri}, {resource.mime_type or 'bytes'}, {_describe_size(getattr(resource, 'blob', ''))}]"


def _describe_size(base64: str) -> str:
    return f"{len(base64.rstrip('=')) * 3 // 4:,} bytes"


def _remove_secrets(value: Any, secrets: set[str]) -> Any:
    """A JSON value without known secrets; nothing else in it is touched."""
    if not secrets:
        return value
    if isinstance(value, str):
        return redact_known_secrets(value, secrets)
    if isinstance(value, list):
        return [_remove_secrets(item, secrets) for item in value]
    if isinstance(value, dict):
        return {key: _remove_secrets(item, secrets) for key, item in value.items()}
    return value
