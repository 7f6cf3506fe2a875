"""SOCKS proxy on loopback through which the browser connects to allowed addresses only.

Checking URLs is not enough: redirects, WebSockets and DNS changes bypass such a check. The proxy resolves every name
itself and connects to the address it has checked.
"""

import asyncio
import socket
from contextlib import suppress
from ipaddress import ip_address

from aiohttp import ThreadedResolver

from opposable.domain.errors import ToolRefused, ToolUnavailable
from opposable.safety.network.guarded_resolver import GuardedResolver
from opposable.safety.network.ssrf_guard import SsrfGuard

_CHUNK_BYTES = 65536
_TIMEOUT_SECONDS = 10.0
_MAX_REFUSALS = 200
_REPLY_NOT_ALLOWED, _REPLY_UNREACHABLE = b"\x05\x02", b"\x05\x04"
_REPLY_BOUND_ADDRESS = b"\x00\x01\x00\x00\x00\x00\x00\x00"


class EgressProxy:
    """SOCKS 5 proxy that connects where `guard` allows it.

    Attributes:
        refusals: The reason of each refused connection, by host.
    """

    def __init__(self, guard: SsrfGuard) -> None:
        self.guard = guard
        self.refusals: dict[str, str] = {}
        self._resolver = GuardedResolver(guard, ThreadedResolver())
        self._server: asyncio.Server | None = None
        self._client_tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Listen on loopback. Return the proxy URL for a browser."""
        self._server = await asyncio.start_server(self._handle_client, "127.0.0.1", 0)
        return f"socks5://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Close every connection and stop listening."""
        if self._server is not None:
            self._server.close()
        for task in self._client_tasks:
            task.cancel()
        await asyncio.gather(*self._client_tasks, return_exceptions=True)
        await self._resolver.close()

    async def _handle_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._client_tasks.add(task)
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS * 2):
                upstream = await self._connect_upstream(reader, writer)
            if upstream is not None:
                await _relay(reader, writer, *upstream)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._client_tasks.discard(task)
            writer.close()

    async def _connect_upstream(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        host, port = await _read_socks_request(reader, writer)
        try:
            address = await self._resolve_allowed_address(host, port)
            upstream = await asyncio.wait_for(asyncio.open_connection(address, port), _TIMEOUT_SECONDS)
        except ToolRefused as error:
            self.record_refusal(host, str(error))
            writer.write(_REPLY_NOT_ALLOWED + _REPLY_BOUND_ADDRESS)
            return None
        except (OSError, TimeoutError, ToolUnavailable) as error:
            if isinstance(error, ToolUnavailable):
                self.record_refusal(host, str(error))
            writer.write(_REPLY_UNREACHABLE + _REPLY_BOUND_ADDRESS)
            return None
        writer.write(b"\x05\x00" + _REPLY_BOUND_ADDRESS)
        await writer.drain()
        return upstream

    async def _resolve_allowed_address(self, host: str, port: int) -> str:
        url_host = f"[{host}]" if ":" in host else host
        target = self.guard.check_url(f"http://{url_host}:{port}/")
        if target.address is not None:
            return str(target.address)
        addresses = await self._resolver.resolve(target.host, port, socket.AF_UNSPEC)
        return addresses[0]["host"]

    def record_refusal(self, host: str, reason: str) -> None:
        """Store the reason of a refused connection. Many of them replace the earlier ones."""
        if len(self.refusals) >= _MAX_REFUSALS:
            self.refusals.clear()
        self.refusals[host] = reason


async def _read_socks_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int]:
    """Read the host and port of a SOCKS 5 request (RFC 1928) without authentication."""
    _, method_count = await reader.readexactly(2)
    await reader.readexactly(method_count)
    writer.write(b"\x05\x00")
    version, command, _, address_type = await reader.readexactly(4)
    if (version, command) != (5, 1):
        raise OSError("not a SOCKS 5 connection")
    if address_type == 3:
        host = (await reader.readexactly((await reader.readexactly(1))[0])).decode("ascii", "replace")
    else:
        host = str(ip_address(await reader.readexactly(4 if address_type == 1 else 16)))
    return host, int.from_bytes(await reader.readexactly(2), "big")


async def _relay(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    upstream_reader: asyncio.StreamReader,
    upstream_writer: asyncio.StreamWriter,
) -> None:
    try:
        await asyncio.gather(_copy_stream(reader, upstream_writer), _copy_stream(upstream_reader, writer))
    finally:
        upstream_writer.close()


async def _copy_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
