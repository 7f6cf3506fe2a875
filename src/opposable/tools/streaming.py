"""Results that come in pieces: a generator's, told one by one and put together at the end."""

import asyncio
import contextvars
import functools
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any

from opposable.tools.result_text import value_to_text

MAX_TOOL_THREADS = 64
"""Sync tools at work at once; asyncio's own pool would give six on two cores."""

ReportDelta = Callable[[str], None]


async def collect_stream(
    source: "AsyncGenerator[Any, None] | Generator[Any, None, None]", report: ReportDelta | None
) -> Any:
    """All that `source` yields: one text where all pieces are text, else a list. Each is reported as it comes.

    However this ends, the generator is closed: an asynchronous one at once, one that works in a thread after the piece
    it is at.
    """
    if isinstance(source, AsyncGenerator):
        return join_deltas(await _collect_async(source, report))
    loop, stop = asyncio.get_running_loop(), threading.Event()

    def tell(text: str) -> None:
        if report is not None:
            loop.call_soon_threadsafe(report, text)

    work = functools.partial(contextvars.copy_context().run, _collect_sync, source, tell, stop)
    try:
        return join_deltas(await loop.run_in_executor(get_thread_pool(), work))
    finally:
        stop.set()


def join_deltas(deltas: list[Any]) -> Any:
    """The pieces as one text where all are text, else as they are."""
    return "".join(deltas) if all(isinstance(piece, str) for piece in deltas) else deltas


async def _collect_async(source: AsyncGenerator[Any, None], report: ReportDelta | None) -> list[Any]:
    pieces = []
    async with aclosing(source):
        async for piece in source:
            if report is not None:
                report(value_to_text(piece))
            pieces.append(piece)
    return pieces


def _collect_sync(
    source: Generator[Any, None, None], report: Callable[[str], None], stop: threading.Event
) -> list[Any]:
    pieces = []
    try:
        for piece in source:
            if stop.is_set():
                break
            report(value_to_text(piece))
            pieces.append(piece)
    finally:
        source.close()
    return pieces


@functools.cache
def get_thread_pool() -> ThreadPoolExecutor:
    """The threads that sync tools run in."""
    return ThreadPoolExecutor(MAX_TOOL_THREADS, thread_name_prefix="tool")
