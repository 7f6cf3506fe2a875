"""Takeover and dispatch: one worker at a time, the leader, keeps the runs of all workers going.

Each worker holds a PostgreSQL advisory lock for as long as it lives; PostgreSQL releases it with the connection. A lock
that can be taken means that its worker is dead. The leader holds one more lock.
"""

import asyncio
import logging
from contextlib import suppress

from opposable.domain.errors import OpposableError
from opposable.durable.engine import BATCH_PRIORITY, Engine
from opposable.durable.execution import RunExecutor
from opposable.durable.locks import Connection, connect, release_lock, take_lock
from opposable.store.store import Store

LEADER_LOCK = "leader"
"""Name of the leader's lock. The lock of a worker has the worker's id as its name."""
TICK_SECONDS = 0.25
"""Seconds between two rounds of the leader."""
TAKEOVER_TICKS = 8
"""Rounds between two searches for dead workers."""
RECONNECT_SECONDS = 0.5
GRACE_SECONDS = 5.0
"""Seconds after a connection in which no worker counts as dead: others may be reconnecting too."""

log = logging.getLogger("opposable.durable")


class Coordinator:
    """The lock of this worker, and the duties of the leader.

    Args:
        url: The URL of the database.
        worker_id: The id of this worker.
        store: The store of the runs.
        engine: The engine of this worker.
        executor: The runs that this worker executes.
    """

    def __init__(self, url: str, worker_id: str, store: Store, engine: Engine, executor: RunExecutor) -> None:
        self._url = url
        self._worker_id = worker_id
        self._store = store
        self._engine = engine
        self._executor = executor
        self._suspects: frozenset[str] = frozenset()
        self._is_leader = False
        self._is_resigning = False

    def resign(self) -> None:
        """Leave the duties of the leader to another worker. The lock of this worker stays."""
        self._is_resigning = True

    async def run(self) -> None:
        """Hold the lock of this worker and act as leader where possible, until cancelled."""
        while True:
            try:
                async with await connect(self._url) as connection:
                    await take_lock(connection, self._worker_id)
                    await self._run_rounds(connection)
            except Exception as error:  # noqa: BLE001 - the drivers raise many kinds while the database restarts
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
                log.warning("The worker lost its connection to the database and reconnects: %s", reason)
            self._is_leader = False
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _run_rounds(self, connection: Connection) -> None:
        """Try to become the leader, and do its duties, until the connection is lost."""
        connected_at = asyncio.get_running_loop().time()
        tick = 0
        while True:
            if self._is_resigning:
                await release_lock(connection, LEADER_LOCK)
                self._is_leader = False
            elif not self._is_leader:
                self._is_leader = await take_lock(connection, LEADER_LOCK)
            with suppress(OpposableError):  # the store does not answer: the next round tries again
                if self._is_leader:
                    await self._dispatch()
                if tick % TAKEOVER_TICKS == 0 and not self._is_resigning:  # the engine closes
                    await self._requeue_own_runs()
                    if self._is_leader and asyncio.get_running_loop().time() - connected_at > GRACE_SECONDS:
                        await self._take_over(connection)
            tick += 1
            await asyncio.sleep(TICK_SECONDS)
            await connection.execute("SELECT 1")  # notices a lost connection, and with it a lost lock

    async def _dispatch(self) -> None:
        """Hand queued runs to the workers, and resume those that waited for a person."""
        queued_runs = self._store.queued_runs
        if chats := await queued_runs.list_ready_chats():
            await self._engine.submit(chats)
            await queued_runs.mark_submitted(chats)
        if tasks := await queued_runs.list_ready_tasks():
            await self._engine.submit(tasks, BATCH_PRIORITY)
            await queued_runs.mark_submitted(tasks)
        if resumable := await queued_runs.list_resumable():
            await self._engine.resume_suspended(resumable)
        await self._store.batches.finish_ended()

    async def _requeue_own_runs(self) -> None:
        """Put runs into the queue again that the engine counts as active here, but that ended in an outage."""
        counted = (await self._engine.list_active(self._worker_id)).get(self._worker_id, ())
        missing = frozenset(counted) - self._executor.active_ids
        if lost := missing & self._suspects:  # missing twice: a run that has just started or ended is missing once
            await self._engine.resubmit(tuple(lost))
            log.warning("%d runs are in the queue again after an outage of the database.", len(lost))
        self._suspects = missing

    async def _take_over(self, connection: Connection) -> None:
        """Put the runs of dead workers into the queue again."""
        for worker_id, run_ids in (await self._engine.list_active()).items():
            if worker_id == self._worker_id or not await take_lock(connection, worker_id):
                continue
            await self._engine.resubmit(run_ids)
            await release_lock(connection, worker_id)
            log.warning("Worker %s is dead. Its %d runs are in the queue again.", worker_id, len(run_ids))
