"""Background recorder that writes executions, runs and events to the store in batches."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from types import TracebackType
from typing import Any, Protocol, Self

from opposable.domain.backoff import get_backoff_seconds
from opposable.domain.errors import OpposableError, StoreError
from opposable.domain.json_text import dump_json
from opposable.domain.records import Execution, Run, RunEvent
from opposable.safety.redaction import may_hold_secrets, redact, redact_known_secrets

FLUSH_INTERVAL_SECONDS = 0.5
"""Seconds between writes. A killed process loses at most the records of this time and of one write."""
MAX_BATCH_RECORDS = 500
"""Records written together. This many queued records are written at once."""
MAX_QUEUED_RECORDS = 20_000
"""Records queued while the database is unavailable."""
MAX_QUEUED_CHARACTERS = 64_000_000
"""Approximate characters of the queued records."""
CLOSE_TIMEOUT_SECONDS = 10.0
"""Seconds that closing waits for an unavailable database."""
FLUSH_POLL_SECONDS = 0.02
"""Seconds between looks at the progress of a flush."""
MAX_RETRY_DELAY_SECONDS = 5.0
"""Maximum seconds between attempts while the database is unavailable."""

log = logging.getLogger("opposable.recorder")

Record = Execution | RunEvent | Run


class ExecutionSink(Protocol):
    """A destination for executions."""

    async def add(self, new_executions: Sequence[Execution]) -> None:
        """Store executions, each id once.

        Raises:
            StoreError: They cannot be stored now.
        """
        ...


class RunSink(Protocol):
    """A destination for runs and their events."""

    async def save(self, *changed_runs: Run) -> None:
        """Store the last version of each run.

        Raises:
            StoreError: They cannot be stored now.
        """
        ...

    async def add_events(self, new_events: Sequence[RunEvent]) -> None:
        """Store events, each once.

        Raises:
            StoreError: They cannot be stored now.
        """
        ...


@dataclass(frozen=True, slots=True)
class RecorderStatus:
    """The state of a recorder, as numbers of records.

    Attributes:
        waiting: Queued records.
        written: Stored records.
        lost: Records dropped because the queue was full, or because the database was unavailable at the end.
        refused: Records that the store rejected.
        error: Why records cannot be written now, "" otherwise.
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
    """Queue of records that one task writes: `async with Recorder(...) as recorder`.

    Leaving the context writes all queued records. A killed process loses at most the last second. While the database
    is unavailable, records stay in the queue. When the queue is full, new records are dropped and counted.

    Args:
        executions: Where executions are stored.
        runs: Where runs and events are stored.
        secrets: Known secrets. They are redacted, in addition to text that looks like a secret.
        flush_interval_seconds: Seconds between writes.
        max_queued_records: The size of the queue.
        close_timeout_seconds: How long leaving the context waits for an unavailable database.
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
        self._recorded = self._written = self._lost = self._refused = 0
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
            self._count_lost(len(self._queue), "the database was unavailable until the end")

    def record(self, record: Record) -> None:
        """Queue a record without its secrets. Never waits, never raises."""
        for watcher in self._watchers:
            watcher(record)
        self._recorded += 1
        if len(self._queue) >= self._max_queued_records or self._queued_characters > MAX_QUEUED_CHARACTERS:
            self._count_lost(1, "the queue is full")
            return
        redacted_record, size = _redact_record(record, self._secrets)
        self._queue.append((redacted_record, size))
        self._queued_characters += size
        # while the database is unavailable, do not retry for every record
        if len(self._queue) >= MAX_BATCH_RECORDS and not self._error:
            self._wake.set()

    def wake(self) -> None:
        """Write now, because the database is known to answer again."""
        self._wake.set()

    async def flush(self) -> None:
        """Return when every record so far is written, or rejected. Waits while the database is unavailable."""
        target = self._recorded
        while self._written + self._refused + self._lost < target:
            self._wake.set()
            await asyncio.sleep(FLUSH_POLL_SECONDS)

    def add_watcher(self, watcher: Callable[[Record], None]) -> None:
        """Call `watcher` with every new record, before redaction, in the task that recorded it.

        The watcher must neither wait nor raise.
        """
        self._watchers.append(watcher)

    @property
    def error(self) -> str:
        """Why records cannot be written now, "" otherwise."""
        return self._error

    @property
    def status(self) -> RecorderStatus:
        """The current numbers of records."""
        return RecorderStatus(len(self._queue), self._written, self._lost, self._refused, self._error)

    async def _run_flush_loop(self) -> None:
        delay, failed_attempts = self._flush_interval_seconds, 0
        while not self._is_closing or self._queue:
            if not self._is_closing and (self._error or len(self._queue) < MAX_BATCH_RECORDS):
                await self._wait_for_wake(delay)
            try:
                # records queued meanwhile wait for the next round, or each would be a batch of its own
                for _ in range(0, len(self._queue), MAX_BATCH_RECORDS):
                    await self._write_batch([record for record, _ in islice(self._queue, MAX_BATCH_RECORDS)])
                delay, failed_attempts, self._error = self._flush_interval_seconds, 0, ""
            except StoreError as error:
                if not self._error:
                    log.warning("The store is unavailable, records are queued: %s", error)
                self._error = str(error)
                failed_attempts += 1
                delay = get_backoff_seconds(failed_attempts, self._flush_interval_seconds * 2, MAX_RETRY_DELAY_SECONDS)
                await asyncio.sleep(min(delay, 0.2) if self._is_closing else 0)

    async def _wait_for_wake(self, seconds: float) -> None:
        self._wake.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _write_batch(self, batch: list[Record]) -> None:
        """Write a batch and remove it from the queue. A record that the store rejects is logged and dropped alone."""
        try:
            await self._store_batch(batch)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - one bad record must not block the others
            if len(batch) > 1:
                for record in batch:
                    await self._write_batch([record])
                return
            self._refused += 1
            reason = str(error) if isinstance(error, OpposableError) else type(error).__name__
            log.error("The store rejected a record: %s", reason)  # noqa: TRY400 - a traceback may hold arguments
        else:
            self._written += len(batch)
        for _ in batch:
            self._queued_characters -= self._queue.popleft()[1]

    async def _store_batch(self, batch: Sequence[Record]) -> None:
        await self._executions.add([record for record in batch if type(record) is Execution])
        await self._runs.add_events([record for record in batch if type(record) is RunEvent])
        await self._runs.save(
            *[record for record in batch if type(record) is Run]
        )  # last: an ended run has all its events

    def _count_lost(self, count: int, reason: str) -> None:
        if count and not self._lost:
            log.error("The recorder is losing records: %s", reason)
        self._lost += count


def _redact_record(record: Record, secrets: Collection[str]) -> tuple[Record, int]:
    """Return the record without secrets, and its approximate number of characters."""
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
    """Serialize a value in order to search it for secrets. Values beyond JSON become their `repr`."""
    try:
        return dump_json(value, default=str)
    except (TypeError, ValueError):
        return repr(value).encode("utf-8", "replace")
