"""A real browser for a model: go to a page, read it, click, type, wait, take a picture."""

import base64
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from opposable.builtin_tools.browser.page_content import find_similar_selectors, list_elements, list_links
from opposable.builtin_tools.browser.sessions import BrowserSessions
from opposable.domain.call_context import CallContext
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolRefused, ToolUnavailable
from opposable.safety.filesystem.allowed_roots import AllowedRoots
from opposable.safety.network.ssrf_guard import SsrfGuard

_MAX_TEXT_CHARACTERS = 12_000
_EXCERPT_CHARACTERS = 1_000
_MAX_WAIT_SECONDS = 30.0
_REACTION_MILLISECONDS = 100
"""Milliseconds a page has after a click to begin what the click set off."""
_LOAD_MILLISECONDS = 2_000
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
        allowed_hosts: Sequence[str] = (),
        executable: str = "",
        timeout_seconds: float = 20.0,
        idle_seconds: float = 120.0,
        max_pages: int = 8,
    ) -> None:
        self._roots = AllowedRoots([Path(root) for root in roots]) if roots else None
        self._guard = SsrfGuard(tuple(allowed_hosts))
        self._timeout_seconds = timeout_seconds
        self._sessions = BrowserSessions(self._guard, executable, idle_seconds, max_pages)

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
        target = self._guard.check_url(text)
        async with self._use_page(context, text) as page:
            self._sessions.clear_refusals()
            answer = await _load_page(page, str(target.url), self._timeout_seconds * 1000)
            status = {"status": answer.status} if answer is not None and answer.status >= 400 else {}
            return await _summarize_page(page) | status

    async def click(self, selector: str, context: CallContext) -> dict[str, Any]:
        """Click an element of the page; returns the page afterwards.

        Args:
            selector: a CSS selector such as #submit-button, or text=Sign in.
            context: the call's.
        """
        async with self._use_page(context, selector) as page:
            found, note = await self._find_element(page, selector)
            await found.click(timeout=self._timeout_seconds * 500)
            return await _summarize_page(await _wait_until_loaded(page)) | note

    async def type(self, selector: str, text: str, context: CallContext, submit: bool = False) -> dict[str, Any]:
        """Type a text into a field of the page, in place of what is in it.

        Args:
            selector: a CSS selector of the field, such as input[name="q"].
            text: the text to type.
            context: the call's.
            submit: press Enter afterwards.
        """
        async with self._use_page(context, selector) as page:
            found, note = await self._find_element(page, selector)
            await found.fill(text, timeout=self._timeout_seconds * 500)
            if submit:
                await found.press("Enter")
                page = await _wait_until_loaded(page)
            return await _summarize_page(page) | note

    async def read(
        self, context: CallContext, what: Literal["text", "links", "elements"] = "text", selector: str = ""
    ) -> dict[str, Any]:
        """Read the page: its text, its links, or the elements that can be clicked or typed into with their selectors.

        Args:
            context: the call's.
            what: what to read.
            selector: read the text of this element only.
        """
        async with self._use_page(context, selector) as page:
            told: dict[str, Any] = {"url": page.url, "title": await page.title()}
            if what == "links":
                return told | {"links": await list_links(page)}
            if what == "elements":
                return told | {"elements": await list_elements(page)}
            found, note = await self._find_element(page, selector or "body")
            text = await found.inner_text(timeout=self._timeout_seconds * 500)
            cut = (
                {"cut": f"The first {_MAX_TEXT_CHARACTERS:,} of {len(text):,} characters."}
                if len(text) > _MAX_TEXT_CHARACTERS
                else {}
            )
            return told | {"text": text[:_MAX_TEXT_CHARACTERS]} | cut | note

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
        async with self._use_page(context, selector or text, min(max(seconds, 0.1), _MAX_WAIT_SECONDS)) as page:
            found = page.locator(selector) if selector else page.get_by_text(text)
            await found.first.wait_for(timeout=min(max(seconds, 0.1), _MAX_WAIT_SECONDS) * 1000)
            return await _summarize_page(page)

    async def screenshot(self, context: CallContext, path: str = "", whole_page: bool = False) -> dict[str, Any]:
        """Take a picture of the page.

        Args:
            context: the call's.
            path: the PNG file to write; a name is made when left out.
            whole_page: the whole page and not only what is in view.
        """
        async with self._use_page(context, "") as page:
            picture = await page.screenshot(full_page=whole_page, timeout=self._timeout_seconds * 1000)
            told = {"url": page.url, "bytes": len(picture)}
        if self._roots is None:
            return told | {"png_base64": base64.b64encode(picture).decode()}
        name = path or f"screenshot-{secrets.token_hex(4)}.png"
        place = self._roots.resolve_new_path(name if name.lower().endswith(".png") else f"{name}.png")
        with self._roots.create_file(place) as stream:
            stream.write(picture)
        return told | {"path": self._roots.format_path(place)}

    @asynccontextmanager
    async def _use_page(self, context: CallContext, subject: str, timeout_seconds: float = 0.0) -> AsyncIterator[Any]:
        """The run's page; what goes wrong on it is told in a sentence."""
        async with self._sessions.use_page(context.run_id) as page:
            from playwright.async_api import Error
            from playwright.async_api import TimeoutError as Late

            try:
                yield page
            except Late as error:
                waited = timeout_seconds or self._timeout_seconds
                raise TimeoutError(f"{subject or 'the page'} was not ready within {waited:g} seconds") from error
            except Error as error:
                raise self._translate_error(error.message, subject) from error

    def _translate_error(self, message: str, subject: str) -> Exception:
        first = (message.strip().splitlines() or [""])[0]
        if "ERR_SOCKS" in first or "ERR_BLOCKED_BY_CLIENT" in first or "ERR_PROXY" in first:
            reason = self._sessions.get_refusal_reason(subject)
            if "looked up" in reason or not reason:
                return ToolUnavailable(reason or f"{subject} cannot be reached.")
            return ToolRefused(reason)
        if "selector" in first.lower() and ("parsing" in first.lower() or "not a valid" in first.lower()):
            problem = "must be a CSS selector such as #submit, a.more, or text=Sign in"
            return InvalidArguments((FieldProblem("selector", problem, repr(subject[:100])),))
        if "net::" in first:
            return ToolUnavailable(f"{subject} cannot be loaded: {first.partition('net::')[2].split(' ')[0]}.")
        return ToolFailed(first.partition(": ")[2][:500] or first[:500])

    async def _find_element(self, page: Any, selector: str) -> tuple[Any, dict[str, Any]]:
        """The first visible element a selector finds. Raises: `ToolFailed`, naming selectors that are there."""
        from playwright.async_api import TimeoutError as Late

        if page.url == "about:blank":
            raise ToolFailed("No page is open yet; call navigate first.")
        found = page.locator(selector)
        try:
            await found.first.wait_for(state="attached", timeout=min(self._timeout_seconds * 500, 3_000))
        except Late as error:
            near = await find_similar_selectors(page, selector)
            there = f" Selectors on this page: {'; '.join(near)}." if near else " The page has no elements to act on."
            raise ToolFailed(f"Selector {selector!r} not found on {page.url}.{there}") from error
        count = await found.count()
        visible = page.locator(selector).filter(visible=True)
        chosen = visible.first if await visible.count() else found.first
        return chosen, {"note": f"{count} elements fit {selector!r}; the first was taken."} if count > 1 else {}


async def _load_page(page: Any, url: str, milliseconds: float) -> Any:
    """Go there; a page that failed to load is closed, so that its error page disturbs nothing that comes after."""
    from playwright.async_api import Error

    try:
        return await page.goto(url, wait_until="domcontentloaded", timeout=milliseconds)
    except Error:
        await page.close()
        raise


async def _wait_until_loaded(page: Any) -> Any:
    """The page that is in front when what an action set off has begun: a link may have opened a new one."""
    from playwright.async_api import TimeoutError as Late

    await page.wait_for_timeout(_REACTION_MILLISECONDS)
    current = page.context.pages[-1]
    with suppress(Late):  # a page that loads for long is told as far as it is there
        await current.wait_for_load_state("domcontentloaded", timeout=_LOAD_MILLISECONDS)
    return current


async def _summarize_page(page: Any) -> dict[str, Any]:
    text = " ".join((await page.inner_text("body")).split()) if await page.locator("body").count() else ""
    return {
        "url": page.url,
        "title": await page.title(),
        "text": text[:_EXCERPT_CHARACTERS] + ("…" if len(text) > _EXCERPT_CHARACTERS else ""),
    }
