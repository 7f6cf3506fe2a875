"""The heartbeat of this process, and the failing of runs whose process has died."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import uuid4

from opposable.domain.errors import OpposableError
from opposable.store.workers import WorkerRepository

HEARTBEAT_SECONDS = 2.0
"""Seconds between heartbeats."""
DEAD_AFTER_SECONDS = 10.0
"""Seconds without a heartbeat after which a process counts as dead."""

log = logging.getLogger("opposable.service")


class Heartbeat:
    """An async context manager that records that this process is alive.

    It also fails the runs of dead processes. A process that could not reach the store for a while fails no runs:
    the other processes may have been cut off as well.
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
        self._task = asyncio.create_task(self._run(), name="heartbeat")
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
        last_beat = connected_since = loop.time()
        while True:
            await asyncio.sleep(self._interval_seconds)
            if loop.time() - last_beat > self._dead_after_seconds / 2:  # the store or this process was suspended
                connected_since = loop.time()
            try:
                await self._workers.record_heartbeat(self.worker_id)
                last_beat = loop.time()
                failed_run_ids: Sequence[str] = ()
                if last_beat - connected_since > self._dead_after_seconds:
                    failed_run_ids = await self._workers.fail_lost_runs(timedelta(seconds=self._dead_after_seconds))
                if failed_run_ids:
                    log.warning("Failed runs whose process died: %s", ", ".join(failed_run_ids))
            except OpposableError as error:
                log.debug("Cannot record a heartbeat: %s", error)
