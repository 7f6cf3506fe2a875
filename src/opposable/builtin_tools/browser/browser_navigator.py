"""A real browser for a model: go to a page, read it, click, type, wait, take a picture."""

import base64
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from opposable.builtin_tools.browser.page_content import elements_of, links_of, similar_to
from opposable.builtin_tools.browser.sessions import Sessions
from opposable.domain.call_context import CallContext
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolRefused, ToolUnavailable
from opposable.safety.filesystem.allowed_roots import Roots
from opposable.safety.network.ssrf_guard import Guard

_TEXT = 12_000
_EXCERPT = 1_000
_MOST_SECONDS = 30.0
_REACTING = 100
"""Milliseconds a page has after a click to begin what the click set off."""
_SETTLING = 2_000
"""Milliseconds it then has to get ready."""


class BrowserNavigator:
    """Acts on web pages in a headless Chromium; each run has a page and cookies of its own.

    Args:
        roots: folders screenshots are written to; without any they come as base64.
        allow: hosts, addresses or networks that may be reached beside the public Internet.
        executable: the Chromium to run; found when left out.
        seconds: how long a page may take to load; an element has half of it to appear.
        idle_seconds: a run's page is closed when nobody used it for so long.
        most_pages: runs that may have a page at once.

    Leaving `async with` closes the browser.
    """

    def __init__(
        self,
        roots: Sequence[Path | str] = (),
        *,
        allow: Sequence[str] = (),
        executable: str = "",
        seconds: float = 20.0,
        idle_seconds: float = 120.0,
        most_pages: int = 8,
    ) -> None:
        self._roots = Roots([Path(root) for root in roots]) if roots else None
        self._guard = Guard(tuple(allow))
        self._seconds = seconds
        self._sessions = Sessions(self._guard, executable, idle_seconds, most_pages)

    async def __aenter__(self) -> "BrowserNavigator":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._sessions.close()

    async def navigate(self, url: str, context: CallContext) -> dict[str, Any]:
        """Go to a web page; returns its title and the beginning of its text.

        Args:
            url: the page, such as https://example.com/news.
            context: the call's.
        """
        text = url.strip() if "://" in url else f"https://{url.strip()}"
        target = self._guard.target(text)
        async with self._acting(context, text) as page:
            self._sessions.forget_reasons()
            answer = await _gone_to(page, str(target.url), self._seconds * 1000)
            status = {"status": answer.status} if answer is not None and answer.status >= 400 else {}
            return await _seen(page) | status

    async def click(self, selector: str, context: CallContext) -> dict[str, Any]:
        """Click an element of the page; returns the page afterwards.

        Args:
            selector: a CSS selector such as #submit-button, or text=Sign in.
            context: the call's.
        """
        async with self._acting(context, selector) as page:
            found, note = await self._element(page, selector)
            await found.click(timeout=self._seconds * 500)
            return await _seen(await _settled(page)) | note

    async def type(self, selector: str, text: str, context: CallContext, submit: bool = False) -> dict[str, Any]:
        """Type a text into a field of the page, in place of what is in it.

        Args:
            selector: a CSS selector of the field, such as input[name="q"].
            text: the text to type.
            context: the call's.
            submit: press Enter afterwards.
        """
        async with self._acting(context, selector) as page:
            found, note = await self._element(page, selector)
            await found.fill(text, timeout=self._seconds * 500)
            if submit:
                await found.press("Enter")
                page = await _settled(page)
            return await _seen(page) | note

    async def read(
        self, context: CallContext, what: Literal["text", "links", "elements"] = "text", selector: str = ""
    ) -> dict[str, Any]:
        """Read the page: its text, its links, or the elements that can be clicked or typed into with their selectors.

        Args:
            context: the call's.
            what: what to read.
            selector: read the text of this element only.
        """
        async with self._acting(context, selector) as page:
            told: dict[str, Any] = {"url": page.url, "title": await page.title()}
            if what == "links":
                return told | {"links": await links_of(page)}
            if what == "elements":
                return told | {"elements": await elements_of(page)}
            found, note = await self._element(page, selector or "body")
            text = await found.inner_text(timeout=self._seconds * 500)
            cut = {"cut": f"The first {_TEXT:,} of {len(text):,} characters."} if len(text) > _TEXT else {}
            return told | {"text": text[:_TEXT]} | cut | note

    async def wait(
        self, context: CallContext, selector: str = "", text: str = "", seconds: float = 10.0
    ) -> dict[str, Any]:
        """Wait until an element or a text is on the page.

        Args:
            context: the call's.
            selector: a CSS selector to wait for.
            text: a text to wait for.
            seconds: how long to wait, at most 30.
        """
        if bool(selector) == bool(text):
            raise InvalidArguments((FieldProblem("selector", "give either selector or text", None),))
        async with self._acting(context, selector or text, min(max(seconds, 0.1), _MOST_SECONDS)) as page:
            found = page.locator(selector) if selector else page.get_by_text(text)
            await found.first.wait_for(timeout=min(max(seconds, 0.1), _MOST_SECONDS) * 1000)
            return await _seen(page)

    async def screenshot(self, context: CallContext, path: str = "", whole_page: bool = False) -> dict[str, Any]:
        """Take a picture of the page.

        Args:
            context: the call's.
            path: the PNG file to write; a name is made when left out.
            whole_page: the whole page and not only what is in view.
        """
        async with self._acting(context, "") as page:
            picture = await page.screenshot(full_page=whole_page, timeout=self._seconds * 1000)
            told = {"url": page.url, "bytes": len(picture)}
        if self._roots is None:
            return told | {"png_base64": base64.b64encode(picture).decode()}
        name = path or f"screenshot-{secrets.token_hex(4)}.png"
        place = self._roots.new_place(name if name.lower().endswith(".png") else f"{name}.png")
        with self._roots.created(place) as stream:
            stream.write(picture)
        return told | {"path": self._roots.shown(place)}

    @asynccontextmanager
    async def _acting(self, context: CallContext, about: str, seconds: float = 0.0) -> AsyncIterator[Any]:
        """The run's page; what goes wrong on it is told in a sentence."""
        async with self._sessions.page(context.run_id) as page:
            from playwright.async_api import Error
            from playwright.async_api import TimeoutError as Late

            try:
                yield page
            except Late as error:
                waited = seconds or self._seconds
                raise TimeoutError(f"{about or 'the page'} was not ready within {waited:g} seconds") from error
            except Error as error:
                raise self._failure(error.message, about) from error

    def _failure(self, said: str, about: str) -> Exception:
        first = (said.strip().splitlines() or [""])[0]
        if "ERR_SOCKS" in first or "ERR_BLOCKED_BY_CLIENT" in first or "ERR_PROXY" in first:
            reason = self._sessions.reason(about)
            if "looked up" in reason or not reason:
                return ToolUnavailable(reason or f"{about} cannot be reached.")
            return ToolRefused(reason)
        if "selector" in first.lower() and ("parsing" in first.lower() or "not a valid" in first.lower()):
            problem = "must be a CSS selector such as #submit, a.more, or text=Sign in"
            return InvalidArguments((FieldProblem("selector", problem, repr(about[:100])),))
        if "net::" in first:
            return ToolUnavailable(f"{about} cannot be loaded: {first.partition('net::')[2].split(' ')[0]}.")
        return ToolFailed(first.partition(": ")[2][:500] or first[:500])

    async def _element(self, page: Any, selector: str) -> tuple[Any, dict[str, Any]]:
        """The first visible element a selector finds. Raises: `ToolFailed`, naming selectors that are there."""
        from playwright.async_api import TimeoutError as Late

        if page.url == "about:blank":
            raise ToolFailed("No page is open yet; call navigate first.")
        found = page.locator(selector)
        try:
            await found.first.wait_for(state="attached", timeout=min(self._seconds * 500, 3_000))
        except Late as error:
            near = await similar_to(page, selector)
            there = f" Selectors on this page: {'; '.join(near)}." if near else " The page has no elements to act on."
            raise ToolFailed(f"Selector {selector!r} not found on {page.url}.{there}") from error
        count = await found.count()
        visible = page.locator(selector).filter(visible=True)
        chosen = visible.first if await visible.count() else found.first
        return chosen, {"note": f"{count} elements fit {selector!r}; the first was taken."} if count > 1 else {}


async def _gone_to(page: Any, url: str, milliseconds: float) -> Any:
    """Go there; a page that failed to load is closed, so that its error page disturbs nothing that comes after."""
    from playwright.async_api import Error

    try:
        return await page.goto(url, wait_until="domcontentloaded", timeout=milliseconds)
    except Error:
        await page.close()
        raise


async def _settled(page: Any) -> Any:
    """The page that is in front when what an action set off has begun: a link may have opened a new one."""
    from playwright.async_api import TimeoutError as Late

    await page.wait_for_timeout(_REACTING)
    current = page.context.pages[-1]
    with suppress(Late):  # a page that loads for long is told as far as it is there
        await current.wait_for_load_state("domcontentloaded", timeout=_SETTLING)
    return current


async def _seen(page: Any) -> dict[str, Any]:
    text = " ".join((await page.inner_text("body")).split()) if await page.locator("body").count() else ""
    return {
        "url": page.url,
        "title": await page.title(),
        "text": text[:_EXCERPT] + ("…" if len(text) > _EXCERPT else ""),
    }
