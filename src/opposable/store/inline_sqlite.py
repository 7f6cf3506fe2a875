"""Connections to SQLite that do what they are asked at once, without a thread."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import aiosqlite


class AtOnce:
    """In place of the queue to a connection's thread: what is put into it is done before `put_nowait` returns."""

    def put_nowait(self, asked: tuple["asyncio.Future[Any] | None", Callable[[], Any]]) -> None:
        """Do it, and end the future with what came of it."""
        future, work = asked
        try:
            result = work()
        except BaseException as error:
            if future is None:
                raise
            future.set_exception(error)
        else:
            if future is not None:
                future.set_result(result)


async def connected(where: tuple[Sequence[Any], Mapping[str, Any]], patience: float) -> aiosqlite.Connection:
    """A connection; `where` are the driver's arguments, `patience` the seconds to wait for a lock."""
    args, named = where
    connection = aiosqlite.connect(*args, **{**named, "timeout": patience, "isolation_level": None})
    connection._tx = AtOnce()  # type: ignore[assignment]  # noqa: SLF001 - all that such a connection does goes through it
    return await connection._connect()  # noqa: SLF001 - without the thread that awaiting it would begin
