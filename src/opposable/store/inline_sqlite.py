"""Connections to SQLite that do what they are asked at once, without a thread."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import aiosqlite


class InlineExecutor:
    """In place of the queue to a connection's thread: what is put into it is done before `put_nowait` returns."""

    def put_nowait(self, work_item: tuple["asyncio.Future[Any] | None", Callable[[], Any]]) -> None:
        """Do it, and end the future with what came of it."""
        future, work = work_item
        try:
            result = work()
        except BaseException as error:
            if future is None:
                raise
            future.set_exception(error)
        else:
            if future is not None:
                future.set_result(result)


async def connect(
    driver_arguments: tuple[Sequence[Any], Mapping[str, Any]], timeout_seconds: float
) -> aiosqlite.Connection:
    """A connection; `where` are the driver's arguments, `patience` the seconds to wait for a lock."""
    args, named = driver_arguments
    connection = aiosqlite.connect(*args, **{**named, "timeout": timeout_seconds, "isolation_level": None})
    connection._tx = InlineExecutor()  # type: ignore[assignment]  # noqa: SLF001 - all that such a connection does goes through it
    return await connection._connect()  # noqa: SLF001 - without the thread that awaiting it would begin
