"""Runs, calls and events on their way into the store: never waited for, written in batches, once each."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import TracebackType
from typing import Any, Protocol, Self

import orjson

from opposable.domain.backoff import get_backoff_seconds
from opposable.domain.errors import OpposableError, StoreError
from opposable.domain.records import Execution, Run, RunEvent
from opposable.safety.redaction import may_hold_secrets, redact, redact_known_secrets

FLUSH_INTERVAL_SECONDS = 0.5
"""Seconds between writes: what a killed process loses is younger than this and one write."""
MAX_BATCH_RECORDS = 500
"""Records written together; as many waiting are written at once."""
MAX_QUEUED_RECORDS = 20_000
"""Records kept waiting while the database is away."""
MAX_QUEUED_CHARACTERS = 64_000_000
"""Characters of them, about."""
CLOSE_TIMEOUT_SECONDS = 10.0
"""Seconds that closing waits for a database that is away."""
MAX_RETRY_DELAY_SECONDS = 5.0
"""Seconds between tries while the database is away, at most."""

log = logging.getLogger("opposable.recorder")

Record = Execution | RunEvent | Run


class ExecutionSink(Protocol):
    """Where executions go."""

    async def add(self, new_executions: Sequence[Execution]) -> None:
        """Keep them, each once. Raises: `StoreError`."""
        ...


class RunSink(Protocol):
    """Where runs and their events go."""

    async def save(self, *changed_runs: Run) -> None:
        """Keep runs, of each the last. Raises: `StoreError`."""
        ...

    async def add_events(self, new_events: Sequence[RunEvent]) -> None:
        """Keep them, each once. Raises: `StoreError`."""
        ...


@dataclass(frozen=True, slots=True)
class RecorderStatus:
    """How recording goes: records waiting, written, lost for want of room or at the close, refused by the database.

    `error` is what keeps it from writing now, "" when nothing does.
    """

    waiting: int
    written: int
    lost: int
    refused: int
    error: str

    @property
    def is_writing(self) -> bool:
        """Whether records are being written."""
        return not self.error


class Recorder:
    """Takes records without waiting and writes them from one task: `async with Recorder(...) as recorder`.

    `secrets` are known secret texts that are taken out of every record, beside what looks like one. A clean end
    writes all that waits; a kill loses at most the last second. While the database is away records wait, up to
    `room` of them; newer ones are then lost and counted, and `state` says so.
    """

    def __init__(
        self,
        executions: ExecutionSink,
        runs: RunSink,
        *,
        secrets: Collection[str] = (),
        flush_interval_seconds: float = FLUSH_INTERVAL_SECONDS,
        max_queued_records: int = MAX_QUEUED_RECORDS,
        close_timeout_seconds: float = CLOSE_TIMEOUT_SECONDS,
    ) -> None:
        self._executions = executions
        self._runs = runs
        self._secrets = frozenset(secrets)
        self._flush_interval_seconds = flush_interval_seconds
        self._max_queued_records = max_queued_records
        self._close_timeout_seconds = close_timeout_seconds
        self._queue: deque[tuple[Record, int]] = deque()
        self._queued_characters = 0
        self._written = self._lost = self._refused = 0
        self._error = ""
        self._watchers: list[Callable[[Record], None]] = []
        self._wake = asyncio.Event()
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run_flush_loop(), name="recorder")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._is_closing = True
        self._wake.set()
        try:
            async with asyncio.timeout(self._close_timeout_seconds):
                await self._task
        except TimeoutError:
            self._count_lost(len(self._queue), "the database was away until the end")

    def record(self, record: Record) -> None:
        """Take a record: its secrets are redacted here, and it is written soon. Never waits, never raises."""
        for watcher in self._watchers:
            watcher(record)
        if len(self._queue) >= self._max_queued_records or self._queued_characters > MAX_QUEUED_CHARACTERS:
            self._count_lost(1, "no room is left for what waits")
            return
        safe, size = _redact_record(record, self._secrets)
        self._queue.append((safe, size))
        self._queued_characters += size
        if (
            len(self._queue) >= MAX_BATCH_RECORDS and not self._error
        ):  # a database that is away is not asked for every record
            self._wake.set()

    def wake(self) -> None:
        """Write now: the database is there again, someone saw."""
        self._wake.set()

    def add_watcher(self, watcher: Callable[[Record], None]) -> None:
        """Have `watcher` told of every record from now on, in the task that made it; it must neither wait nor raise.

        What it is given is not redacted.
        """
        self._watchers.append(watcher)

    @property
    def error(self) -> str:
        """What keeps records from being written now, "" when nothing does."""
        return self._error

    @property
    def status(self) -> RecorderStatus:
        """How recording goes."""
        return RecorderStatus(len(self._queue), self._written, self._lost, self._refused, self._error)

    async def _run_flush_loop(self) -> None:
        pause, failed_attempts = self._flush_interval_seconds, 0
        while not self._is_closing or self._queue:
            if not self._is_closing and (self._error or len(self._queue) < MAX_BATCH_RECORDS):
                await self._wait_for_wake(pause)
            try:
                for _ in range(
                    0, len(self._queue), MAX_BATCH_RECORDS
                ):  # what comes meanwhile waits, or each would be a batch
                    await self._write_batch([record for record, _ in islice(self._queue, MAX_BATCH_RECORDS)])
                pause, failed_attempts, self._error = self._flush_interval_seconds, 0, ""
            except StoreError as error:
                if not self._error:
                    log.warning("Records wait: %s", error)
                self._error = str(error)
                failed_attempts += 1
                pause = get_backoff_seconds(failed_attempts, self._flush_interval_seconds * 2, MAX_RETRY_DELAY_SECONDS)
                await asyncio.sleep(min(pause, 0.2) if self._is_closing else 0)

    async def _wait_for_wake(self, seconds: float) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _write_batch(self, batch: list[Record]) -> None:
        """Write a batch and let go of it; one the database will not have is told of and let go of alone."""
        try:
            await self._store_batch(batch)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - one bad record must not hold up the rest
            if len(batch) > 1:
                for record in batch:
                    await self._write_batch([record])
                return
            self._refused += 1
            said = str(error) if isinstance(error, OpposableError) else type(error).__name__
            log.error("A record was refused by the store: %s", said)  # noqa: TRY400 - a trace may hold arguments
        else:
            self._written += len(batch)
        for _ in batch:
            self._queued_characters -= self._queue.popleft()[1]

    async def _store_batch(self, batch: Sequence[Record]) -> None:
        await self._executions.add([record for record in batch if type(record) is Execution])
        await self._runs.add_events([record for record in batch if type(record) is RunEvent])
        await self._runs.save(*[record for record in batch if type(record) is Run])  # told as ended when all is there

    def _count_lost(self, count: int, reason: str) -> None:
        if count and not self._lost:
            log.error("Records are lost: %s", reason)
        self._lost += count


def _redact_record(record: Record, secrets: Collection[str]) -> tuple[Record, int]:
    """The record without secrets, and about how many characters it holds."""
    match record:
        case RunEvent(data=data):
            raw = _to_raw_json(data)
            if secrets or may_hold_secrets(raw):
                record = replace(record, data=redact(data, secrets))
            return record, 500 + len(raw)
        case Execution(arguments=arguments, result=result):
            raw = _to_raw_json(arguments)
            if secrets or may_hold_secrets(raw):
                record = replace(
                    record, arguments=redact(arguments, secrets), result=redact_known_secrets(result, secrets)
                )
            return record, 500 + len(result) + len(raw)
    if secrets:
        record = replace(
            record, task=redact_known_secrets(record.task, secrets), text=redact_known_secrets(record.text, secrets)
        )
    return record, 500 + len(record.task) + len(record.text)


def _to_raw_json(value: Any) -> bytes:
    """The value's JSON, or nearly: what may hold secrets in one is in the other."""
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, RecursionError):  # a number beyond 64 bits, or nested too deeply
        return repr(value).encode("utf-8", "replace")
