"""Blocking calls in threads, with a time limit and cancellation."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_THREADS = 4
_GRACE_SECONDS = 2.0
"""Time for an interrupted engine to stop before its caller continues."""
_MAX_ABANDONED = 16
"""How many calls that an engine does not interrupt are replaced at a time."""


class InterruptibleThreads:
    """Threads for the blocking calls of one database.

    A call that runs on after it was interrupted is replaced: another one may start, and `close` does not wait for it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._running: set[Future[Any]] = set()
        self._abandoned: set[Future[Any]] = set()

    async def run(self, work: Callable[[], T], interrupt: Callable[[], None], seconds: float) -> T:
        """Run `work` in a thread and return its result.

        Args:
            work: The blocking call; its exceptions are raised here.
            interrupt: Makes `work` end; called from another thread.
            seconds: Time limit.

        Raises:
            TimeoutError: The time limit has passed; the work was interrupted.
        """
        job: Future[T] = Future()
        with self._lock:
            self._waiting.append((job, work))
            self._start_waiting()
        future = asyncio.wrap_future(job)
        try:
            done, _ = await asyncio.wait({future}, timeout=seconds)
        except asyncio.CancelledError:
            await asyncio.shield(self._interrupt_until_done(job, future, interrupt))
            raise
        if done:
            return future.result()
        await self._interrupt_until_done(job, future, interrupt)
        raise TimeoutError

    async def close(self) -> None:
        """Cancel the calls that wait, and return when none is running."""
        for job, _ in tuple(self._waiting):
            job.cancel()
        while self._running - self._abandoned:  # noqa: ASYNC110 - threads set no event of asyncio
            await asyncio.sleep(0.01)

    def _start_waiting(self) -> None:
        while self._waiting and len(self._running) < _THREADS + min(len(self._abandoned), _MAX_ABANDONED):
            job, work = self._waiting.popleft()
            if not job.set_running_or_notify_cancel():
                continue
            try:
                threading.Thread(target=self._work, args=(job, work), name=self._name, daemon=True).start()
                self._running.add(job)
            except RuntimeError as error:  # the system starts no more threads
                job.set_exception(error)

    def _work(self, job: "Future[Any]", work: Callable[[], Any]) -> None:
        try:
            job.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
            job.set_exception(error)
        finally:
            with self._lock:
                self._running.discard(job)
                self._abandoned.discard(job)
                self._start_waiting()
            del job, work  # the error refers to this frame

    async def _interrupt_until_done(
        self, job: "Future[T]", future: "asyncio.Future[T]", interrupt: Callable[[], None]
    ) -> None:
        """Interrupt repeatedly until the work ends.

        The first call may come before the work begins.
        """
        if job.cancel():
            return
        future.add_done_callback(lambda done: done.cancelled() or done.exception())  # or asyncio logs its traceback
        deadline = asyncio.get_running_loop().time() + _GRACE_SECONDS
        while not future.done() and asyncio.get_running_loop().time() < deadline:
            interrupt()
            await asyncio.wait({future}, timeout=0.05)
        if not future.done():
            with self._lock:
                self._abandoned |= {job} & self._running
                self._start_waiting()
