"""Tool that reads web pages as text."""

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from opposable.domain.argument_problems import must_be
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolUnavailable
from opposable.safety.network.guarded_client import GuardedClient, HttpRequest
from opposable.safety.network.response_body import decode_body, read_body

MAX_PAGE_BYTES = 3_000_000
MAX_TEXT_CHARACTERS = 20_000
MAX_LINKS = 200
_TIMEOUT_SECONDS = 20.0
_MAX_REDIRECTS = 5
_HTML_CONTENT_TYPES = frozenset({"text/html", "application/xhtml+xml"})


@dataclass(frozen=True, slots=True)
class _Page:
    title: str
    text: str
    links: list[dict[str, str]]


class WebScraper:
    """Reader of web pages. It fetches them through the guarded client and runs no scripts.

    Raises:
        ToolUnavailable: The extra "web" is not installed.
    """

    def __init__(self, client: GuardedClient) -> None:
        self._client = client

    async def web_scraper(self, url: str, links: bool = False, limit: int = 8_000) -> dict[str, Any]:
        """Read a web page: its title, its main text, and its links on request.

        Args:
            url: the page's address, beginning with https:// or http://.
            links: also list the page's links.
            limit: the most characters of text to return, 1 to 20000.

        Raises:
            InvalidArguments: the limit is out of range.
            ToolRefused: the address is not one that may be fetched.
            ToolUnavailable: the server cannot be reached or cannot answer now.
            ToolFailed: the server says no, or what it has is no text.
        """
        if not 1 <= limit <= MAX_TEXT_CHARACTERS:
            raise InvalidArguments((FieldProblem("limit", must_be(f"1 to {MAX_TEXT_CHARACTERS}"), str(limit)),))
        request = HttpRequest(
            "GET", url, {"accept": "text/html, text/*;q=0.9"}, seconds=_TIMEOUT_SECONDS, max_redirects=_MAX_REDIRECTS
        )
        async with self._client.send(request) as response:
            host = response.url.host
            if response.status in (429, 502, 503, 504):
                raise ToolUnavailable(f"{host} cannot answer now (HTTP {response.status}).")
            if response.status >= 300:
                raise ToolFailed(f"{host} answered HTTP {response.status}.")
            content_bytes, is_truncated = await read_body(response, MAX_PAGE_BYTES)
            content_type, charset, final_url = response.content_type, response.charset, str(response.url)
        text = decode_body(content_bytes, charset, truncated=is_truncated)
        if text is None:
            raise ToolFailed(f"{host} has no text there but {content_type}, {len(content_bytes):,} bytes.")
        is_page = content_type in _HTML_CONTENT_TYPES or text.lstrip()[:200].lower().startswith(
            ("<!doctype html", "<html")
        )
        page = await asyncio.to_thread(_parse_page, text, final_url) if is_page else _Page("", text, [])
        result: dict[str, Any] = {"url": final_url, "title": page.title, "text": page.text[:limit]}
        result |= {"more_characters": len(page.text) - limit} if len(page.text) > limit else {}
        return result | ({"links": page.links} if links else {})


def _parse_page(html_text: str, url: str) -> _Page:
    try:
        import trafilatura
        from lxml import etree, html
    except ModuleNotFoundError as error:
        raise ToolUnavailable('Reading web pages needs the extra "web": pip install "opposable[web]".') from error
    try:
        tree = html.fromstring(
            html_text.encode("utf-8", "replace"), parser=html.HTMLParser(encoding="utf-8", no_network=True)
        )
    except (etree.LxmlError, ValueError):
        return _Page("", "", [])
    title = " ".join("".join(tree.xpath("//head/title[1]//text()")).split())
    links = _extract_links(tree, url)
    readable = trafilatura.extract(tree, url=url, include_tables=True, include_comments=False, deduplicate=False)
    return _Page(title, readable or _extract_all_text(tree), links)


def _extract_all_text(tree: Any) -> str:
    """Return all visible text of a page, for pages without a main part."""
    hidden_tags = ("script", "style", "noscript", "template", "head", "svg")
    texts = tree.xpath("//text()[not(ancestor::" + " or ancestor::".join(hidden_tags) + ")]")
    return "\n".join(line for text in texts if (line := " ".join(text.split())))


def _extract_links(tree: Any, url: str) -> list[dict[str, str]]:
    """Return the links of a page as absolute URLs, each once, with their text."""
    base = next(iter(tree.xpath("//base/@href")), "")
    texts_by_url: dict[str, str] = {}
    for anchor in tree.xpath("//a[@href]"):
        try:
            link_url = urljoin(urljoin(url, base), anchor.get("href").strip()).partition("#")[0]
        except ValueError:
            continue
        if link_url.startswith(("http://", "https://")) and link_url != url:
            text = " ".join(anchor.text_content().split())[:200]
            texts_by_url[link_url] = texts_by_url.get(link_url) or text
        if len(texts_by_url) >= MAX_LINKS:
            break
    return [{"text": text, "url": link_url} for link_url, text in texts_by_url.items()]
