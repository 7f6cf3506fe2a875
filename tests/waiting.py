"""Waiting for what happens in another task or process."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path


async def wait_until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Return as soon as the condition holds; raise TimeoutError if it does not in time."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


def wait_for_process_end(pid: int, seconds: float = 20.0) -> None:
    """Return when a process of Linux has ended, also if its parent has not waited for it; fail if it does not in time."""
    end = time.monotonic() + seconds
    with suppress(FileNotFoundError):
        while Path(f"/proc/{pid}/cmdline").read_bytes():
            assert time.monotonic() < end
            time.sleep(0.02)


def create_endless_tool() -> tuple[Callable[[], Awaitable[None]], asyncio.Event, asyncio.Event]:
    """Return the function `forever`, which only ends when cancelled, with the events that it has started and stopped."""
    started, stopped = asyncio.Event(), asyncio.Event()

    async def forever() -> None:
        """Never ends."""
        started.set()
        try:
            await asyncio.sleep(1000)
        finally:
            stopped.set()

    return forever, started, stopped
