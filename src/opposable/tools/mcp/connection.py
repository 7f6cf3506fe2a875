"""A server's connection, kept up: one task owns it, callers wait for it, and it comes back after every death."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from opposable.domain.errors import OpposableError, ToolFailed, ToolUnavailable
from opposable.domain.specs import McpServerSpec
from opposable.safety.redaction import without
from opposable.tools.mcp.connection_errors import reason_of
from opposable.tools.mcp.transport import Link, Trace, linked

if TYPE_CHECKING:
    from mcp.types import CallToolResult, Tool

FIRST_PAUSE = 0.1
"""Seconds before the first new attempt; each further one waits twice as long."""
LONGEST_PAUSE = 30.0
PROBE = 10.0
"""Seconds a server has to list its tools when it is asked whether it still answers."""
UNANSWERED = 3
"""Calls in a row given up for want of an answer after which a server is asked whether it still answers."""
MOST_PAGES = 200
CLOSING = 10.0
"""Seconds a connection has to close by itself."""

State = Literal["connecting", "ready", "down", "closed"]
OnListing = Callable[[list["Tool"], dict[str, str]], Awaitable[None]]


class OnProgress(Protocol):
    """Told how far a call has come: `progress` of `total`, and a word on it."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Take one step of progress."""
        ...


class Connection:
    """The connection to one server.

    `on_listing` is given the server's tools whenever they are read, at every connect and when they changed, and the
    names of malformed ones with the reasons. `state`
    and `reason` say how it stands; `reason` is a sentence, without secrets, while it is down.
    """

    def __init__(self, spec: McpServerSpec, on_listing: OnListing) -> None:
        self._spec = spec
        self._on_listing = on_listing
        self.state: State = "closed"
        self.reason = ""
        self._link: Link | None = None
        self._trace = Trace()
        self._owner: asyncio.Task[None] | None = None
        self._attempt: asyncio.Task[None] | None = None
        self._waiting: list[asyncio.Future[Link]] = []
        self._wanted = asyncio.Event()
        self._news = asyncio.Event()
        self._closing = asyncio.Event()
        self._unanswered = 0
        self._came_up = False

    @property
    def secrets(self) -> set[str]:
        """The values the server was given by reference."""
        return self._trace.secrets

    async def open(self) -> None:
        """Start, and wait for the first attempt to succeed or fail; a failed one is followed by others."""
        self._closing.clear()
        self.state = "connecting"
        first = self._waiter()
        self._owner = asyncio.create_task(self._own(), name=f"mcp:{self._spec.tool_id}")
        with contextlib.suppress(ToolUnavailable):
            await first

    async def aclose(self) -> None:
        """Hang up; a program is ended with all it started."""
        owner, self._owner = self._owner, None
        if owner is None:
            return
        self._closing.set()
        if self._attempt is not None and self.state != "ready":
            self._attempt.cancel()
        _, late = await asyncio.wait({owner}, timeout=CLOSING)
        if late:
            owner.cancel()
            await asyncio.wait({owner})
        self.state, self.reason = "closed", "the connection was closed"
        self._fail(self._waiting)

    def look_again(self) -> None:
        """Have the tools read anew, soon."""
        self._news.set()

    async def call(
        self, tool: str, arguments: dict[str, Any], on_progress: OnProgress | None = None, meta: Mapping[str, Any] = {}
    ) -> "CallToolResult":
        """Call a tool; cancelling this cancels the call at the server.

        Raises: `ToolUnavailable` when the server is not there or dies in mid-call, `ToolFailed` when it refuses.
        """
        link = await self._there()
        try:
            return await self._asked(link, tool, arguments, on_progress, meta)
        except _SessionLostError:  # the server knows nothing of us, so nothing was done: ask once more
            self._lose(link)
            return await self._asked(await self._there(), tool, arguments, on_progress, meta)

    async def _asked(
        self, link: Link, tool: str, arguments: dict[str, Any], on_progress: OnProgress | None, meta: Mapping[str, Any]
    ) -> "CallToolResult":
        import anyio
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND

        try:
            done = await link.client.call_tool(
                tool,
                arguments,
                progress_callback=on_progress,
                meta=dict(meta) or None,  # type: ignore[arg-type]
            )
        except asyncio.CancelledError:
            self._unanswered += 1
            if self._unanswered >= UNANSWERED:
                self.look_again()
            raise
        except MCPError as error:
            if error.code == INVALID_REQUEST and error.message == "Session terminated":
                raise _SessionLostError from error
            if error.code == CONNECTION_CLOSED or error.message == "Server returned an error response":
                self._suspect(link)  # the latter is the SDK's word for an HTTP error that says nothing more
                raise ToolUnavailable(self._lost(tool)) from error
            self._unanswered = 0
            if error.code in (INVALID_PARAMS, METHOD_NOT_FOUND):
                self.look_again()
            raise ToolFailed(self._told(f"{self._spec.tool_id} refused {tool}: {error.message}")) from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            self._suspect(link)
            raise ToolUnavailable(self._lost(tool)) from error
        except (RuntimeError, ValueError) as error:  # what the SDK makes of a result that breaks the protocol
            raise ToolFailed(self._told(f"{self._spec.tool_id} gave no valid result of {tool}: {error}")) from error
        self._unanswered = 0
        return done

    def _lost(self, tool: str) -> str:
        return f"The MCP server {self._spec.tool_id} went away while {tool} ran; whether it was done is not known."

    def _told(self, sentence: str) -> str:
        return without(sentence if len(sentence) <= 2_000 else sentence[:2_000] + "…", self.secrets)

    async def _there(self) -> Link:
        """The link, when there is one; otherwise what comes of the next attempt, which is made at once."""
        if self._link is not None:
            return self._link
        if self._owner is None:
            raise ToolUnavailable(f"The connection to the MCP server {self._spec.tool_id} is closed.")
        waiter = self._waiter()
        self._wanted.set()
        try:
            return await waiter
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    def _waiter(self) -> "asyncio.Future[Link]":
        waiter: asyncio.Future[Link] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return waiter

    def _lose(self, link: Link) -> None:
        if self._link is link:
            self._link = None
        link.gone.set()

    def _suspect(self, link: Link) -> None:
        """Callers wait until the server has shown that it still answers."""
        if self._link is link:
            self._link = None
        self._news.set()

    def _publish(self, link: Link) -> None:
        self._link, self.state, self.reason = link, "ready", ""
        self._came_up = True
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(link)

    def _fail(self, waiting: "list[asyncio.Future[Link]]") -> None:
        told = f"The MCP server {self._spec.tool_id} is not there now: {self.reason}."
        for waiter in waiting:
            if not waiter.done():
                waiter.set_exception(ToolUnavailable(told))
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    async def _own(self) -> None:
        """Attempt after attempt, each in a task of its own: what the SDK cancels inside one ends there."""
        pause = FIRST_PAUSE
        while not self._closing.is_set():
            self._wanted.clear()
            self._came_up = False
            self.state = "connecting"
            since = list(self._waiting)
            self._trace = Trace(secrets=self._trace.secrets)
            self._attempt = asyncio.create_task(self._live())
            try:
                await asyncio.wait({self._attempt})
            except asyncio.CancelledError:
                self._attempt.cancel()
                await asyncio.wait({self._attempt})
                raise
            self._link, self.state = None, "down"
            self.reason = self._why(self._attempt)
            self._fail([waiter for waiter in since if waiter in self._waiting])
            pause = FIRST_PAUSE if self._came_up else min(pause * 2, LONGEST_PAUSE)
            await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        """Wait before the next attempt; a caller ends the waiting, but not before the shortest pause."""
        if self._closing.is_set():
            return
        await asyncio.sleep(FIRST_PAUSE)
        if seconds > FIRST_PAUSE:
            await _first(self._wanted, self._closing, within=seconds - FIRST_PAUSE)

    def _why(self, attempt: "asyncio.Task[None]") -> str:
        error = None if attempt.cancelled() else attempt.exception()
        if isinstance(error, OpposableError):
            return str(error).rstrip(".")
        return without(reason_of(error, self._spec, self._trace), self.secrets)

    async def _live(self) -> None:
        """One connection from its beginning to its end."""
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(self._spec.connect_timeout):
                link = await stack.enter_async_context(linked(self._spec, self._heard, self._trace))
                await self._on_listing(*await _listing(link))
            self._news.clear()
            self._unanswered = 0
            self._publish(link)
            listening = asyncio.create_task(self._listen(link))
            try:
                await self._watch(link)
            finally:
                self._link, self.state, self.reason = None, "down", "the connection ended"
                listening.cancel()
                await asyncio.wait({listening})

    async def _watch(self, link: Link) -> None:
        """Read the tools anew when there is news, until the server is gone or does not answer."""
        while True:
            await _first(self._news, link.gone, self._closing)
            if link.gone.is_set() or self._closing.is_set():
                return
            self._news.clear()
            try:
                async with asyncio.timeout(PROBE):
                    await self._on_listing(*await _listing(link))
            except TimeoutError:
                if self._link is None or self._unanswered >= UNANSWERED:
                    raise
                self._news.set()  # busy, as far as one knows: other calls are being answered
                continue
            self._unanswered = 0
            if not link.gone.is_set():
                self._publish(link)

    async def _heard(self, message: Any) -> None:
        from mcp.types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self.look_again()

    async def _listen(self, link: Link) -> None:
        """Hear of changes where the protocol tells of them on a stream of their own (2026-07-28 and later)."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        tools = link.client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        with contextlib.suppress(ListenNotSupportedError, MCPError):
            while not link.gone.is_set():
                with contextlib.suppress(SubscriptionLost):
                    async with link.client.listen(tools_list_changed=True) as changes:
                        self.look_again()  # at what changed while nobody listened
                        async for _ in changes:
                            self.look_again()
                await asyncio.sleep(1.0)


class _SessionLostError(Exception):
    """The server does not know the session: nothing was done."""


async def _listing(link: Link) -> "tuple[list[Tool], dict[str, str]]":
    """All tools of a server, page by page, and the malformed ones with the reasons."""
    if link.client.server_capabilities.tools is None:
        return [], {}
    tools: list[Tool] = []
    cursor: str | None = None
    link.sieve.dropped = {}
    for _ in range(MOST_PAGES):
        page = await link.client.list_tools(cursor=cursor, cache_mode="refresh")
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tools, link.sieve.dropped


async def _first(*events: asyncio.Event, within: float | None = None) -> None:
    """Wait until one of the events is set, or the time is up."""
    waits = {asyncio.create_task(event.wait()) for event in events}
    try:
        await asyncio.wait(waits, timeout=within, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
