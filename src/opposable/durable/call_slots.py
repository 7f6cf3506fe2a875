"""Limits of concurrent calls over all workers: each call holds one of a number of locks."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Self
from weakref import WeakValueDictionary

import psycopg

from opposable.durable.locks import Connection, connect, release_lock, take_lock

POLL_SECONDS = 0.1
"""Seconds between two looks for a slot that another worker has left."""

log = logging.getLogger("opposable.durable")


class CallSlots:
    """The slots that the calls of this worker hold, as locks of one connection.

    A worker that dies loses its connection, and with it its slots. While PostgreSQL is away, the calls that hold slots
    continue, and no further call gets one.

    Args:
        url: The URL of the database.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None
        self._connection_lock = asyncio.Lock()
        self._held_names: set[str] = set()
        self._queues: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._disconnect()

    @asynccontextmanager
    async def hold(self, key: str, count: int) -> AsyncIterator[None]:
        """Hold one of the `count` slots of a key while the block runs. Wait for one in the order of the calls."""
        async with self._queues.setdefault(key, asyncio.Lock()):
            name = await self._take_any([f"{key} slot {number}" for number in range(count)])
        try:
            yield
        finally:
            await asyncio.shield(self._release(name))

    async def _take_any(self, names: list[str]) -> str:
        while True:
            for name in names:
                if name in self._held_names:  # the connection could take its own lock a second time
                    continue
                attempt = asyncio.ensure_future(self._take(name))
                try:
                    if await asyncio.shield(attempt):
                        return name
                except asyncio.CancelledError:
                    if await attempt:
                        await self._release(name)
                    raise
            await asyncio.sleep(POLL_SECONDS)

    async def _take(self, name: str) -> bool:
        async with self._connection_lock:
            try:
                if self._connection is None:
                    self._connection = await connect(self._url)
                if not await take_lock(self._connection, name):
                    return False
            except psycopg.Error as error:
                log.warning("The worker cannot reach the database for the limits of calls: %s", type(error).__name__)
                await self._disconnect()
                return False
            self._held_names.add(name)
            return True

    async def _release(self, name: str) -> None:
        async with self._connection_lock:
            self._held_names.discard(name)
            if self._connection is not None:
                try:
                    await release_lock(self._connection, name)
                except psycopg.Error:  # the lock is lost with the connection
                    await self._disconnect()

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                await connection.close()
