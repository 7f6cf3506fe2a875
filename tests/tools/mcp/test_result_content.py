"""The results of MCP servers."""

import pytest
from mcp.types import CallToolResult, TextContent

from opposable.tools.mcp.result_content import error_to_text


@pytest.mark.parametrize(
    ("texts", "structured", "message"),
    [
        (["no order 17", "try A-17"], None, "no order 17\ntry A-17"),
        ([], {"error": "no order 17"}, '{"error":"no order 17"}'),
        (["the key k3y-0f-the-server is wrong"], {"code": 4}, "the key [redacted] is wrong"),
        ([], None, ""),
    ],
)
def test_failed_result_keeps_its_words_without_secrets(texts, structured, message):
    content = [TextContent(type="text", text=text) for text in texts]
    result = CallToolResult(content=content, structured_content=structured, is_error=True)
    assert error_to_text(result, {"k3y-0f-the-server"}) == message
