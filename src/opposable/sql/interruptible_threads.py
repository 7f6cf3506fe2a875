"""Blocking calls in threads, with a time limit and cancellation."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_GRACE_SECONDS = 2.0
"""Time for an interrupted engine to stop before its caller continues."""


async def run_interruptible(
    pool: ThreadPoolExecutor, work: Callable[[], T], interrupt: Callable[[], None], seconds: float
) -> T:
    """Run `work` in `pool` and return its result.

    Args:
        pool: The threads to use.
        work: The blocking call; its exceptions are raised here.
        interrupt: Makes `work` end; called from another thread.
        seconds: Time limit.

    Raises:
        TimeoutError: The time limit has passed; the work was interrupted.
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
    """Interrupt repeatedly until the work ends.

    The first call may come before the work begins.
    """
    if job.cancel():
        return
    deadline = asyncio.get_running_loop().time() + _GRACE_SECONDS
    while not future.done() and asyncio.get_running_loop().time() < deadline:
        interrupt()
        await asyncio.wait({future}, timeout=0.05)
    if future.done() and not future.cancelled():
        future.exception()
    else:
        future.add_done_callback(lambda late: late.cancelled() or late.exception())
