"""A library with odd tools, served over MCP: as a program over stdio, and for the conformance suites over HTTP.

`python mcp_serving.py` serves over stdio, `python mcp_serving.py PORT` over HTTP.
"""

import asyncio
import sys
from typing import Annotated, Any

from pydantic import Field

from opposable.domain.call_context import CallContext
from opposable.domain.tools import ToolDefinition
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary
from opposable.tools.mcp.result_content import McpContent

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="
TEXT = {"type": "text", "text": "Multiple content types test:"}
IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}
RESOURCE = {"uri": "test://mixed", "mimeType": "application/json", "text": '{"test":"data","value":123}'}
EMBEDDED = {"type": "resource", "resource": {"uri": "test://embedded", "mimeType": "text/plain", "text": "Embedded."}}


def test_simple_text() -> str:
    """A text."""
    return "This is a simple text response for testing."


def test_image_content() -> McpContent:
    """An image."""
    return McpContent("[image]", [IMAGE])


def test_audio_content() -> McpContent:
    """A sound."""
    return McpContent("[audio]", [AUDIO])


def test_embedded_resource() -> McpContent:
    """A resource."""
    return McpContent("[resource]", [EMBEDDED])


def test_multiple_content_types() -> McpContent:
    """A text, an image and a resource."""
    return McpContent("[mixed]", [TEXT, IMAGE, {"type": "resource", "resource": RESOURCE}])


async def test_tool_with_progress(context: CallContext) -> str:
    """Reports its progress."""
    for part in ("a third", "two thirds", "all"):
        if context.report:
            context.report(part)
        await asyncio.sleep(0.05)
    return "done"


def test_error_handling() -> str:
    """Fails."""
    raise ValueError("This tool intentionally returns an error for testing")


def add(a: Annotated[int, Field(ge=0)], b: int = 1) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


def 问候(名字: str) -> str:  # noqa: N802, N803 - names of any script are meant
    """问候一个人。"""
    return f"你好，{名字}！"


async def sleep(seconds: float = 1000) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return "slept"


class Region:
    """A tool with a parameter that is also sent in a header."""

    tool_id = "region"
    timeout = None
    definition = ToolDefinition(
        "region",
        "Says the region.",
        {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
    )

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        return str(arguments.get("region"))


def create_library() -> ToolLibrary:
    def test_trigger_tool_change() -> str:
        """Add a tool."""
        made.register(FunctionTool(test_simple_text, tool_id=f"more_{len(made.tools)}"))
        return "changed"

    made = ToolLibrary(
        [
            Region(),
            test_trigger_tool_change,
            test_simple_text,
            test_image_content,
            test_audio_content,
            test_embedded_resource,
            test_multiple_content_types,
            test_tool_with_progress,
            test_error_handling,
            add,
            问候,
            sleep,
        ]
    )
    return made


if __name__ == "__main__":
    if len(sys.argv) > 1:
        from opposable.web.mcp.http import serve_mcp_http

        asyncio.run(serve_mcp_http(create_library(), "127.0.0.1", int(sys.argv[1])))
    else:
        from opposable.web.mcp.server import serve_mcp_stdio

        asyncio.run(serve_mcp_stdio(create_library(), instructions="用这些工具。"))
