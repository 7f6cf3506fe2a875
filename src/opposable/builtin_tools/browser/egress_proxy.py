"""The only way out of the browser: a SOCKS proxy on loopback that connects to vetted addresses and nowhere else.

Looking at URLs is not enough: redirects, WebSockets and names that change their address between the look and the dial
pass by it. Every connection of the browser comes through here, its name is looked up here, and what was vetted is dialled.
"""

import asyncio
import socket
from contextlib import suppress
from ipaddress import ip_address

from aiohttp import ThreadedResolver

from opposable.domain.errors import ToolRefused, ToolUnavailable
from opposable.safety.network.ssrf_guard import GuardedResolver, SsrfGuard

_CHUNK_BYTES = 65536
_TIMEOUT_SECONDS = 10.0
_MAX_REFUSALS = 200
_REPLY_NOT_ALLOWED, _REPLY_UNREACHABLE = b"\x05\x02", b"\x05\x04"
_REPLY_BOUND_ADDRESS = b"\x00\x01\x00\x00\x00\x00\x00\x00"


class EgressProxy:
    """Opens connections where `guard` allows. `refusals` maps hosts to the reason they were not reached."""

    def __init__(self, guard: SsrfGuard) -> None:
        self.guard = guard
        self.refusals: dict[str, str] = {}
        self._resolver = GuardedResolver(guard, ThreadedResolver())
        self._server: asyncio.Server | None = None
        self._client_tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Listen on loopback; the address for a browser."""
        self._server = await asyncio.start_server(self._handle_client, "127.0.0.1", 0)
        return f"socks5://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Close every connection and listen no more."""
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
                far = await self._connect_upstream(reader, writer)
            if far is not None:
                await _relay(reader, writer, *far)
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
            far = await asyncio.wait_for(asyncio.open_connection(address, port), _TIMEOUT_SECONDS)
        except ToolRefused as error:
            self._record_refusal(host, str(error))
            writer.write(_REPLY_NOT_ALLOWED + _REPLY_BOUND_ADDRESS)
            return None
        except (OSError, TimeoutError, ToolUnavailable) as error:
            if isinstance(error, ToolUnavailable):
                self._record_refusal(host, str(error))
            writer.write(_REPLY_UNREACHABLE + _REPLY_BOUND_ADDRESS)
            return None
        writer.write(b"\x05\x00" + _REPLY_BOUND_ADDRESS)
        await writer.drain()
        return far

    async def _resolve_allowed_address(self, host: str, port: int) -> str:
        shown = f"[{host}]" if ":" in host else host
        target = self.guard.check_url(f"http://{shown}:{port}/")
        if target.address is not None:
            return str(target.address)
        found = await self._resolver.resolve(target.host, port, socket.AF_UNSPEC)
        return found[0]["host"]

    def _record_refusal(self, host: str, reason: str) -> None:
        if len(self.refusals) >= _MAX_REFUSALS:
            self.refusals.clear()
        self.refusals[host] = reason


async def _read_socks_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int]:
    """Where a client wants to go, by RFC 1928 without authentication."""
    _, methods = await reader.readexactly(2)
    await reader.readexactly(methods)
    writer.write(b"\x05\x00")
    version, command, _, kind = await reader.readexactly(4)
    if (version, command) != (5, 1):
        raise OSError("not a SOCKS 5 connection")
    if kind == 3:
        host = (await reader.readexactly((await reader.readexactly(1))[0])).decode("ascii", "replace")
    else:
        host = str(ip_address(await reader.readexactly(4 if kind == 1 else 16)))
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
        while piece := await reader.read(_CHUNK_BYTES):
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
