"""The connection to an MCP server: one task owns it and reconnects, callers wait for its session."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from opposable.domain.backoff import get_backoff_seconds
from opposable.domain.errors import OpposableError, ToolFailed, ToolUnavailable
from opposable.domain.specs import McpServerSpec
from opposable.domain.text_normalization import shorten_text
from opposable.domain.validation_problems import describe_problems
from opposable.safety.redaction import redact_known_secrets
from opposable.tools.mcp.connection_errors import describe_connection_error, is_connection_closed
from opposable.tools.mcp.transport import ConnectionDiagnostics, McpSession, connect, kill_program

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT
    from mcp.types import CallToolResult, Tool

FIRST_RETRY_SECONDS = 0.1
"""Seconds before the first new attempt; the wait doubles with each further one."""
MAX_RETRY_SECONDS = 30.0
PROBE_TIMEOUT_SECONDS = 10.0
"""Seconds that a server has to list its tools, to show that it still answers."""
MAX_UNANSWERED_CALLS = 3
"""Calls in a row without an answer after which the server must show that it still answers."""
MAX_PAGES = 200
CLOSE_TIMEOUT_SECONDS = 10.0
"""Seconds that a connection has to close before it is cancelled."""
SUBSCRIPTION_RETRY_SECONDS = 1.0
REFRESH_PAUSE_SECONDS = 0.2
"""Seconds between two lists of tools: some servers announce a change with each list."""
MAX_LIST_WAIT_SECONDS = 1.0
"""Seconds that a result waits for the new list of tools, if the call changed it: the next request has these tools."""
MAX_MESSAGE_CHARACTERS = 2_000

ConnectionState = Literal["connecting", "ready", "down", "closed"]
OnToolList = Callable[[list["Tool"], dict[str, str]], Awaitable[None]]
"""Receives a server's tools, and the names of malformed ones with the reasons."""


class McpConnection:
    """The connection to one server.

    `on_tool_list` is called with the server's tools after every connect and every change. While `state` is "down",
    `reason` is a phrase that says why, without secrets. `instructions` is what the server says about its use.
    """

    def __init__(self, spec: McpServerSpec, on_tool_list: OnToolList) -> None:
        self._spec = spec
        self._on_tool_list = on_tool_list
        self.state: ConnectionState = "closed"
        self.reason = self.instructions = ""
        self._session: McpSession | None = None
        self._diagnostics = ConnectionDiagnostics()
        self._owner_task: asyncio.Task[None] | None = None
        self._attempt_task: asyncio.Task[None] | None = None
        self._waiters: list[asyncio.Future[McpSession]] = []
        self._connect_requested = asyncio.Event()
        self._refresh_requested = asyncio.Event()
        self._requested_count = self._listed_count = 0  # requests for a list, and those that the latest list answers
        self._listed = asyncio.Event()  # set at the end of the next list
        self._close_requested = asyncio.Event()
        self._unanswered_calls = 0
        self._has_connected = False

    @property
    def secrets(self) -> set[str]:
        """The secret values that the server was given by reference."""
        return self._diagnostics.secrets

    async def open(self) -> None:
        """Start connecting and wait for the first attempt. If it fails, others follow in the background."""
        self._close_requested.clear()
        self.state = "connecting"
        first = self._create_waiter()
        self._owner_task = asyncio.create_task(self._run_attempts(), name=f"mcp:{self._spec.tool_id}")
        try:
            with contextlib.suppress(ToolUnavailable):
                await first
        except asyncio.CancelledError:
            await self.aclose()  # the caller gets nothing that it could close
            raise

    async def aclose(self) -> None:
        """Close the connection and end the server's program with its child processes."""
        owner, self._owner_task = self._owner_task, None
        if owner is None:
            return
        self._close_requested.set()
        if self._attempt_task is not None and self.state != "ready":
            self._attempt_task.cancel()
        _, pending = await asyncio.wait({owner}, timeout=CLOSE_TIMEOUT_SECONDS)
        if pending:
            owner.cancel()
            await asyncio.wait({owner})
        self.state, self.reason = "closed", "the connection was closed"
        self._fail_waiters(self._waiters)

    def request_refresh(self) -> None:
        """Request that the tool list is read again soon."""
        self._requested_count += 1
        self._refresh_requested.set()

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        on_progress: "ProgressFnT | None" = None,
        meta: Mapping[str, Any] = {},
    ) -> "CallToolResult":
        """Call a tool. Cancelling this cancels the call at the server.

        Raises:
            ToolUnavailable: The server cannot be reached, or disconnects during the call.
            ToolFailed: The server refuses the call, or its result is not one of the protocol.
        """
        session = await self._wait_for_session()
        try:
            return await self._call_tool(session, tool, arguments, on_progress, meta)
        except _SessionLostError:  # the server did not run the call, so it can be repeated
            if self._session is session:
                self._session = None
            session.disconnected.set()
            return await self._call_tool(await self._wait_for_session(), tool, arguments, on_progress, meta)

    async def _call_tool(
        self,
        session: McpSession,
        tool: str,
        arguments: dict[str, Any],
        on_progress: "ProgressFnT | None",
        meta: Mapping[str, Any],
    ) -> "CallToolResult":
        """Call a tool on a session and translate the errors of the SDK. Return when a list that it changed is read."""
        import anyio  # lazy: the extra "mcp"
        from mcp import MCPError
        from mcp.types import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND

        requested_count = self._requested_count
        try:
            result = await session.client.call_tool(
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
            # The SDK gives this message for an HTTP error without details.
            is_http_error = error.message == "Server returned an error response"
            if is_http_error or is_connection_closed(error, self._diagnostics):
                self._suspend_session(session)
                reason = describe_connection_error(error, self._spec, self._diagnostics) if is_http_error else ""
                raise self._create_connection_lost_error(tool, reason) from error
            self._unanswered_calls = 0
            if error.code in (INVALID_PARAMS, METHOD_NOT_FOUND):
                self.request_refresh()
            if "validation error for union[JSONRPC" in error.message:  # the SDK's, with a part of the response
                reason = f"gave no valid result of {tool}: its response is not a message of the protocol"
            else:
                reason = f"refused {tool}: {error.message}"
            raise ToolFailed(self._redact_message(f"{self._spec.tool_id} {reason}")) from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            self._suspend_session(session)
            raise self._create_connection_lost_error(tool) from error
        except (RuntimeError, ValueError) as error:  # the SDK raises these for an invalid result
            problems = describe_problems(error) if isinstance(error, ValidationError) else error
            raise ToolFailed(
                self._redact_message(f"{self._spec.tool_id} gave no valid result of {tool}: {problems}")
            ) from error
        self._unanswered_calls = 0
        if self._requested_count > requested_count:
            await self._wait_for_list(self._requested_count)
        return result

    async def _wait_for_list(self, count: int) -> None:
        """Wait until a list that answers this number of requests has been read, or the time is up."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MAX_LIST_WAIT_SECONDS):
                while self._listed_count < count:
                    await self._listed.wait()

    def _create_connection_lost_error(self, tool: str, reason: str = "") -> ToolUnavailable:
        cause = f" ({redact_known_secrets(reason, self.secrets)})" if reason else ""
        message = f"The connection to the MCP server {self._spec.tool_id} was lost while {tool} ran{cause}."
        is_refused = bool(reason) and 400 <= self._diagnostics.http_status < 500
        return ToolUnavailable(message, outcome_unknown=not is_refused)

    def _redact_message(self, message: str) -> str:
        redacted = redact_known_secrets(message, self.secrets)  # first: a secret that is cut would not be found
        return shorten_text(redacted, MAX_MESSAGE_CHARACTERS)

    async def _wait_for_session(self) -> McpSession:
        """Return the session; without one, request an attempt at once and wait for it."""
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

    def _suspend_session(self, session: McpSession) -> None:
        """Make callers wait until the server has shown that it still answers."""
        if self._session is session:
            self._session = None
        self._refresh_requested.set()

    def _publish_session(self, session: McpSession) -> None:
        self._session, self.state, self.reason = session, "ready", ""
        self.instructions = session.client.instructions or ""
        self._has_connected = True
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(session)

    def _fail_waiters(self, waiters: "list[asyncio.Future[McpSession]]") -> None:
        message = f"The MCP server {self._spec.tool_id} is not connected: {self.reason}."
        self._waiters = [waiter for waiter in self._waiters if waiter not in waiters]
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(ToolUnavailable(message))

    async def _run_attempts(self) -> None:
        """Connect again and again, each time in a new task that contains the cancellations of the SDK."""
        failed_attempts = 0
        while not self._close_requested.is_set():
            self._connect_requested.clear()
            self._has_connected = False
            self.state = "connecting"
            earlier_waiters = list(self._waiters)
            self._diagnostics = ConnectionDiagnostics(secrets=self._diagnostics.secrets)
            self._attempt_task = asyncio.create_task(self._run_attempt())
            try:
                await asyncio.wait({self._attempt_task})
            except asyncio.CancelledError:
                kill_program(self._diagnostics)  # or a cancelled SDK waits for the end of its output
                self._attempt_task.cancel()
                await asyncio.wait({self._attempt_task})
                raise
            error = None if self._attempt_task.cancelled() else self._attempt_task.exception()
            self._session, self.state, self.reason = None, "down", self._describe_failure(error)
            self._fail_waiters(earlier_waiters)
            failed_attempts = 0 if self._has_connected else failed_attempts + 1
            await self._wait_before_retry(
                get_backoff_seconds(failed_attempts + 1, FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS)
            )

    async def _wait_before_retry(self, seconds: float) -> None:
        """Wait before the next attempt. A waiting caller shortens this to `FIRST_RETRY_SECONDS`."""
        if self._close_requested.is_set():
            return
        await asyncio.sleep(FIRST_RETRY_SECONDS)
        if seconds > FIRST_RETRY_SECONDS:
            await _wait_for_first(
                self._connect_requested, self._close_requested, timeout_seconds=seconds - FIRST_RETRY_SECONDS
            )

    def _describe_failure(self, error: BaseException | None) -> str:
        if isinstance(error, OpposableError):
            return str(error).rstrip(".")
        return redact_known_secrets(describe_connection_error(error, self._spec, self._diagnostics), self.secrets)

    async def _run_attempt(self) -> None:
        """Connect, publish the session, and return or raise when it has ended."""
        self._refresh_requested.clear()  # before the first list: a change that follows it must not be missed
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(self._spec.connect_timeout):
                session = await stack.enter_async_context(connect(self._spec, self._on_message, self._diagnostics))
                await self._on_tool_list(*await _list_tools(session))
            self._unanswered_calls = 0
            self._publish_session(session)
            listener = asyncio.create_task(self._listen_for_changes(session))
            try:
                await self._refresh_until_disconnected(session)
            finally:
                self._session, self.state, self.reason = None, "down", "the connection ended"
                listener.cancel()
                await asyncio.wait({listener})

    async def _refresh_until_disconnected(self, session: McpSession) -> None:
        """Read the tools again on each request, until the server disconnects or does not answer."""
        while True:
            await _wait_for_first(self._refresh_requested, session.disconnected, self._close_requested)
            if session.disconnected.is_set() or self._close_requested.is_set():
                return
            self._refresh_requested.clear()
            requested_count = self._requested_count
            try:
                async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):
                    await self._on_tool_list(*await _list_tools(session))
            except TimeoutError:
                if self._session is None or self._unanswered_calls >= MAX_UNANSWERED_CALLS:
                    raise
                self._refresh_requested.set()  # the server is busy: it still answers other calls
                continue
            self._unanswered_calls = 0
            self._listed_count, listed, self._listed = requested_count, self._listed, asyncio.Event()
            listed.set()
            if not session.disconnected.is_set():
                self._publish_session(session)
            await _wait_for_first(session.disconnected, self._close_requested, timeout_seconds=REFRESH_PAUSE_SECONDS)

    async def _on_message(self, message: Any) -> None:
        from mcp.types import ToolListChangedNotification  # lazy: the extra "mcp"

        if isinstance(message, ToolListChangedNotification):
            self.request_refresh()

    async def _listen_for_changes(self, session: McpSession) -> None:
        """Subscribe to changes of the tools, which the protocol offers since 2026-07-28."""
        from mcp import MCPError  # lazy: the extra "mcp"
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        tools = session.client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        with contextlib.suppress(ListenNotSupportedError, MCPError):
            while not session.disconnected.is_set():
                with contextlib.suppress(SubscriptionLost):
                    async with session.client.listen(tools_list_changed=True) as changes:
                        self.request_refresh()  # changes before the subscription
                        async for _ in changes:
                            self.request_refresh()
                await asyncio.sleep(SUBSCRIPTION_RETRY_SECONDS)


class _SessionLostError(Exception):
    """The server does not know the session, so it did not run the call."""


async def _list_tools(session: McpSession) -> "tuple[list[Tool], dict[str, str]]":
    """Return all tools of a server, and the names of malformed ones with the reasons."""
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
    tasks = {asyncio.create_task(event.wait()) for event in events}
    try:
        await asyncio.wait(tasks, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
