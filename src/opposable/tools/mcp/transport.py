"""The transports to an MCP server: its program over stdio, or its address over HTTP."""

import asyncio
import contextlib
import logging
import os
import shutil
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TextIO

from pydantic import ValidationError

from opposable.domain.errors import BadInput
from opposable.domain.json_text import dump_json, to_portable_json
from opposable.domain.specs import McpServerSpec
from opposable.tools.mcp.secret_references import resolve_references
from opposable.tools.mcp.tool_list_filter import ToolListFilter

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.session import MessageHandlerFnT
    from mcp.types import ContentBlock
    from pydantic import TypeAdapter

INHERITED_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""Environment variables that a program inherits, besides PATH, HOME, USER, LOGNAME, SHELL and TERM."""
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""The largest message over HTTP, decompressed. The library truncates what the model gets."""
MAX_MESSAGE_DEPTH = 190
"""Levels of nesting of a message that are read; the SDK refuses messages with more than 200."""
_SDK_LOGGERS = ("client", "mcp.client.stdio", "mcp.client.streamable_http")
"""The loggers of the SDK's session and transports."""
MIN_READ_TIMEOUT_SECONDS = 300.0
MAX_STDERR_BYTES = 2_000
"""The part of a program's standard error that is stored: its end."""


@dataclass(slots=True)
class McpSession:
    """A session with a server.

    `client` sends requests. `disconnected` is set when the server can no longer be read. `tool_list_filter` removes
    malformed tools from the lists that `client` returns.
    """

    client: "Client"
    disconnected: asyncio.Event
    tool_list_filter: ToolListFilter


@dataclass(slots=True)
class ConnectionDiagnostics:
    """What is known about a failed attempt: its secrets, the end of the program's output, the HTTP status."""

    secrets: set[str] = field(default_factory=set)
    stderr: bytearray = field(default_factory=bytearray)
    process_group: int = 0
    http_status: int = 0


@contextlib.asynccontextmanager
async def connect(
    spec: McpServerSpec, on_message: "MessageHandlerFnT", diagnostics: ConnectionDiagnostics
) -> AsyncIterator[McpSession]:
    """Connect, negotiate the protocol version, and disconnect at the end.

    Raises:
        BadInput: The program, an environment variable or the extra "mcp" is missing.
        Exception: Any error of the SDK.
    """
    try:
        from mcp import Client  # lazy: the extra "mcp"
    except ImportError as error:
        raise BadInput('MCP servers need the extra "mcp": pip install "opposable[mcp]".') from error
    from mcp.types import Implementation

    disconnected, tool_list_filter = asyncio.Event(), ToolListFilter()

    @contextlib.asynccontextmanager
    async def open_streams() -> AsyncIterator[Any]:
        transport = _start_program(spec, diagnostics) if spec.command else _connect_http(spec, diagnostics)
        async with transport as (read_stream, write_stream):
            yield _FilteredStream(read_stream, disconnected, tool_list_filter), write_stream

    for logger_name in _SDK_LOGGERS:
        logging.getLogger(logger_name).addFilter(_remove_content)
    client_info = Implementation(name="opposable", version="1")
    async with Client(open_streams(), message_handler=on_message, client_info=client_info) as client:
        tool_list_filter.protocol_version = client.protocol_version
        client.session.validate_tool_result = _accept_result  # type: ignore[method-assign]
        yield McpSession(client, disconnected, tool_list_filter)


async def _accept_result(name: str, result: Any) -> None:
    """Accept a result that does not fit the tool's output schema: the call ran, and the SDK would discard it."""


@contextlib.asynccontextmanager
async def _connect_http(spec: McpServerSpec, diagnostics: ConnectionDiagnostics) -> AsyncIterator[Any]:
    import httpx2  # lazy: the extra "mcp"
    from mcp.client.streamable_http import streamable_http_client

    headers, diagnostics.secrets = resolve_references(spec.headers, spec.tool_id)

    async def watch_response(response: httpx2.Response) -> None:
        diagnostics.http_status = response.status_code
        media_type = response.headers.get("content-type", "").lower()
        if media_type.startswith(("application/json", "text/event-stream")):
            read_messages = partial(_read_messages, response.aiter_bytes, media_type.startswith("text"))
            response.aiter_bytes = read_messages  # type: ignore[method-assign]

    timeout = httpx2.Timeout(spec.connect_timeout, read=max(MIN_READ_TIMEOUT_SECONDS, spec.timeout or 0.0))
    hooks = {"response": [watch_response]}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks=hooks) as http,
        streamable_http_client(spec.url, http_client=http, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams


async def _read_messages(
    iterate: Callable[[int | None], AsyncIterator[bytes]], is_stream: bool, chunk_size: int | None = None
) -> AsyncGenerator[bytes, None]:
    """Yield a response, each message repaired: the lines of a stream of events, otherwise the whole content."""
    import httpx2  # lazy: the extra "mcp"

    parts: list[bytes] = []
    size = 0
    async for chunk in iterate(chunk_size):
        for part in chunk.splitlines(keepends=True) if is_stream else [chunk]:
            parts.append(part)
            size += len(part)
            if size > MAX_MESSAGE_BYTES:
                raise httpx2.StreamError(f"it has more than {MAX_MESSAGE_BYTES:,} bytes")
            if is_stream and part.endswith((b"\n", b"\r")):
                yield _repair_message(b"".join(parts))
                parts, size = [], 0
    yield _repair_message(b"".join(parts))


def _repair_message(content: bytes) -> bytes:
    """Return a message that the SDK can parse: it refuses lone surrogates and deep nesting."""
    from pydantic_core import from_json  # lazy: the extra "mcp" needs it here

    try:
        from_json(content.removeprefix(b"data:"), cache_strings=False)
    except ValueError:
        return to_portable_json(content.decode("utf-8", "replace"), MAX_MESSAGE_DEPTH).encode()
    return content


@contextlib.asynccontextmanager
async def _start_program(spec: McpServerSpec, diagnostics: ConnectionDiagnostics) -> AsyncIterator[Any]:
    from mcp import StdioServerParameters  # lazy: the extra "mcp"
    from mcp.client.stdio import stdio_client

    own_variables, diagnostics.secrets = resolve_references(spec.env, spec.tool_id)
    environment = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ} | own_variables
    if spec.cwd is not None and not spec.cwd.is_dir():
        raise BadInput(f"{spec.tool_id}: there is no folder {spec.cwd} to start the program in.")
    if shutil.which(spec.command, path=environment.get("PATH")) is None:
        raise BadInput(
            f"{spec.tool_id}: there is no program {spec.command!r} on the PATH. Install it, or give its path."
        )
    command, args = _report_process_group(spec.command, list(spec.args))
    parameters = StdioServerParameters(
        command=command,
        args=args,
        env=environment,
        cwd=spec.cwd,
        encoding_error_handler="replace",  # the SDK would stop to read at a byte that is not UTF-8
    )
    try:
        async with _capture_stderr(diagnostics) as errlog, stdio_client(parameters, errlog) as streams:
            yield streams
    finally:
        kill_program(diagnostics)


def kill_program(diagnostics: ConnectionDiagnostics) -> None:
    """Kill the program of a connection and its child processes; nothing if it has none, or they have ended."""
    if diagnostics.process_group:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(diagnostics.process_group, signal.SIGKILL)


def _remove_content(record: logging.LogRecord) -> bool:
    """Remove what a server wrote, which may hold a secret, from a record of the SDK: it is in its traceback.

    Returns:
        Whether to log the record: not if it is about a line of a program that is no message, such as a greeting.
    """
    record.exc_info = None
    return not str(record.msg).startswith("Failed to parse JSONRPC")


def _report_process_group(command: str, args: list[str]) -> tuple[str, list[str]]:
    """Wrap a command so that the first line on its standard error is the number of its process group.

    The SDK does not expose the number. It kills the group only if the program does not exit by itself, and child
    processes would survive.
    """
    if os.name == "nt":
        return command, args
    return "/bin/sh", ["-c", 'echo "$$" >&2; exec "$0" "$@"', command, *args]


class _StderrReader(asyncio.Protocol):
    """Reads the process group from the first line, and stores the end of the rest."""

    def __init__(self, diagnostics: ConnectionDiagnostics) -> None:
        self._diagnostics = diagnostics
        self._has_process_group = False

    def data_received(self, data: bytes) -> None:
        """Append data and remove what exceeds the limit."""
        stderr = self._diagnostics.stderr
        stderr += data
        if not self._has_process_group and b"\n" in stderr:
            line, _, rest = bytes(stderr).partition(b"\n")
            self._has_process_group = True
            if line.isdigit():
                self._diagnostics.process_group = int(line)
                stderr[:] = rest
        del stderr[:-MAX_STDERR_BYTES]


@contextlib.asynccontextmanager
async def _capture_stderr(diagnostics: ConnectionDiagnostics) -> AsyncIterator[TextIO]:
    """Yield a file for a program's standard error, whose end is stored in `diagnostics`."""
    if os.name == "nt":
        with open(os.devnull, "w") as null_device:  # noqa: ASYNC230, PTH123 - the null device never blocks
            yield null_device
        return
    read_end, write_end = os.pipe()
    pipe, loop = os.fdopen(read_end, "rb", 0), asyncio.get_running_loop()
    with os.fdopen(write_end, "w") as log:
        transport, _ = await loop.connect_read_pipe(lambda: _StderrReader(diagnostics), pipe)
        try:
            yield log
        finally:
            await asyncio.sleep(0)  # read what is in the pipe before it is closed
            transport.close()


@cache
def _get_block_adapter() -> "TypeAdapter[ContentBlock]":
    from mcp.types import ContentBlock  # lazy: the extra "mcp"
    from pydantic import TypeAdapter  # lazy: as above

    return TypeAdapter(ContentBlock)


def _to_known_block(block: Any) -> Any:
    """Return a block of a result; one that the SDK does not know, and would reject the result for, as its JSON text."""
    try:
        _get_block_adapter().validate_python(block)
    except ValueError:
        return {"type": "text", "text": dump_json(block).decode()}
    return block


def _parse_repaired(error: ValidationError) -> Any:
    """Return the message of a program's line that the SDK refused, repaired, or the error."""
    from mcp.shared.message import SessionMessage  # lazy: the extra "mcp"
    from mcp_types import jsonrpc_message_adapter

    problem = error.errors(include_url=False)[0]
    if problem["type"] != "json_invalid":
        return error
    try:
        line = to_portable_json(problem["input"], MAX_MESSAGE_DEPTH)
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError:
        return error


class _FilteredStream:
    """A read stream with what the SDK uses of it. Filters each message, and sets `disconnected` when nothing is read."""

    def __init__(self, inner: Any, disconnected: asyncio.Event, tool_list_filter: ToolListFilter) -> None:
        self._inner = inner
        self._disconnected = disconnected
        self._tool_list_filter = tool_list_filter

    @property
    def last_context(self) -> Any:
        """The sender's context, if the stream has one."""
        return getattr(self._inner, "last_context", None)

    def __aiter__(self) -> "_FilteredStream":
        return self

    async def __anext__(self) -> Any:
        message = await self._inner.__anext__()
        if isinstance(message, ValidationError):  # about a line of a program
            message = _parse_repaired(message)
        result = getattr(getattr(message, "message", None), "result", None)
        if isinstance(result, dict):
            self._tool_list_filter.drop_malformed(result)
            if "structuredContent" in result and result.get("content") is None:
                result["content"] = []  # servers leave it out, and the SDK would reject the result
            if isinstance(blocks := result.get("content"), list):
                result["content"] = [_to_known_block(block) for block in blocks]
        return message

    async def __aenter__(self) -> "_FilteredStream":
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> Any:
        self._disconnected.set()
        return await self._inner.__aexit__(*exc)
