"""The worker process: executes queued runs until it gets a signal to stop."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from uuid import uuid4

from sqlalchemy.exc import SQLAlchemyError

from opposable.app.default_store import require_postgresql
from opposable.domain.records import get_utc_now
from opposable.durable.call_slots import CallSlots
from opposable.durable.coordinator import Coordinator
from opposable.durable.engine import Engine, launch_engine
from opposable.durable.execution import RunExecutor, SetOwner
from opposable.models.base import Model
from opposable.service.background import run_in_background
from opposable.service.service import RETENTION_SECONDS, Service, open_service
from opposable.service.stop_signals import get_stop_signals
from opposable.settings import Settings

DEFAULT_CONCURRENCY = 20
STOP_SECONDS = 5
"""Seconds for cancelled runs to end."""
DRAIN_SECONDS = 25
"""Seconds that a stopping worker waits for its runs. Those that go on are continued by other workers."""

log = logging.getLogger("opposable.durable")

OpenMeter = Callable[[Service], AbstractAsyncContextManager[SetOwner]]
"""Counts the tokens of a service's models while its block runs."""


async def run_worker(
    settings: Settings,
    models: Mapping[str, Model],
    meter: OpenMeter,
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    drain_seconds: int = DRAIN_SECONDS,
    on_ready: Callable[[str], None] = lambda worker_id: None,
) -> None:
    """Execute queued runs until SIGINT, SIGTERM or SIGHUP.

    Args:
        settings: The settings, with the URL of a PostgreSQL database.
        models: The models by the names that agents use; the first is the default.
        meter: Counts the tokens of the service's models while its block runs.
        concurrency: The number of runs at a time.
        drain_seconds: How long to wait for active runs at the end.
        on_ready: Called with the id of the worker once it accepts runs.

    Raises:
        BadInput: If the store is not PostgreSQL, or a setting is wrong.
        StoreError: If the store cannot be opened.
    """
    url = require_postgresql(settings)
    worker_id = uuid4().hex
    stop = _listen_for_signals()
    async with open_service(settings, models) as service, CallSlots(url) as slots, meter(service) as set_owner:
        executor = RunExecutor(service, slots, set_owner)
        async with launch_engine(url, worker_id, executor.execute, concurrency) as engine:
            coordinator = Coordinator(url, worker_id, service.store, engine, executor)
            async with (  # the end of the coordinator releases its lock: other workers take over what is left
                run_in_background(coordinator.run(), "coordinator"),
                run_in_background(executor.poll_cancel_requests(), "cancellation requests"),
                run_in_background(_delete_old_steps(engine, settings.retention_days), "retention of steps"),
            ):
                on_ready(worker_id)
                try:
                    await stop.wait()
                    coordinator.resign()
                    await _drain(engine, executor, drain_seconds)
                finally:
                    executor.stop()


async def _delete_old_steps(engine: Engine, retention_days: int | None) -> None:
    """Delete the recorded steps of old runs every hour, unless they are retained for ever."""
    while retention_days is not None:
        try:
            await engine.delete_ended(get_utc_now() - timedelta(days=retention_days))
        except SQLAlchemyError as error:  # from DBOS
            log.warning("The steps of old runs could not be deleted: %s", type(error).__name__)
        await asyncio.sleep(RETENTION_SECONDS)


async def _drain(engine: Engine, executor: RunExecutor, seconds: int) -> None:
    """Start no further run, wait for the active ones, and leave those that go on to other workers."""
    timer = asyncio.get_running_loop().call_later(seconds, executor.stop)
    await engine.close(seconds + STOP_SECONDS)
    timer.cancel()


def _listen_for_signals() -> asyncio.Event:
    """Return an event that SIGINT, SIGTERM and SIGHUP set."""
    stop = asyncio.Event()
    for number in get_stop_signals():
        with contextlib.suppress(NotImplementedError):  # not supported on Windows
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
