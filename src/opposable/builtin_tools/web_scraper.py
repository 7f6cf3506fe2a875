"""A web page as text a model can read: its title, its main text, its links."""

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolUnavailable
from opposable.safety.network.guarded_client import GuardedClient, Request
from opposable.safety.network.response_body import read_capped, text_of

MOST_BYTES = 3_000_000
MOST_TEXT = 20_000
MOST_LINKS = 200
_SECONDS = 20.0
_REDIRECTS = 5
_PAGES = frozenset({"text/html", "application/xhtml+xml"})


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
        if not 1 <= limit <= MOST_TEXT:
            raise InvalidArguments((FieldProblem("limit", f"must be 1 to {MOST_TEXT}", str(limit)),))
        request = Request("GET", url, {"accept": "text/html, text/*;q=0.9"}, seconds=_SECONDS, redirects=_REDIRECTS)
        async with self._client.send(request) as response:
            host = response.url.host
            if response.status in (429, 502, 503, 504):
                raise ToolUnavailable(f"{host} cannot answer now (HTTP {response.status}).")
            if response.status >= 300:
                raise ToolFailed(f"{host} answered HTTP {response.status}.")
            raw, more = await read_capped(response, MOST_BYTES)
            kind, charset, final = response.content_type, response.charset, str(response.url)
        text = text_of(raw, charset, cut=more)
        if text is None:
            raise ToolFailed(f"{host} has no text there but {kind}, {len(raw):,} bytes.")
        is_page = kind in _PAGES or text.lstrip()[:200].lower().startswith(("<!doctype html", "<html"))
        page = await asyncio.to_thread(_read, text, final) if is_page else _Page("", text, [])
        told: dict[str, Any] = {"url": final, "title": page.title, "text": page.text[:limit]}
        told |= {"more_characters": len(page.text) - limit} if len(page.text) > limit else {}
        return told | ({"links": page.links} if links else {})


def _read(text: str, url: str) -> _Page:
    try:
        import trafilatura
        from lxml import etree, html
    except ModuleNotFoundError as error:
        raise ToolUnavailable('Reading web pages needs the extra "web": pip install "opposable[web]".') from error
    try:
        tree = html.fromstring(
            text.encode("utf-8", "replace"), parser=html.HTMLParser(encoding="utf-8", no_network=True)
        )
    except (etree.LxmlError, ValueError):
        return _Page("", "", [])
    title = " ".join("".join(tree.xpath("//head/title[1]//text()")).split())
    links = _links(tree, url)
    readable = trafilatura.extract(tree, url=url, include_tables=True, include_comments=False, deduplicate=False)
    return _Page(title, readable or _all_text(tree), links)


def _all_text(tree: Any) -> str:
    """Every visible text of a page, a line each: for pages without a main part."""
    hidden = ("script", "style", "noscript", "template", "head", "svg")
    pieces = tree.xpath("//text()[not(ancestor::" + " or ancestor::".join(hidden) + ")]")
    return "\n".join(line for piece in pieces if (line := " ".join(piece.split())))


def _links(tree: Any, url: str) -> list[dict[str, str]]:
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
        if len(found) >= MOST_LINKS:
            break
    return [{"text": words, "url": to} for to, words in found.items()]
