"""Results that come in pieces: a generator's, told one by one and put together at the end."""

import asyncio
import contextvars
import functools
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any

from opposable.tools.invocation import text_of

THREADS = 64
"""Sync tools at work at once; asyncio's own pool would give six on two cores."""

Report = Callable[[str], None]


async def streamed(source: "AsyncGenerator[Any, None] | Generator[Any, None, None]", report: Report | None) -> Any:
    """All that `source` yields: one text where all pieces are text, else a list. Each is reported as it comes.

    However this ends, the generator is closed: an asynchronous one at once, one that works in a thread after the piece
    it is at.
    """
    if isinstance(source, AsyncGenerator):
        return whole(await _gathered(source, report))
    loop, stop = asyncio.get_running_loop(), threading.Event()

    def tell(text: str) -> None:
        if report is not None:
            loop.call_soon_threadsafe(report, text)

    work = functools.partial(contextvars.copy_context().run, _drained, source, tell, stop)
    try:
        return whole(await loop.run_in_executor(threads(), work))
    finally:
        stop.set()


def whole(pieces: list[Any]) -> Any:
    """The pieces as one text where all are text, else as they are."""
    return "".join(pieces) if all(isinstance(piece, str) for piece in pieces) else pieces


async def _gathered(source: AsyncGenerator[Any, None], report: Report | None) -> list[Any]:
    pieces = []
    async with aclosing(source):
        async for piece in source:
            if report is not None:
                report(text_of(piece))
            pieces.append(piece)
    return pieces


def _drained(source: Generator[Any, None, None], tell: Callable[[str], None], stop: threading.Event) -> list[Any]:
    pieces = []
    try:
        for piece in source:
            if stop.is_set():
                break
            tell(text_of(piece))
            pieces.append(piece)
    finally:
        source.close()
    return pieces


@functools.cache
def threads() -> ThreadPoolExecutor:
    """The threads that sync tools run in."""
    return ThreadPoolExecutor(THREADS, thread_name_prefix="tool")
