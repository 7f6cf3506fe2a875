"""A server's connection, kept up: one task owns it, callers wait for it, and it comes back after every death."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from opposable.domain.backoff import get_backoff_seconds
from opposable.domain.errors import OpposableError, ToolFailed, ToolUnavailable
from opposable.domain.specs import McpServerSpec
from opposable.safety.redaction import redact_known_secrets
from opposable.tools.mcp.connection_errors import describe_connection_error
from opposable.tools.mcp.transport import ConnectionDiagnostics, McpSession, connect

if TYPE_CHECKING:
    from mcp.types import CallToolResult, Tool

FIRST_RETRY_SECONDS = 0.1
"""Seconds before the first new attempt; each further one waits twice as long."""
MAX_RETRY_SECONDS = 30.0
PROBE_TIMEOUT_SECONDS = 10.0
"""Seconds a server has to list its tools when it is asked whether it still answers."""
MAX_UNANSWERED_CALLS = 3
"""Calls in a row given up for want of an answer after which a server is asked whether it still answers."""
MAX_PAGES = 200
CLOSE_TIMEOUT_SECONDS = 10.0
"""Seconds a connection has to close by itself."""

ConnectionState = Literal["connecting", "ready", "down", "closed"]
OnToolList = Callable[[list["Tool"], dict[str, str]], Awaitable[None]]


class OnProgress(Protocol):
    """Told how far a call has come: `progress` of `total`, and a word on it."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Take one step of progress."""
        ...


class McpConnection:
    """The connection to one server.

    `on_listing` is given the server's tools whenever they are read, at every connect and when they changed, and the
    names of malformed ones with the reasons. `state`
    and `reason` say how it stands; `reason` is a sentence, without secrets, while it is down.
    """

    def __init__(self, spec: McpServerSpec, on_tool_list: OnToolList) -> None:
        self._spec = spec
        self._on_tool_list = on_tool_list
        self.state: ConnectionState = "closed"
        self.reason = ""
        self._session: McpSession | None = None
        self._diagnostics = ConnectionDiagnostics()
        self._owner_task: asyncio.Task[None] | None = None
        self._attempt_task: asyncio.Task[None] | None = None
        self._waiters: list[asyncio.Future[McpSession]] = []
        self._connect_requested = asyncio.Event()
        self._refresh_requested = asyncio.Event()
        self._close_requested = asyncio.Event()
        self._unanswered_calls = 0
        self._has_connected = False

    @property
    def secrets(self) -> set[str]:
        """The values the server was given by reference."""
        return self._diagnostics.secrets

    async def open(self) -> None:
        """Start, and wait for the first attempt to succeed or fail; a failed one is followed by others."""
        self._close_requested.clear()
        self.state = "connecting"
        first = self._create_waiter()
        self._owner_task = asyncio.create_task(self._run_attempts(), name=f"mcp:{self._spec.tool_id}")
        with contextlib.suppress(ToolUnavailable):
            await first

    async def aclose(self) -> None:
        """Hang up; a program is ended with all it started."""
        owner, self._owner_task = self._owner_task, None
        if owner is None:
            return
        self._close_requested.set()
        if self._attempt_task is not None and self.state != "ready":
            self._attempt_task.cancel()
        _, late = await asyncio.wait({owner}, timeout=CLOSE_TIMEOUT_SECONDS)
        if late:
            owner.cancel()
            await asyncio.wait({owner})
        self.state, self.reason = "closed", "the connection was closed"
        self._fail_waiters(self._waiters)

    def request_refresh(self) -> None:
        """Have the tools read anew, soon."""
        self._refresh_requested.set()

    async def call(
        self, tool: str, arguments: dict[str, Any], on_progress: OnProgress | None = None, meta: Mapping[str, Any] = {}
    ) -> "CallToolResult":
        """Call a tool; cancelling this cancels the call at the server.

        Raises: `ToolUnavailable` when the server is not there or dies in mid-call, `ToolFailed` when it refuses.
        """
        link = await self._wait_for_session()
        try:
            return await self._call_tool(link, tool, arguments, on_progress, meta)
        except _SessionLostError:  # the server knows nothing of us, so nothing was done: ask once more
            self._drop_session(link)
            return await self._call_tool(await self._wait_for_session(), tool, arguments, on_progress, meta)

    async def _call_tool(
        self,
        session: McpSession,
        tool: str,
        arguments: dict[str, Any],
        on_progress: OnProgress | None,
        meta: Mapping[str, Any],
    ) -> "CallToolResult":
        import anyio
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND

        try:
            done = await session.client.call_tool(
                tool,
                arguments,
                progress_callback=on_progress,
                meta=dict(meta) or None,  # type: ignore[arg-type]
            )
        except asyncio.CancelledError:
            self._unanswered_calls += 1
            if self._unanswered_calls >= MAX_UNANSWERED_CALLS:
                self.request_refresh()
            raise
        except MCPError as error:
            if error.code == INVALID_REQUEST and error.message == "Session terminated":
                raise _SessionLostError from error
            if error.code == CONNECTION_CLOSED or error.message == "Server returned an error response":
                self._suspend_session(session)  # the latter is the SDK's word for an HTTP error that says nothing more
                raise ToolUnavailable(self._get_connection_lost_message(tool)) from error
            self._unanswered_calls = 0
            if error.code in (INVALID_PARAMS, METHOD_NOT_FOUND):
                self.request_refresh()
            raise ToolFailed(self._redact_message(f"{self._spec.tool_id} refused {tool}: {error.message}")) from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            self._suspend_session(session)
            raise ToolUnavailable(self._get_connection_lost_message(tool)) from error
        except (RuntimeError, ValueError) as error:  # what the SDK makes of a result that breaks the protocol
            raise ToolFailed(
                self._redact_message(f"{self._spec.tool_id} gave no valid result of {tool}: {error}")
            ) from error
        self._unanswered_calls = 0
        return done

    def _get_connection_lost_message(self, tool: str) -> str:
        return f"The MCP server {self._spec.tool_id} went away while {tool} ran; whether it was done is not known."

    def _redact_message(self, message: str) -> str:
        return redact_known_secrets(message if len(message) <= 2_000 else message[:2_000] + "…", self.secrets)

    async def _wait_for_session(self) -> McpSession:
        """The link, when there is one; otherwise what comes of the next attempt, which is made at once."""
        if self._session is not None:
            return self._session
        if self._owner_task is None:
            raise ToolUnavailable(f"The connection to the MCP server {self._spec.tool_id} is closed.")
        waiter = self._create_waiter()
        self._connect_requested.set()
        try:
            return await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _create_waiter(self) -> "asyncio.Future[McpSession]":
        waiter: asyncio.Future[McpSession] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return waiter

    def _drop_session(self, session: McpSession) -> None:
        if self._session is session:
            self._session = None
        session.disconnected.set()

    def _suspend_session(self, session: McpSession) -> None:
        """Callers wait until the server has shown that it still answers."""
        if self._session is session:
            self._session = None
        self._refresh_requested.set()

    def _publish_session(self, session: McpSession) -> None:
        self._session, self.state, self.reason = session, "ready", ""
        self._has_connected = True
        waiting, self._waiters = self._waiters, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(session)

    def _fail_waiters(self, waiters: "list[asyncio.Future[McpSession]]") -> None:
        told = f"The MCP server {self._spec.tool_id} is not there now: {self.reason}."
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(ToolUnavailable(told))
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    async def _run_attempts(self) -> None:
        """Attempt after attempt, each in a task of its own: what the SDK cancels inside one ends there."""
        failed_attempts = 0
        while not self._close_requested.is_set():
            self._connect_requested.clear()
            self._has_connected = False
            self.state = "connecting"
            since = list(self._waiters)
            self._diagnostics = ConnectionDiagnostics(secrets=self._diagnostics.secrets)
            self._attempt_task = asyncio.create_task(self._run_attempt())
            try:
                await asyncio.wait({self._attempt_task})
            except asyncio.CancelledError:
                self._attempt_task.cancel()
                await asyncio.wait({self._attempt_task})
                raise
            self._session, self.state = None, "down"
            self.reason = self._describe_failure(self._attempt_task)
            self._fail_waiters([waiter for waiter in since if waiter in self._waiters])
            failed_attempts = 0 if self._has_connected else failed_attempts + 1
            await self._wait_before_retry(
                get_backoff_seconds(failed_attempts + 1, FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS)
            )

    async def _wait_before_retry(self, seconds: float) -> None:
        """Wait before the next attempt; a caller ends the waiting, but not before the shortest pause."""
        if self._close_requested.is_set():
            return
        await asyncio.sleep(FIRST_RETRY_SECONDS)
        if seconds > FIRST_RETRY_SECONDS:
            await _wait_for_first(
                self._connect_requested, self._close_requested, timeout_seconds=seconds - FIRST_RETRY_SECONDS
            )

    def _describe_failure(self, attempt: "asyncio.Task[None]") -> str:
        error = None if attempt.cancelled() else attempt.exception()
        if isinstance(error, OpposableError):
            return str(error).rstrip(".")
        return redact_known_secrets(describe_connection_error(error, self._spec, self._diagnostics), self.secrets)

    async def _run_attempt(self) -> None:
        """One connection from its beginning to its end."""
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(self._spec.connect_timeout):
                link = await stack.enter_async_context(connect(self._spec, self._on_message, self._diagnostics))
                await self._on_tool_list(*await _list_tools(link))
            self._refresh_requested.clear()
            self._unanswered_calls = 0
            self._publish_session(link)
            listening = asyncio.create_task(self._listen_for_changes(link))
            try:
                await self._refresh_until_disconnected(link)
            finally:
                self._session, self.state, self.reason = None, "down", "the connection ended"
                listening.cancel()
                await asyncio.wait({listening})

    async def _refresh_until_disconnected(self, session: McpSession) -> None:
        """Read the tools anew when there is news, until the server is gone or does not answer."""
        while True:
            await _wait_for_first(self._refresh_requested, session.disconnected, self._close_requested)
            if session.disconnected.is_set() or self._close_requested.is_set():
                return
            self._refresh_requested.clear()
            try:
                async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):
                    await self._on_tool_list(*await _list_tools(session))
            except TimeoutError:
                if self._session is None or self._unanswered_calls >= MAX_UNANSWERED_CALLS:
                    raise
                self._refresh_requested.set()  # busy, as far as one knows: other calls are being answered
                continue
            self._unanswered_calls = 0
            if not session.disconnected.is_set():
                self._publish_session(session)

    async def _on_message(self, message: Any) -> None:
        from mcp.types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self.request_refresh()

    async def _listen_for_changes(self, session: McpSession) -> None:
        """Hear of changes where the protocol tells of them on a stream of their own (2026-07-28 and later)."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        tools = session.client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        with contextlib.suppress(ListenNotSupportedError, MCPError):
            while not session.disconnected.is_set():
                with contextlib.suppress(SubscriptionLost):
                    async with session.client.listen(tools_list_changed=True) as changes:
                        self.request_refresh()  # at what changed while nobody listened
                        async for _ in changes:
                            self.request_refresh()
                await asyncio.sleep(1.0)


class _SessionLostError(Exception):
    """The server does not know the session: nothing was done."""


async def _list_tools(session: McpSession) -> "tuple[list[Tool], dict[str, str]]":
    """All tools of a server, page by page, and the malformed ones with the reasons."""
    if session.client.server_capabilities.tools is None:
        return [], {}
    tools: list[Tool] = []
    cursor: str | None = None
    session.tool_list_filter.dropped = {}
    for _ in range(MAX_PAGES):
        page = await session.client.list_tools(cursor=cursor, cache_mode="refresh")
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tools, session.tool_list_filter.dropped


async def _wait_for_first(*events: asyncio.Event, timeout_seconds: float | None = None) -> None:
    """Wait until one of the events is set, or the time is up."""
    waits = {asyncio.create_task(event.wait()) for event in events}
    try:
        await asyncio.wait(waits, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
