"""Browser sessions: one browser, with one isolated context of cookies and pages per session."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from opposable.builtin_tools.browser.chromium import launch_chromium
from opposable.domain.errors import ToolRefused, ToolUnavailable
from opposable.safety.network.ssrf_guard import SsrfGuard

if TYPE_CHECKING:
    from opposable.builtin_tools.browser.egress_proxy import EgressProxy

_MAX_TABS = 5

SessionKey = tuple[str, str]
"""The owner and the id of a run. Calls of an owner outside of a run share the session with the id ""."""


class BrowserSession:
    """Cookies and pages of one session. Actions hold `lock`."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.lock = asyncio.Lock()
        self.last_used = time.monotonic()
        self.failed_url = ""  # of the last page that could not be loaded, after redirects

    def note_failure(self, request: Any) -> None:
        """Note a request that failed, if it is for a page."""
        if request.is_navigation_request():
            self.failed_url = request.url

    async def get_page(self) -> Any:
        """Return the page that was opened last, for example by a link to a new tab."""
        return self.context.pages[-1] if self.context.pages else await self.context.new_page()

    async def close_excess_tab(self, page: Any) -> None:
        """Close a new page when the session has too many."""
        if len(self.context.pages) > _MAX_TABS:
            await page.close()


class BrowserSessions:
    """Sessions by key. The browser starts with the first session and ends after the last."""

    def __init__(self, guard: SsrfGuard, executable: str, idle_seconds: float, max_sessions: int) -> None:
        self._guard = guard
        self._executable = executable
        self._idle_seconds = idle_seconds
        self._max_sessions = max_sessions
        self._sessions_by_key: dict[SessionKey, BrowserSession] = {}
        self._lock = asyncio.Lock()
        self._proxy: EgressProxy | None = None
        self._playwright: Any = None
        self._browser: Any = None
        self._sweep_task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def use_page(self, key: SessionKey) -> AsyncIterator[Any]:
        """Provide the page of a session for one action.

        Raises:
            ToolUnavailable: The browser does not start, or too many sessions are open.
        """
        session = await self._get_session(key)
        async with session.lock:
            session.last_used = time.monotonic()
            try:
                yield await session.get_page()
            finally:
                session.last_used = time.monotonic()

    def get_refusal_reason(self, key: SessionKey) -> str:
        """Return why the last page that a session could not load was refused, "" when unknown."""
        session = self._sessions_by_key.get(key)
        if self._proxy is None or session is None:
            return ""
        return next((reason for host, reason in self._proxy.refusals.items() if host in session.failed_url), "")

    async def close(self) -> None:
        """Close every page, the browser and the proxy."""
        async with self._lock:
            await self._close_all()

    async def _close_all(self) -> None:
        sweep_task, self._sweep_task = self._sweep_task, None
        if sweep_task is not None and sweep_task is not asyncio.current_task():
            sweep_task.cancel()
        self._sessions_by_key.clear()
        browser, playwright, proxy = self._browser, self._playwright, self._proxy
        self._browser = self._playwright = self._proxy = None
        if browser is not None:
            with suppress(Exception):  # it may be closed already
                await browser.close()
        if playwright is not None:
            await playwright.stop()
        if proxy is not None:
            await proxy.stop()

    async def _get_session(self, key: SessionKey) -> BrowserSession:
        async with self._lock:
            if self._browser is not None and not self._browser.is_connected():
                await self._close_all()
            if self._browser is None:
                await self._start_browser()
            if key not in self._sessions_by_key:
                if len(self._sessions_by_key) >= self._max_sessions:
                    raise ToolUnavailable(f"{self._max_sessions} browser pages are open already; try again later.")
                self._sessions_by_key[key] = await self._open_session()
            return self._sessions_by_key[key]

    async def _start_browser(self) -> None:
        try:
            from playwright.async_api import async_playwright
        except ImportError as error:
            message = 'The browser tool needs the extra "browser": pip install "opposable[browser]".'
            raise ToolUnavailable(message) from error
        from opposable.builtin_tools.browser.egress_proxy import EgressProxy  # lazy: start-up time

        self._proxy = EgressProxy(self._guard)
        try:
            proxy = await self._proxy.start()
            self._playwright = await async_playwright().start()
            self._browser = await launch_chromium(self._playwright, self._executable, proxy)
        except BaseException:
            await self._close_all()
            raise
        self._sweep_task = asyncio.create_task(self._close_idle_sessions())

    async def _open_session(self) -> BrowserSession:
        context = await self._browser.new_context(accept_downloads=False, service_workers="block")
        await context.route("**/*", self._filter_request)
        session = BrowserSession(context)
        context.on("page", session.close_excess_tab)
        context.on("requestfailed", session.note_failure)
        return session

    async def _filter_request(self, route: Any) -> None:
        """Abort requests whose URL is not allowed. The proxy checks addresses."""
        try:
            self._guard.check_url(route.request.url)
        except ToolRefused as error:
            if self._proxy is not None:
                self._proxy.record_refusal(route.request.url[:200], str(error))
            await route.abort("blockedbyclient")
            return
        await route.continue_()

    async def _close_idle_sessions(self) -> None:
        while True:
            await asyncio.sleep(min(self._idle_seconds / 2, 10.0))
            idle_since = time.monotonic() - self._idle_seconds
            async with self._lock:
                for key, session in list(self._sessions_by_key.items()):
                    if session.last_used < idle_since and not session.lock.locked():
                        del self._sessions_by_key[key]
                        with suppress(Exception):  # it may be closed already
                            await session.context.close()
                if not self._sessions_by_key:
                    await self._close_all()
                    return
