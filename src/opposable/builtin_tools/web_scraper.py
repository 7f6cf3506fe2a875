"""A web page as text a model can read: its title, its main text, its links."""

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

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
    """Fetches pages through the guarded client. No script of a page is run. Raises: `ToolUnavailable` without the extra "web"."""

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
            raise InvalidArguments((FieldProblem("limit", f"must be 1 to {MAX_TEXT_CHARACTERS}", str(limit)),))
        request = HttpRequest(
            "GET", url, {"accept": "text/html, text/*;q=0.9"}, seconds=_TIMEOUT_SECONDS, max_redirects=_MAX_REDIRECTS
        )
        async with self._client.send(request) as response:
            host = response.url.host
            if response.status in (429, 502, 503, 504):
                raise ToolUnavailable(f"{host} cannot answer now (HTTP {response.status}).")
            if response.status >= 300:
                raise ToolFailed(f"{host} answered HTTP {response.status}.")
            raw, more = await read_body(response, MAX_PAGE_BYTES)
            kind, charset, final = response.content_type, response.charset, str(response.url)
        text = decode_body(raw, charset, truncated=more)
        if text is None:
            raise ToolFailed(f"{host} has no text there but {kind}, {len(raw):,} bytes.")
        is_page = kind in _HTML_CONTENT_TYPES or text.lstrip()[:200].lower().startswith(("<!doctype html", "<html"))
        page = await asyncio.to_thread(_parse_page, text, final) if is_page else _Page("", text, [])
        told: dict[str, Any] = {"url": final, "title": page.title, "text": page.text[:limit]}
        told |= {"more_characters": len(page.text) - limit} if len(page.text) > limit else {}
        return told | ({"links": page.links} if links else {})


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
    """Every visible text of a page, a line each: for pages without a main part."""
    hidden = ("script", "style", "noscript", "template", "head", "svg")
    pieces = tree.xpath("//text()[not(ancestor::" + " or ancestor::".join(hidden) + ")]")
    return "\n".join(line for piece in pieces if (line := " ".join(piece.split())))


def _extract_links(tree: Any, url: str) -> list[dict[str, str]]:
    """The links of a page, whole and once each, with their words."""
    base = next(iter(tree.xpath("//base/@href")), "")
    found: dict[str, str] = {}
    for anchor in tree.xpath("//a[@href]"):
        try:
            to = urljoin(urljoin(url, base), anchor.get("href").strip()).partition("#")[0]
        except ValueError:
            continue
        if to.startswith(("http://", "https://")) and to != url:
            words = " ".join(anchor.text_content().split())[:200]
            found[to] = found.get(to) or words
        if len(found) >= MAX_LINKS:
            break
    return [{"text": words, "url": to} for to, words in found.items()]
