"""Results that come as a stream: a generator's deltas, reported one by one and joined at the end."""

import asyncio
import contextvars
import functools
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any

from opposable.tools.result_text import value_to_text

MAX_TOOL_THREADS = 64
"""Sync tools that run at once. asyncio's default pool would have six threads on two cores."""

_THREAD_NAME = "tool"
_END_SECONDS = 0.5  # in which idle threads end

ReportDelta = Callable[[str], None]


async def collect_stream(
    source: "AsyncGenerator[Any, None] | Generator[Any, None, None]", report: ReportDelta | None
) -> Any:
    """Iterate a generator, report each delta, and return them joined (see `join_deltas`).

    The generator is closed however this ends: an async one at once, one in a thread after its current delta.
    """
    if isinstance(source, AsyncGenerator):
        deltas = []
        async with aclosing(source):
            async for delta in source:
                if report is not None:
                    report(value_to_text(delta))
                deltas.append(delta)
        return join_deltas(deltas)
    loop, stop = asyncio.get_running_loop(), threading.Event()

    def report_threadsafe(text: str) -> None:
        if report is not None:
            loop.call_soon_threadsafe(report, text)

    work = functools.partial(contextvars.copy_context().run, _collect_sync, source, report_threadsafe, stop)
    try:
        return join_deltas(await loop.run_in_executor(get_thread_pool(), work))
    finally:
        stop.set()


def join_deltas(deltas: list[Any]) -> Any:
    """Return the deltas as one text if all are text, else the list."""
    return "".join(deltas) if all(isinstance(delta, str) for delta in deltas) else deltas


def _collect_sync(source: Generator[Any, None, None], report: ReportDelta, stop: threading.Event) -> list[Any]:
    deltas = []
    try:
        for delta in source:
            if stop.is_set():
                break
            report(value_to_text(delta))
            deltas.append(delta)
    finally:
        source.close()
    return deltas


@functools.cache
def get_thread_pool() -> ThreadPoolExecutor:
    """Return the pool of threads that sync tools run in."""
    return ThreadPoolExecutor(MAX_TOOL_THREADS, thread_name_prefix=_THREAD_NAME)


if hasattr(os, "register_at_fork"):  # a forked process has none of the threads, and would wait for them
    os.register_at_fork(after_in_child=get_thread_pool.cache_clear)


def is_tool_thread_busy() -> bool:
    """End the pool. Return whether a sync tool still runs, after its time-out or a cancellation."""
    threads = [thread for thread in threading.enumerate() if thread.name.startswith(_THREAD_NAME)]
    if threads:
        get_thread_pool().shutdown(wait=False, cancel_futures=True)
    deadline = time.monotonic() + _END_SECONDS
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return any(thread.is_alive() for thread in threads)
