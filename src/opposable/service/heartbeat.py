"""The heartbeat of this process, and the failing of runs whose process has died."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from uuid import uuid4

from opposable.domain.errors import OpposableError
from opposable.service.background import run_in_background
from opposable.store.workers import WorkerRepository

HEARTBEAT_SECONDS = 2.0
"""Seconds between heartbeats."""
DEAD_AFTER_SECONDS = 10.0
"""Seconds without a heartbeat after which a process counts as dead."""

log = logging.getLogger("opposable.service")


class Heartbeat:
    """Records that this process is alive, while the block of `run` runs.

    It also fails the runs of dead processes. A process that could not reach the store for a while fails no runs:
    the other processes may have been cut off as well.
    """

    def __init__(self, workers: WorkerRepository) -> None:
        self.worker_id = uuid4().hex
        self._workers = workers

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Record heartbeats while the block runs.

        Raises:
            StoreUnavailable: If the first one cannot be recorded.
        """
        await self._workers.record_heartbeat(self.worker_id)
        try:
            async with run_in_background(self._beat(), "heartbeat"):
                yield
        finally:
            with suppress(OpposableError):
                await self._workers.delete(self.worker_id)

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        last_beat = connected_since = loop.time()
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            if loop.time() - last_beat > DEAD_AFTER_SECONDS / 2:  # the store or this process was suspended
                connected_since = loop.time()
            try:
                await self._workers.record_heartbeat(self.worker_id)
                last_beat = loop.time()
                failed_run_ids: Sequence[str] = ()
                if last_beat - connected_since > DEAD_AFTER_SECONDS:
                    failed_run_ids = await self._workers.fail_lost_runs(timedelta(seconds=DEAD_AFTER_SECONDS))
                if failed_run_ids:
                    log.warning("Failed runs whose process died: %s", ", ".join(failed_run_ids))
            except OpposableError as error:
                log.debug("Cannot record a heartbeat: %s", error)
