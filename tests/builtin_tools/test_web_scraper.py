"""Web pages of a real server are returned as text."""

from contextlib import AsyncExitStack

import pytest
from aiohttp import web
from tests.safety.network.web_server import run_web_server

from opposable.app.optional_tools import create_optional_tools
from opposable.app.spec_loader import SpecLoader, ToolPermissions
from opposable.builtin_tools.web_scraper import WebScraper
from opposable.safety.network.guarded_client import GuardedClient
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary
from opposable.tools.retries import ToolRetryOptions

pytestmark = pytest.mark.anyio

SENTENCES = "工具调用让模型能够查询数据、读取网页并执行操作，结果会返回给模型继续推理。" * 4
PAGE = f"""<!DOCTYPE html><html><head><meta charset="{{charset}}"><title>工具 调用
指南</title><style>p{{{{color:red}}}}</style>
<script>document.write("SCRIPT RAN")</script></head><body>
<nav><a href="/">首页</a> <a href="#top">顶部</a> <a href="javascript:alert(1)">x</a></nav>
<article><h1>指南</h1><p>{SENTENCES}</p><p>更多内容见<a href="more?页=2">下一页</a>，以及<a href="https://example.com/a#b">例子</a>。{SENTENCES}</p>
<table><tr><th>名称</th><th>价格</th></tr><tr><td>苹果</td><td>3.5</td></tr></table></article>
<footer><a href="/about">关于</a></footer></body></html>"""


@pytest.fixture
async def server():
    async with run_web_server() as server:
        yield server


@pytest.fixture
async def library(server):
    client = GuardedClient([server.host])
    yield ToolLibrary([FunctionTool(WebScraper(client).web_scraper)])
    await client.aclose()


def serve_page(server, body, content_type="text/html", status=200, headers=None):
    async def answer(request):
        return web.Response(body=body, status=status, headers={"content-type": content_type, **(headers or {})})

    server.answer = answer


@pytest.mark.parametrize("charset", ["utf-8", "gbk", "gb2312", "gb18030"])
@pytest.mark.parametrize("declared_in", ["header", "page", "nowhere"])
async def test_chinese_page_is_decoded_in_any_charset(server, library, charset, declared_in):
    text = PAGE.format(charset=charset if declared_in == "page" else "")
    serve_page(
        server, text.encode(charset), f"text/html; charset={charset}" if declared_in == "header" else "text/html"
    )
    result = await library.call("web_scraper", {"url": f"{server.url}/guide/index.html", "links": True})
    assert result.failure is None
    assert result.data["title"] == "工具 调用 指南"
    assert SENTENCES in result.data["text"]
    assert "苹果" in result.data["text"]
    assert "首页" not in result.data["text"]
    assert "SCRIPT" not in result.content
    assert result.data["links"] == [
        {"text": "首页", "url": f"{server.url}/"},
        {"text": "下一页", "url": f"{server.url}/guide/more?页=2"},
        {"text": "例子", "url": "https://example.com/a"},
        {"text": "关于", "url": f"{server.url}/about"},
    ]


async def test_limit_reports_the_remaining_characters(server, library):
    serve_page(server, b"abcdefghij", "text/plain")
    result = await library.call("web_scraper", {"url": server.url, "limit": 4})
    assert result.data == {"url": f"{server.url}/", "title": "", "text": "abcd", "more_characters": 6}


async def test_page_without_a_main_part_is_returned_whole(server, library):
    serve_page(server, b"<html><title>T</title><body><script>x</script><b>One</b> <i>two</i></body></html>")
    assert (await library.call("web_scraper", {"url": server.url})).data["text"].split() == ["One", "two"]


@pytest.mark.parametrize(
    ("body", "content_type", "status", "headers", "failure", "message"),
    [
        (b"\x89PNG\0\0", "image/png", 200, {}, "failed", "no text there but image/png, 6 bytes"),
        (b"no", "text/html", 404, {}, "failed", "answered HTTP 404"),
        (b"", "text/html", 503, {}, "unavailable", "HTTP 503"),
        (b"", "text/html", 302, {"location": "http://169.254.169.254/latest"}, "refused", "metadata address"),
    ],
)
async def test_response_without_a_page_is_reported(
    server, library, body, content_type, status, headers, failure, message
):
    serve_page(server, body, content_type, status, headers)
    result = await library.call("web_scraper", {"url": server.url})
    assert result.failure == failure
    assert message in result.content


@pytest.mark.parametrize(
    ("arguments", "failure"),
    [
        ({"url": "http://10.0.0.1/"}, "refused"),
        ({"url": "file:///etc/passwd"}, "refused"),
        ({"url": "https://example.com/", "limit": 0}, "invalid_arguments"),
        ({"url": "https://example.com/", "limit": 20001}, "invalid_arguments"),
    ],
)
async def test_forbidden_address_is_refused(library, server, arguments, failure):
    assert (await library.call("web_scraper", arguments)).failure == failure
    assert server.seen == []


@pytest.mark.parametrize(
    "body", [b"", b"<", b"<html>", b"<!doctype html>\xff\xfe<p>x", b"<html>" + b"<div>" * 5000 + b"deep"]
)
async def test_malformed_page_is_not_an_error(server, library, body):
    serve_page(server, body)
    assert (await library.call("web_scraper", {"url": server.url, "links": True})).failure is None


async def test_large_page_is_truncated(server, library):
    serve_page(server, b"<html><body><p>" + b"word " * 1_000_000)
    result = await library.call("web_scraper", {"url": server.url, "limit": 20})
    assert result.failure is None
    assert len(result.data["text"]) == 20


async def test_dead_links_do_not_take_the_tool_out_of_service(server):
    permissions = ToolPermissions(private_hosts=(server.host,))
    async with SpecLoader(ToolLibrary(), permissions) as loader, AsyncExitStack() as stack:
        [tool] = [one for one in create_optional_tools(loader, stack) if one.definition.name == "web_scraper"]
        library = ToolLibrary([tool], retries=ToolRetryOptions(1))
        serve_page(server, b"", status=503)
        for number in range(8):
            result = await library.call("web_scraper", {"url": f"{server.url}/{number}"})
            assert result.failure == "unavailable"
        serve_page(server, PAGE.format(charset="").encode())
        assert (await library.call("web_scraper", {"url": server.url})).failure is None
