"""Signs of life of this process, and the end of runs whose process has died."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import uuid4

from opposable.domain.errors import OpposableError
from opposable.store.workers import WorkerRepository

HEARTBEAT_SECONDS = 2.0
"""Seconds between signs of life."""
DEAD_AFTER_SECONDS = 10.0
"""Seconds without one after which a process counts as dead."""

log = logging.getLogger("opposable.service")


class Heartbeat:
    """Keeps this process known as alive: `async with Living(...) as living`; its name is `living.worker`.

    Runs of dead processes are ended by whichever process sees it first. One that could not reach the store itself for
    a while judges nobody: the others may have been cut off like it.
    """

    def __init__(
        self,
        workers: WorkerRepository,
        *,
        interval_seconds: float = HEARTBEAT_SECONDS,
        dead_after_seconds: float = DEAD_AFTER_SECONDS,
    ) -> None:
        self.worker_id = uuid4().hex
        self._workers = workers
        self._interval_seconds = interval_seconds
        self._dead_after_seconds = dead_after_seconds
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Heartbeat":
        await self._workers.record_heartbeat(self.worker_id)
        self._task = asyncio.create_task(self._run(), name="signs of life")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        with suppress(OpposableError):
            await self._workers.delete(self.worker_id)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        last = since = loop.time()
        while True:
            await asyncio.sleep(self._interval_seconds)
            if loop.time() - last > self._dead_after_seconds / 2:  # it was cut off, or this process stood still
                since = loop.time()
            try:
                await self._workers.record_heartbeat(self.worker_id)
                last = loop.time()
                ended: Sequence[str] = ()
                if last - since > self._dead_after_seconds:
                    ended = await self._workers.fail_lost_runs(timedelta(seconds=self._dead_after_seconds))
                if ended:
                    log.warning("Runs whose process died were ended: %s", ", ".join(ended))
            except OpposableError as error:
                log.debug("No sign of life could be given: %s", error)
