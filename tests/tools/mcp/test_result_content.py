"""The results of MCP servers."""

import pytest
from mcp.types import (
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from opposable.tools.mcp.result_content import error_to_text, result_to_value
from opposable.tools.result_media import find_media
from opposable.tools.result_text import value_to_text


@pytest.mark.parametrize(
    ("texts", "structured", "message"),
    [
        (["no order 17", "try A-17"], None, "no order 17\ntry A-17"),
        ([], {"error": "no order 17"}, '{"error":"no order 17"}'),
        (["the key k3y-0f-the-server is wrong"], {"code": 4}, 'the key [redacted] is wrong\n{"code":4}'),
        (["no order 17"], {"error": "no order 17"}, "no order 17"),
        (['{"code": 4}'], {"code": 4}, '{"code": 4}'),
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
        ResourceLink(type="resource_link", name="a", uri="a://b", title="A 你", mime_type="text/csv", size=1234),
        EmbeddedResource(type="resource", resource=TextResourceContents(uri="note://1", text="key k3y-0f-the-server")),
    ]
    value = result_to_value(CallToolResult(content=content, structured_content={"count": 2}), {"k3y-0f-the-server"})
    assert value == {"count": 2}
    assert value_to_text(value) == (
        '{"count":2}\n[resource report at file:///r.pdf: of 2026]\n[resource a at a://b, A 你, text/csv, 1,234 bytes]\n'
        "[resource note://1]\nkey [redacted]"
    )


@pytest.mark.parametrize(
    ("texts", "structured", "text"),
    [
        (['def f():\n    return "hi"\n'], {"result": 'def f():\n    return "hi"\n'}, 'def f():\n    return "hi"\n'),
        (["a", "b"], {"result": ["a", "b"]}, '{"result":["a","b"]}'),
        (["a"], {"result": ["a"]}, '{"result":["a"]}'),
        (["1", "a", "2"], {"result": [[1, "a"], [2, None]]}, '{"result":[[1,"a"],[2,null]]}'),
        (["5"], {"result": 5}, '{"result":5}'),
        (['{\n  "a": 1.0\n}'], {"a": 1}, '{"a":1}'),
        ([], {"a": 1}, '{"a":1}'),
        (["  "], {"a": 1}, '{"a":1}'),
        (["print(1)"], {"fileName": "a.py"}, '{"fileName":"a.py"}\nprint(1)'),
        (["2 of 40; ask for page 2", '{"ids": [1]}'], {"ids": [1]}, '{"ids":[1]}\n2 of 40; ask for page 2'),
        (["with k3y-0f-the-server"], {"result": "with k3y-0f-the-server"}, "with [redacted]"),
    ],
)
def test_a_structured_result_has_the_text_that_does_not_repeat_it(texts, structured, text):
    content = [TextContent(type="text", text=one) for one in texts]
    value = result_to_value(CallToolResult(content=content, structured_content=structured), {"k3y-0f-the-server"})
    assert isinstance(value, dict)
    assert value_to_text(value) == text


def test_an_image_within_a_resource_is_an_image():
    blob = BlobResourceContents(uri="file:///c.png", blob="iVBORw0KGgo=", mime_type="image/png")
    value = result_to_value(CallToolResult(content=[EmbeddedResource(type="resource", resource=blob)]), set())
    assert value == "[resource file:///c.png, image/png, 8 bytes]"
    assert [(part.media_type, len(part.data)) for part in find_media(value)] == [("image/png", 8)]


@pytest.mark.parametrize(
    "resource",
    [
        BlobResourceContents(uri="file:///c.svg", blob="PHN2Zy8+", mime_type="image/svg+xml"),
        TextResourceContents(uri="file:///c.png", text="no bytes", mime_type="image/png"),
    ],
)
def test_a_resource_that_models_reject_as_an_image_stays_text(resource):
    value = result_to_value(CallToolResult(content=[EmbeddedResource(type="resource", resource=resource)]), set())
    assert find_media(value) == ()


@pytest.mark.parametrize("value", [[1, {"a": "b"}], "text", 7])
def test_a_structured_value_of_any_type_is_the_value(value):
    content = [TextContent(type="text", text="shown")]
    assert result_to_value(CallToolResult(content=content, structured_content=value), set()) == value
