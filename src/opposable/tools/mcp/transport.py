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
from opposable.tools.mcp.secret_references import resolved
from opposable.tools.mcp.tool_list_filter import Sieve

if TYPE_CHECKING:
    from mcp import Client

INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""Variables a program gets of ours besides PATH, HOME, USER, LOGNAME, SHELL and TERM."""
LARGEST_EVENT = 64 * 1024 * 1024
"""Bytes of one message over HTTP; the library cuts what a model is told."""
LAST_WORDS = 2_000
"""Bytes kept of what a program writes to its standard error."""


class OnMessage(Protocol):
    """Told every message of a server that answers nothing."""

    async def __call__(self, message: Any) -> None:
        """Take one message."""
        ...


@dataclass(slots=True)
class Link:
    """A server that is there: `client` speaks to it, `gone` is set when it stops answering for good.

    `sieve` has taken malformed tools out of the lists that `client` gives.
    """

    client: "Client"
    gone: asyncio.Event
    sieve: Sieve


@dataclass(slots=True)
class Trace:
    """What is known of an attempt when it failed: the secrets in it, the program's last words, the HTTP status."""

    secrets: set[str] = field(default_factory=set)
    stderr: bytearray = field(default_factory=bytearray)
    group: int = 0
    status: int = 0


@contextlib.asynccontextmanager
async def linked(spec: McpServerSpec, on_message: OnMessage, trace: Trace) -> AsyncIterator[Link]:
    """Connect, agree on a protocol version, and hang up at the end.

    Raises: `BadInput` for a missing program, variable or package; whatever the SDK raises for the rest.
    """
    try:
        from mcp import Client
    except ImportError as error:
        raise BadInput('MCP servers need the extra "mcp": pip install "opposable[mcp]".') from error
    from mcp.types import Implementation

    gone, sieve = asyncio.Event(), Sieve()
    way = _program(spec, trace) if spec.command else _address(spec, trace)
    client = Client(
        _watched(way, gone, sieve),
        message_handler=on_message,
        client_info=Implementation(name="opposable", version="1"),
    )
    async with client:
        sieve.version = client.protocol_version
        yield Link(client, gone, sieve)


@contextlib.asynccontextmanager
async def _address(spec: McpServerSpec, trace: Trace) -> AsyncIterator[Any]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    headers, trace.secrets = resolved(spec.headers, spec.tool_id)

    async def noted(response: httpx2.Response) -> None:
        trace.status = response.status_code

    timeout = httpx2.Timeout(spec.connect_timeout, read=max(300.0, spec.timeout or 0.0))
    hooks = {"response": [noted]}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks=hooks) as http,
        streamable_http_client(spec.url, http_client=http, max_sse_event_size=LARGEST_EVENT) as streams,
    ):
        yield streams


@contextlib.asynccontextmanager
async def _program(spec: McpServerSpec, trace: Trace) -> AsyncIterator[Any]:
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    env, trace.secrets = resolved(spec.env, spec.tool_id)
    whole = {name: os.environ[name] for name in INHERITED if name in os.environ} | env
    if spec.cwd is not None and not spec.cwd.is_dir():
        raise BadInput(f"{spec.tool_id}: there is no folder {spec.cwd} to start the program in.")
    if shutil.which(spec.command, path=whole.get("PATH")) is None:
        raise BadInput(
            f"{spec.tool_id}: there is no program {spec.command!r} on the PATH; install it, or give its path."
        )
    command, args = _named_group(spec.command, list(spec.args))
    parameters = StdioServerParameters(command=command, args=args, env=whole, cwd=spec.cwd)
    try:
        async with _last_words(trace) as errlog, stdio_client(parameters, errlog) as streams:
            yield streams
    finally:
        _end_group(trace.group)


def _named_group(command: str, args: list[str]) -> tuple[str, list[str]]:
    """The command, started so that its first line to standard error is its process group.

    The SDK keeps the number to itself and ends the group only where the program does not end by itself; what the
    program started would live on.
    """
    if os.name == "nt":
        return command, args
    return "/bin/sh", ["-c", 'echo "$$" >&2; exec "$0" "$@"', command, *args]


def _end_group(group: int) -> None:
    if group:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


class _Listener(asyncio.Protocol):
    """Takes the group's number from the first line, and keeps the end of the rest."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._named = False

    def data_received(self, data: bytes) -> None:
        """Keep the last of it."""
        kept = self._trace.stderr
        kept += data
        if not self._named and b"\n" in kept:
            line, _, rest = bytes(kept).partition(b"\n")
            self._named = True
            if line.isdigit():
                self._trace.group = int(line)
                kept[:] = rest
        del kept[:-LAST_WORDS]


@contextlib.asynccontextmanager
async def _last_words(trace: Trace) -> AsyncIterator[TextIO]:
    """A file to be a program's standard error, of which the end is kept."""
    if os.name == "nt":
        with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230, PTH123 - the null device never blocks
            yield nowhere
        return
    reading, writing = os.pipe()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: _Listener(trace), os.fdopen(reading, "rb", 0))
    try:
        with os.fdopen(writing, "w") as log:
            yield log
    finally:
        await asyncio.sleep(0)  # what is in the pipe is read before it closes
        transport.close()


@contextlib.asynccontextmanager
async def _watched(way: Any, gone: asyncio.Event, sieve: Sieve) -> AsyncIterator[Any]:
    """The way's streams, sifted; `gone` is set when nothing more can be read."""
    async with way as (reading, writing):
        yield _Watched(reading, gone, sieve), writing


class _Watched:
    """A read stream that tells when it ends, and lets each message pass through the sieve."""

    def __init__(self, inner: Any, gone: asyncio.Event, sieve: Sieve) -> None:
        self._inner = inner
        self._gone = gone
        self._sieve = sieve

    @property
    def last_context(self) -> Any:
        """The sender's context, where the stream keeps it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        """The next message."""
        return await self._next(self._inner.receive())

    async def aclose(self) -> None:
        """Close the stream."""
        self._gone.set()
        await self._inner.aclose()

    def __aiter__(self) -> "_Watched":
        return self

    async def __anext__(self) -> Any:
        return await self._next(self._inner.__anext__())

    async def __aenter__(self) -> "_Watched":
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> Any:
        self._gone.set()
        return await self._inner.__aexit__(*exc)

    async def _next(self, coming: Awaitable[Any]) -> Any:
        try:
            item = await coming
        except BaseException:
            self._gone.set()
            raise
        self._sieve.sift(item)
        return item
