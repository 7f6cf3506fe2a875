"""Writes what a service records, in the background."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from opposable.domain.errors import OpposableError
from opposable.service.background import run_in_background

log = logging.getLogger("opposable.web")


@asynccontextmanager
async def write_periodically(write: Callable[[], Awaitable[None]], seconds: float, what: str) -> AsyncIterator[None]:
    """Write while the block runs, and once at its end. A write that fails is logged and tried again.

    Args:
        write: Writes what was recorded since the last write.
        seconds: The time between writes.
        what: What is written, for the log and the name of the task.
    """
    write_lock = asyncio.Lock()
    try:
        async with run_in_background(_run(write, seconds, what, write_lock), what):
            try:
                yield
            finally:
                await write_lock.acquire()  # a write that is cancelled may be stored, and would be repeated
    finally:
        with contextlib.suppress(OpposableError):
            await write()


async def _run(write: Callable[[], Awaitable[None]], seconds: float, what: str, write_lock: asyncio.Lock) -> None:
    is_failing = False
    while True:
        await asyncio.sleep(seconds)
        async with write_lock:
            try:
                await write()
                is_failing = False
            except OpposableError as error:
                if not is_failing:  # an outage is one line of the log
                    log.warning("Cannot write %s yet: %s", what, error)
                is_failing = True
