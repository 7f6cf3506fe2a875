"""DBOS on the database of the store: its configuration, and the queue of runs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer

from opposable.store.database_urls import parse_database_url

APPLICATION_NAME = "opposable"
SCHEMA = "opposable_dbos"
QUEUE = "opposable_runs"
WORKFLOW = "opposable_run"
STEPS_VERSION = "1"
"""Version of the steps of a run. A worker continues only runs of its own version, so change it when the steps change."""
QUEUE_POLL_SECONDS = 0.2
POOL_SIZE = 10
"""Connections of DBOS to the database, for each worker."""
MAX_RECOVERY_ATTEMPTS = 1_000_000
"""The runs themselves limit how often they are taken over."""

CHAT_PRIORITY, BATCH_PRIORITY = 1, 2
"""Queued chats start before queued tasks of batches."""
RUNS_PER_DELETE = 500
"""Runs whose steps are deleted in one transaction."""

Execute = Callable[[str], Awaitable[str]]
"""Executes the run with an id and returns its status."""


class Engine:
    """The launched DBOS of this process."""

    async def submit(self, run_ids: Sequence[str], priority: int = CHAT_PRIORITY) -> None:
        """Put runs into the queue of all workers. A run that is in the queue already stays there."""
        for run_id in run_ids:
            options = {
                "workflow_name": WORKFLOW,
                "queue_name": QUEUE,
                "workflow_id": run_id,
                "priority": priority,
            }
            await DBOS.enqueue_workflow_with_options_async(options, run_id)  # type: ignore[arg-type]  # a TypedDict

    async def list_active(self, worker_id: str | None = None) -> dict[str, list[str]]:
        """Return the ids of the runs that workers execute, or one worker, by worker id."""
        workflows = await DBOS.list_workflows_async(
            status="PENDING",
            name=WORKFLOW,
            app_version=STEPS_VERSION,
            executor_id=worker_id,
            load_input=False,
            load_output=False,
        )
        runs: dict[str, list[str]] = {}
        for workflow in workflows:
            runs.setdefault(workflow.executor_id or "", []).append(workflow.workflow_id)
        return runs

    async def resubmit(self, run_ids: Sequence[str]) -> None:
        """Put runs of a dead worker into the queue again. An execution that still goes on stops at its next step."""
        await DBOS.resume_workflows_async(list(run_ids), queue_name=QUEUE)

    async def resume_suspended(self, run_ids: Sequence[str]) -> None:
        """Put those of the runs that are suspended into the queue again."""
        suspended = await DBOS.list_workflows_async(
            workflow_ids=list(run_ids), status="CANCELLED", load_input=False, load_output=False
        )
        if suspended:
            await self.resubmit([workflow.workflow_id for workflow in suspended])

    async def delete_ended(self, before: datetime) -> None:
        """Delete the recorded steps of the runs that ended before a time."""
        while True:
            workflows = await DBOS.list_workflows_async(
                status=["SUCCESS", "ERROR"],  # a suspended run is "CANCELLED"
                name=WORKFLOW,
                completed_before=before.isoformat(),
                limit=RUNS_PER_DELETE,
                load_input=False,
                load_output=False,
            )
            await DBOS.delete_workflows_async([workflow.workflow_id for workflow in workflows])
            if len(workflows) < RUNS_PER_DELETE:
                return

    async def close(self, wait_seconds: int) -> None:
        """Start no further run, wait for the active ones, and end DBOS. Cancel what is left before the wait is over."""
        loop = asyncio.get_running_loop()
        destroy = partial(DBOS.destroy, workflow_completion_timeout_sec=wait_seconds, destroy_registry=True)
        with ThreadPoolExecutor(1) as thread:
            await loop.run_in_executor(thread, destroy)
        loop.set_default_executor(ThreadPoolExecutor())  # DBOS leaves one that it has shut down


@asynccontextmanager
async def launch_engine(url: str, worker_id: str, execute: Execute, concurrency: int) -> AsyncIterator[Engine]:
    """Launch DBOS in this process: it executes queued runs until the engine is closed.

    Args:
        url: The URL of the PostgreSQL database.
        worker_id: The id of this process.
        execute: Executes one run.
        concurrency: The number of runs of this process at a time.
    """
    logging.getLogger("dbos").setLevel(logging.ERROR)
    database_url = parse_database_url(url).render_as_string(hide_password=False)
    DBOS(
        config=DBOSConfig(
            name=APPLICATION_NAME,
            system_database_url=database_url,
            dbos_system_schema=SCHEMA,
            executor_id=worker_id,
            application_version=STEPS_VERSION,
            serializer=DBOSPortableJSONSerializer(),  # the default serializer is pickle
            sys_db_pool_size=POOL_SIZE,
            use_listen_notify=False,
            log_level="ERROR",
            enable_otlp=False,
        )
    )

    @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=MAX_RECOVERY_ATTEMPTS)
    async def run(run_id: str) -> str:
        return await execute(run_id)

    DBOS.listen_queues([QUEUE])
    engine = Engine()
    try:
        DBOS.launch()
        await DBOS.register_queue_async(
            QUEUE, worker_concurrency=concurrency, polling_interval_sec=QUEUE_POLL_SECONDS, on_conflict="always_update"
        )
        yield engine
    finally:
        await engine.close(0)
