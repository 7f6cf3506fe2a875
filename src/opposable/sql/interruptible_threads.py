"""Runs an engine's blocking work in a thread that ends when its time is up or its caller goes away."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_GRACE_SECONDS = 2.0
"""Seconds an interrupted engine has to stop before its caller goes on."""


async def run_interruptible(
    pool: ThreadPoolExecutor, work: Callable[[], T], interrupt: Callable[[], None], seconds: float
) -> T:
    """The result of `work`, run in `pool`; `interrupt` must make it end from another thread.

    Raises:
        TimeoutError: after `seconds`, with the work interrupted.
        Whatever `work` raises.
    """
    job = pool.submit(work)
    future = asyncio.wrap_future(job)
    try:
        done, _ = await asyncio.wait({future}, timeout=seconds)
    except asyncio.CancelledError:
        await asyncio.shield(_interrupt_until_done(job, future, interrupt))
        raise
    if done:
        return future.result()
    await _interrupt_until_done(job, future, interrupt)
    raise TimeoutError


async def _interrupt_until_done(job: "Future[T]", future: "asyncio.Future[T]", interrupt: Callable[[], None]) -> None:
    """Interrupts until the work ends; again and again, since the first may come before the work begins."""
    if job.cancel():
        return
    end = asyncio.get_running_loop().time() + _GRACE_SECONDS
    while not future.done() and asyncio.get_running_loop().time() < end:
        interrupt()
        await asyncio.wait({future}, timeout=0.05)
    if future.done() and not future.cancelled():
        future.exception()
    else:
        future.add_done_callback(lambda late: late.cancelled() or late.exception())
