"""Tool that drives a real browser: navigate, read, click, type, wait and take screenshots."""

import asyncio
import base64
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from opposable.builtin_tools.browser.page_content import find_similar_selectors, list_elements, list_links
from opposable.builtin_tools.browser.sessions import BrowserSessions, SessionKey
from opposable.domain.argument_problems import must_be
from opposable.domain.call_context import CallContext
from opposable.domain.content import DictWithMedia, ImagePart
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolRefused, ToolUnavailable
from opposable.safety.filesystem.allowed_roots import AllowedRoots
from opposable.safety.network.ssrf_guard import SsrfGuard

_MAX_TEXT_CHARACTERS = 12_000
_MAX_TITLE_CHARACTERS = 300
_EXCERPT_CHARACTERS = 1_000
_MAX_WAIT_SECONDS = 30.0
_REACTION_MILLISECONDS = 100
"""Milliseconds that a page has to react to a click."""
_LOAD_MILLISECONDS = 2_000
"""Milliseconds that a page then has to load."""
_POLL_SECONDS = 0.1
"""Seconds between two looks at the pages while waiting."""


class BrowserNavigator:
    """Actions on web pages in a headless Chromium.

    Each run has its own page and cookies. So has each owner, for calls outside of a run.

    Leaving `async with` closes the browser.

    Args:
        roots: Folders for screenshots. Without folders, screenshots are returned as base64.
        allowed_hosts: Hosts, addresses or networks that are allowed in addition to the public internet.
        executable: The Chromium to run. "" finds an installed one.
        timeout_seconds: How long a page may take to load. An element has half of it to appear.
        idle_seconds: A run's page is closed after this time without use.
        max_pages: How many runs may have a page at the same time.
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
        full_url = url.strip() if "://" in url else f"https://{url.strip()}"
        target = self._guard.check_url(full_url)
        async with self._use_page(context, full_url) as page:
            response = await _load_page(page, str(target.url), self._timeout_seconds * 1000)
            status = {"status": response.status} if response is not None and response.status >= 400 else {}
            return await _summarize_page(page) | status

    async def click(self, selector: str, context: CallContext) -> dict[str, Any]:
        """Click an element of the page; returns the page afterwards.

        Args:
            selector: a CSS selector such as #submit-button, or text=Sign in.
            context: the call's.
        """
        async with self._use_page(context, selector) as page:
            element, note = await self._find_element(page, selector)
            await element.click(timeout=self._timeout_seconds * 500)
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
            element, note = await self._find_element(page, selector)
            await element.fill(text, timeout=self._timeout_seconds * 500)
            if submit:
                await element.press("Enter")
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
            result: dict[str, Any] = {"url": page.url, "title": (await page.title())[:_MAX_TITLE_CHARACTERS]}
            if what == "links":
                return result | {"links": await list_links(page)}
            if what == "elements":
                return result | {"elements": await list_elements(page)}
            element, note = await self._find_element(page, selector or "body")
            text = await element.inner_text(timeout=self._timeout_seconds * 500)
            result["text"] = text[:_MAX_TEXT_CHARACTERS]
            if len(text) > _MAX_TEXT_CHARACTERS:
                result["cut"] = f"The first {_MAX_TEXT_CHARACTERS:,} of {len(text):,} characters."
            return result | note

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
        seconds = min(max(seconds, 0.1), _MAX_WAIT_SECONDS)
        async with self._use_page(context, selector or text, seconds) as page:
            return await _summarize_page(await _wait_for_element(page, selector, text, seconds))

    async def screenshot(self, context: CallContext, path: str = "", whole_page: bool = False) -> dict[str, Any]:
        """Take a picture of the page.

        Args:
            context: the call's.
            path: the PNG file to write; a name is made when left out.
            whole_page: the whole page and not only what is in view.
        """
        async with self._use_page(context, "") as page:
            image = await page.screenshot(full_page=whole_page, timeout=self._timeout_seconds * 1000)
            result = DictWithMedia({"url": page.url, "bytes": len(image)})
        result.media = (ImagePart("", image, "image/png"),)
        if self._roots is None:
            result["png_base64"] = base64.b64encode(image).decode()
            return result
        name = path or f"screenshot-{secrets.token_hex(4)}.png"
        rooted_path = self._roots.resolve_new_path(name if name.lower().endswith(".png") else f"{name}.png")
        with self._roots.create_file(rooted_path) as stream:
            stream.write(image)
        result["path"] = self._roots.format_path(rooted_path)
        return result

    @asynccontextmanager
    async def _use_page(self, context: CallContext, subject: str, timeout_seconds: float = 0.0) -> AsyncIterator[Any]:
        """Provide the run's page and translate its errors."""
        key = (context.owner, context.run_id)
        async with self._sessions.use_page(key) as page:
            from playwright.async_api import Error
            from playwright.async_api import TimeoutError as PageTimeoutError

            total_seconds = 2 * self._timeout_seconds + timeout_seconds  # several steps of an action may wait
            try:
                async with asyncio.timeout(total_seconds):
                    yield page
            except TimeoutError as error:  # a script of the page does not end: the next call would hang, too
                await page.close()
                raise TimeoutError(f"the page did not answer within {total_seconds:g} seconds") from error
            except PageTimeoutError as error:
                waited_seconds = timeout_seconds or self._timeout_seconds
                raise TimeoutError(
                    f"{subject or 'the page'} was not ready within {waited_seconds:g} seconds"
                ) from error
            except Error as error:
                raise self._translate_error(error.message, subject, key) from error

    def _translate_error(self, message: str, subject: str, key: SessionKey) -> Exception:
        first_line = (message.strip().splitlines() or [""])[0]
        if "ERR_SOCKS" in first_line or "ERR_BLOCKED_BY_CLIENT" in first_line or "ERR_PROXY" in first_line:
            reason = self._sessions.get_refusal_reason(key)
            if "looked up" in reason or not reason:
                return ToolUnavailable(reason or f"{subject} cannot be reached.")
            return ToolRefused(reason)
        lowered = first_line.lower()
        if "selector" in lowered and ("parsing" in lowered or "not a valid" in lowered):
            problem = must_be("a CSS selector such as #submit, a.more, or text=Sign in")
            return InvalidArguments((FieldProblem("selector", problem, repr(subject[:100])),))
        if "net::" in first_line:
            return ToolUnavailable(f"{subject} cannot be loaded: {first_line.partition('net::')[2].split(' ')[0]}.")
        return ToolFailed(first_line.partition(": ")[2][:500] or first_line[:500])

    async def _find_element(self, page: Any, selector: str) -> tuple[Any, dict[str, Any]]:
        """Return the first visible element of a selector, and a note if it has several elements.

        Raises:
            ToolFailed: Nothing matches. The error suggests selectors of the page.
        """
        from playwright.async_api import TimeoutError as PageTimeoutError

        if page.url == "about:blank":
            raise ToolFailed("No page is open yet; call navigate first.")
        locator = page.locator(selector)
        try:
            await locator.first.wait_for(state="attached", timeout=min(self._timeout_seconds * 500, 3_000))
        except PageTimeoutError as error:
            similar_selectors = await find_similar_selectors(page, selector)
            suggestion = "The page has no elements to act on."
            if similar_selectors:
                suggestion = f"Selectors on this page: {'; '.join(similar_selectors)}."
            raise ToolFailed(f"Selector {selector!r} not found on {page.url}. {suggestion}") from error
        count = await locator.count()
        visible_elements = page.locator(selector).filter(visible=True)
        element = visible_elements.first if await visible_elements.count() else locator.first
        return element, {"note": f"{count} elements fit {selector!r}; the first was taken."} if count > 1 else {}


async def _load_page(page: Any, url: str, milliseconds: float) -> Any:
    """Load a URL. A page that fails to load is closed, so that later actions do not see its error page."""
    from playwright.async_api import Error

    try:
        return await page.goto(url, wait_until="domcontentloaded", timeout=milliseconds)
    except Error:
        await page.close()
        raise


async def _wait_until_loaded(page: Any) -> Any:
    """Return the front page after an action. A link may have opened a new page."""
    from playwright.async_api import TimeoutError as PageTimeoutError

    await page.wait_for_timeout(_REACTION_MILLISECONDS)
    current = (page.context.pages or [page])[-1]
    with suppress(PageTimeoutError):  # a slow page is returned as far as it has loaded
        await current.wait_for_load_state("domcontentloaded", timeout=_LOAD_MILLISECONDS)
    return current


async def _wait_for_element(page: Any, selector: str, text: str, seconds: float) -> Any:
    """Return the page that shows an element or a text: the front page, or a tab that opens meanwhile."""
    from playwright.async_api import Error
    from playwright.async_api import TimeoutError as PageTimeoutError

    background = page.context.pages[:-1]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for tab in reversed([tab for tab in page.context.pages if tab not in background] or page.context.pages):
            locator = tab.locator(selector) if selector else tab.get_by_text(text)
            try:
                if await locator.first.is_visible():
                    return tab
            except Error:
                if not tab.is_closed():
                    raise
        await asyncio.sleep(_POLL_SECONDS)
    raise PageTimeoutError("")


async def _summarize_page(page: Any) -> dict[str, Any]:
    text = " ".join((await page.inner_text("body")).split()) if await page.locator("body").count() else ""
    return {
        "url": page.url,
        "title": (await page.title())[:_MAX_TITLE_CHARACTERS],
        "text": text[:_EXCERPT_CHARACTERS] + ("…" if len(text) > _EXCERPT_CHARACTERS else ""),
    }
