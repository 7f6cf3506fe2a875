"""The results of MCP servers."""

import pytest
from mcp.types import CallToolResult, EmbeddedResource, ImageContent, ResourceLink, TextContent, TextResourceContents

from opposable.tools.mcp.result_content import error_to_text, result_to_value
from opposable.tools.result_media import find_media
from opposable.tools.result_text import value_to_text


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


def test_a_structured_result_has_its_images():
    image = ImageContent(type="image", data="iVBORw0KGgo=", mime_type="image/png")
    text = TextContent(type="text", text='{"width": 3}')
    value = result_to_value(CallToolResult(content=[text, image], structured_content={"width": 3}), set())
    assert value_to_text(value) == '{"width":3}'
    assert [(part.media_type, len(part.data)) for part in find_media(value)] == [("image/png", 8)]


def test_a_structured_result_has_its_resources():
    content = [
        TextContent(type="text", text='{"count": 2}'),
        ResourceLink(type="resource_link", name="report", uri="file:///r.pdf", description="of 2026"),
        EmbeddedResource(type="resource", resource=TextResourceContents(uri="note://1", text="key k3y-0f-the-server")),
    ]
    value = result_to_value(CallToolResult(content=content, structured_content={"count": 2}), {"k3y-0f-the-server"})
    assert value == {"count": 2}
    assert value_to_text(value) == (
        '{"count":2}\n[resource report at file:///r.pdf: of 2026]\n[resource note://1]\nkey [redacted]'
    )


@pytest.mark.parametrize("value", [[1, {"a": "b"}], "text", 7, {"a": 1}])
def test_a_structured_value_of_any_type_is_the_value(value):
    content = [TextContent(type="text", text="shown")]
    assert result_to_value(CallToolResult(content=content, structured_content=value), set()) == value
