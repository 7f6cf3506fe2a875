"""One way to a server: its program started, or its address opened, and everything closed again."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from opposable.domain.errors import BadInput
from opposable.domain.specs import McpServerSpec
from opposable.tools.mcp.secret_references import resolve_references
from opposable.tools.mcp.tool_list_filter import ToolListFilter

if TYPE_CHECKING:
    from mcp import Client

INHERITED_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""Variables a program gets of ours besides PATH, HOME, USER, LOGNAME, SHELL and TERM."""
MAX_EVENT_BYTES = 64 * 1024 * 1024
"""Bytes of one message over HTTP; the library cuts what a model is told."""
MAX_STDERR_BYTES = 2_000
"""Bytes kept of what a program writes to its standard error."""


class OnMessage(Protocol):
    """Told every message of a server that answers nothing."""

    async def __call__(self, message: Any) -> None:
        """Take one message."""
        ...


@dataclass(slots=True)
class McpSession:
    """A server that is there: `client` speaks to it, `gone` is set when it stops answering for good.

    `sieve` has taken malformed tools out of the lists that `client` gives.
    """

    client: "Client"
    disconnected: asyncio.Event
    tool_list_filter: ToolListFilter


@dataclass(slots=True)
class ConnectionDiagnostics:
    """What is known of an attempt when it failed: the secrets in it, the program's last words, the HTTP status."""

    secrets: set[str] = field(default_factory=set)
    stderr: bytearray = field(default_factory=bytearray)
    process_group: int = 0
    http_status: int = 0


@contextlib.asynccontextmanager
async def connect(
    spec: McpServerSpec, on_message: OnMessage, diagnostics: ConnectionDiagnostics
) -> AsyncIterator[McpSession]:
    """Connect, agree on a protocol version, and hang up at the end.

    Raises: `BadInput` for a missing program, variable or package; whatever the SDK raises for the rest.
    """
    try:
        from mcp import Client
    except ImportError as error:
        raise BadInput('MCP servers need the extra "mcp": pip install "opposable[mcp]".') from error
    from mcp.types import Implementation

    gone, sieve = asyncio.Event(), ToolListFilter()
    way = _start_program(spec, diagnostics) if spec.command else _connect_http(spec, diagnostics)
    client = Client(
        _filter_streams(way, gone, sieve),
        message_handler=on_message,
        client_info=Implementation(name="opposable", version="1"),
    )
    async with client:
        sieve.protocol_version = client.protocol_version
        yield McpSession(client, gone, sieve)


@contextlib.asynccontextmanager
async def _connect_http(spec: McpServerSpec, diagnostics: ConnectionDiagnostics) -> AsyncIterator[Any]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    headers, diagnostics.secrets = resolve_references(spec.headers, spec.tool_id)

    async def noted(response: httpx2.Response) -> None:
        diagnostics.http_status = response.status_code

    timeout = httpx2.Timeout(spec.connect_timeout, read=max(300.0, spec.timeout or 0.0))
    hooks = {"response": [noted]}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks=hooks) as http,
        streamable_http_client(spec.url, http_client=http, max_sse_event_size=MAX_EVENT_BYTES) as streams,
    ):
        yield streams


@contextlib.asynccontextmanager
async def _start_program(spec: McpServerSpec, diagnostics: ConnectionDiagnostics) -> AsyncIterator[Any]:
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    env, diagnostics.secrets = resolve_references(spec.env, spec.tool_id)
    whole = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ} | env
    if spec.cwd is not None and not spec.cwd.is_dir():
        raise BadInput(f"{spec.tool_id}: there is no folder {spec.cwd} to start the program in.")
    if shutil.which(spec.command, path=whole.get("PATH")) is None:
        raise BadInput(
            f"{spec.tool_id}: there is no program {spec.command!r} on the PATH; install it, or give its path."
        )
    command, args = _report_process_group(spec.command, list(spec.args))
    parameters = StdioServerParameters(command=command, args=args, env=whole, cwd=spec.cwd)
    try:
        async with _capture_stderr(diagnostics) as errlog, stdio_client(parameters, errlog) as streams:
            yield streams
    finally:
        _kill_process_group(diagnostics.process_group)


def _report_process_group(command: str, args: list[str]) -> tuple[str, list[str]]:
    """The command, started so that its first line to standard error is its process group.

    The SDK keeps the number to itself and ends the group only where the program does not end by itself; what the
    program started would live on.
    """
    if os.name == "nt":
        return command, args
    return "/bin/sh", ["-c", 'echo "$$" >&2; exec "$0" "$@"', command, *args]


def _kill_process_group(process_group: int) -> None:
    if process_group:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process_group, signal.SIGKILL)


class _StderrReader(asyncio.Protocol):
    """Takes the group's number from the first line, and keeps the end of the rest."""

    def __init__(self, diagnostics: ConnectionDiagnostics) -> None:
        self._diagnostics = diagnostics
        self._has_process_group = False

    def data_received(self, data: bytes) -> None:
        """Keep the last of it."""
        kept = self._diagnostics.stderr
        kept += data
        if not self._has_process_group and b"\n" in kept:
            line, _, rest = bytes(kept).partition(b"\n")
            self._has_process_group = True
            if line.isdigit():
                self._diagnostics.process_group = int(line)
                kept[:] = rest
        del kept[:-MAX_STDERR_BYTES]


@contextlib.asynccontextmanager
async def _capture_stderr(diagnostics: ConnectionDiagnostics) -> AsyncIterator[TextIO]:
    """A file to be a program's standard error, of which the end is kept."""
    if os.name == "nt":
        with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230, PTH123 - the null device never blocks
            yield nowhere
        return
    reading, writing = os.pipe()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: _StderrReader(diagnostics), os.fdopen(reading, "rb", 0))
    try:
        with os.fdopen(writing, "w") as log:
            yield log
    finally:
        await asyncio.sleep(0)  # what is in the pipe is read before it closes
        transport.close()


@contextlib.asynccontextmanager
async def _filter_streams(
    transport: Any, disconnected: asyncio.Event, tool_list_filter: ToolListFilter
) -> AsyncIterator[Any]:
    """The way's streams, sifted; `gone` is set when nothing more can be read."""
    async with transport as (reading, writing):
        yield _FilteredStream(reading, disconnected, tool_list_filter), writing


class _FilteredStream:
    """A read stream that tells when it ends, and lets each message pass through the sieve."""

    def __init__(self, inner: Any, disconnected: asyncio.Event, tool_list_filter: ToolListFilter) -> None:
        self._inner = inner
        self._disconnected = disconnected
        self._tool_list_filter = tool_list_filter

    @property
    def last_context(self) -> Any:
        """The sender's context, where the stream keeps it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        """The next message."""
        return await self._receive_next(self._inner.receive())

    async def aclose(self) -> None:
        """Close the stream."""
        self._disconnected.set()
        await self._inner.aclose()

    def __aiter__(self) -> "_FilteredStream":
        return self

    async def __anext__(self) -> Any:
        return await self._receive_next(self._inner.__anext__())

    async def __aenter__(self) -> "_FilteredStream":
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> Any:
        self._disconnected.set()
        return await self._inner.__aexit__(*exc)

    async def _receive_next(self, pending: Awaitable[Any]) -> Any:
        try:
            item = await pending
        except BaseException:
            self._disconnected.set()
            raise
        self._tool_list_filter.drop_malformed(item)
        return item
