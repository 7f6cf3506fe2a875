"""One browser, and in it one page for each run, closed when nobody has used it for a while."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from opposable.builtin_tools.browser.chromium import launched
from opposable.builtin_tools.browser.egress_proxy import Gate
from opposable.domain.errors import ToolRefused, ToolUnavailable
from opposable.safety.network.ssrf_guard import Guard

_MOST_TABS = 5


class Session:
    """A run's own cookies and pages; `lock` is held by whoever acts on them."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.lock = asyncio.Lock()
        self.used = time.monotonic()

    async def page(self) -> Any:
        """The page that is acted on: the one opened last, as by a link to a new tab."""
        return self.context.pages[-1] if self.context.pages else await self.context.new_page()

    async def tab_opened(self, page: Any) -> None:
        """Close a page too many."""
        if len(self.context.pages) > _MOST_TABS:
            await page.close()


class Sessions:
    """Pages by run. The browser starts with the first and ends with the last."""

    def __init__(self, guard: Guard, executable: str, idle_seconds: float, most: int) -> None:
        self._guard = guard
        self._executable = executable
        self._idle = idle_seconds
        self._most = most
        self._by_run: dict[str, Session] = {}
        self._starting = asyncio.Lock()
        self._gate: Gate | None = None
        self._playwright: Any = None
        self._browser: Any = None
        self._sweeper: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def page(self, run_id: str) -> AsyncIterator[Any]:
        """The page of a run, for one action at a time. Raises: `ToolUnavailable`."""
        session = await self._session(run_id)
        async with session.lock:
            session.used = time.monotonic()
            yield await session.page()
            session.used = time.monotonic()

    def reason(self, url: str) -> str:
        """Why a page, or something it led to, was not reached; "" where that is not known."""
        if self._gate is None:
            return ""
        hosts = self._gate.refusals
        return next((hosts[host] for host in reversed(list(hosts)) if host in url), "") or next(
            (reason for _, reason in reversed(list(hosts.items()))), ""
        )

    def forget_reasons(self) -> None:
        """Begin anew with remembering what was not reached."""
        if self._gate is not None:
            self._gate.refusals.clear()

    async def close(self) -> None:
        """Close every page, the browser, and its way out."""
        async with self._starting:
            await self._closed()

    async def _closed(self) -> None:
        sweeper, self._sweeper = self._sweeper, None
        if sweeper is not None and sweeper is not asyncio.current_task():
            sweeper.cancel()
        self._by_run.clear()
        browser, playwright, gate = self._browser, self._playwright, self._gate
        self._browser = self._playwright = self._gate = None
        if browser is not None:
            with suppress(Exception):  # it may be gone already
                await browser.close()
        if playwright is not None:
            await playwright.stop()
        if gate is not None:
            await gate.stop()

    async def _session(self, run_id: str) -> Session:
        async with self._starting:
            if self._browser is not None and not self._browser.is_connected():
                await self._closed()
            if self._browser is None:
                await self._started()
            if run_id not in self._by_run:
                if len(self._by_run) >= self._most:
                    raise ToolUnavailable(f"{self._most} browser pages are open already; try again later.")
                self._by_run[run_id] = await self._opened()
            return self._by_run[run_id]

    async def _started(self) -> None:
        try:
            from playwright.async_api import async_playwright
        except ImportError as error:
            message = 'The browser tool needs the extra "browser": pip install "opposable[browser]".'
            raise ToolUnavailable(message) from error
        self._gate = Gate(self._guard)
        try:
            proxy = await self._gate.start()
            self._playwright = await async_playwright().start()
            self._browser = await launched(self._playwright, self._executable, proxy)
        except BaseException:
            await self._closed()
            raise
        self._sweeper = asyncio.create_task(self._sweep())

    async def _opened(self) -> Session:
        context = await self._browser.new_context(accept_downloads=False, service_workers="block")
        await context.route("**/*", self._vetted)
        session = Session(context)
        context.on("page", session.tab_opened)
        return session

    async def _vetted(self, route: Any) -> None:
        """Refuse by the URL what can be refused by it; the gate vets addresses."""
        try:
            self._guard.target(route.request.url)
        except ToolRefused as error:
            if self._gate is not None:
                self._gate.refusals[route.request.url[:200]] = str(error)
            await route.abort("blockedbyclient")
            return
        await route.continue_()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(self._idle / 2, 10.0))
            late = time.monotonic() - self._idle
            async with self._starting:
                for run_id, session in list(self._by_run.items()):
                    if session.used < late and not session.lock.locked():
                        del self._by_run[run_id]
                        with suppress(Exception):  # it may be gone already
                            await session.context.close()
                if not self._by_run:
                    await self._closed()
                    return
