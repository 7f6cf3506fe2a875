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

from opposable.domain.errors import OpposableError, StoreError
from opposable.domain.records import Execution, Run, RunEvent
from opposable.safety.redaction import may_hold_secrets, redacted, without

EVERY = 0.5
"""Seconds between writes: what a killed process loses is younger than this and one write."""
BATCH = 500
"""Records written together; as many waiting are written at once."""
ROOM = 20_000
"""Records kept waiting while the database is away."""
ROOM_CHARACTERS = 64_000_000
"""Characters of them, about."""
PATIENCE = 10.0
"""Seconds that closing waits for a database that is away."""
LONGEST_PAUSE = 5.0
"""Seconds between tries while the database is away, at most."""

log = logging.getLogger("opposable.recorder")

Record = Execution | RunEvent | Run


class KeepsExecutions(Protocol):
    """Where executions go."""

    async def add(self, batch: Sequence[Execution]) -> None:
        """Keep them, each once. Raises: `StoreError`."""
        ...


class KeepsRuns(Protocol):
    """Where runs and their events go."""

    async def save(self, *changed: Run) -> None:
        """Keep runs, of each the last. Raises: `StoreError`."""
        ...

    async def add_events(self, events: Sequence[RunEvent]) -> None:
        """Keep them, each once. Raises: `StoreError`."""
        ...


@dataclass(frozen=True, slots=True)
class RecorderState:
    """How recording goes: records waiting, written, lost for want of room or at the close, refused by the database.

    `error` is what keeps it from writing now, "" when nothing does.
    """

    waiting: int
    written: int
    lost: int
    refused: int
    error: str

    @property
    def ok(self) -> bool:
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
        executions: KeepsExecutions,
        runs: KeepsRuns,
        *,
        secrets: Collection[str] = (),
        every: float = EVERY,
        room: int = ROOM,
        patience: float = PATIENCE,
    ) -> None:
        self._executions = executions
        self._runs = runs
        self._secrets = frozenset(secrets)
        self._every = every
        self._room = room
        self._patience = patience
        self._waiting: deque[tuple[Record, int]] = deque()
        self._characters = 0
        self._written = self._lost = self._refused = 0
        self._error = ""
        self._watchers: list[Callable[[Record], None]] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._owner: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._owner = asyncio.create_task(self._work(), name="recorder")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._owner is not None
        self._closing = True
        self._wake.set()
        try:
            async with asyncio.timeout(self._patience):
                await self._owner
        except TimeoutError:
            self._lose(len(self._waiting), "the database was away until the end")

    def record(self, record: Record) -> None:
        """Take a record: its secrets are redacted here, and it is written soon. Never waits, never raises."""
        for watcher in self._watchers:
            watcher(record)
        if len(self._waiting) >= self._room or self._characters > ROOM_CHARACTERS:
            self._lose(1, "no room is left for what waits")
            return
        safe, size = _safe(record, self._secrets)
        self._waiting.append((safe, size))
        self._characters += size
        if len(self._waiting) >= BATCH and not self._error:  # a database that is away is not asked for every record
            self._wake.set()

    def wake(self) -> None:
        """Write now: the database is there again, someone saw."""
        self._wake.set()

    def watch(self, watcher: Callable[[Record], None]) -> None:
        """Have `watcher` told of every record from now on, in the task that made it; it must neither wait nor raise.

        What it is given is not redacted.
        """
        self._watchers.append(watcher)

    @property
    def error(self) -> str:
        """What keeps records from being written now, "" when nothing does."""
        return self._error

    @property
    def state(self) -> RecorderState:
        """How recording goes."""
        return RecorderState(len(self._waiting), self._written, self._lost, self._refused, self._error)

    async def _work(self) -> None:
        pause = self._every
        while not self._closing or self._waiting:
            if not self._closing and (self._error or len(self._waiting) < BATCH):
                await self._sleep(pause)
            try:
                for _ in range(0, len(self._waiting), BATCH):  # what comes meanwhile waits, or each would be a batch
                    await self._write([record for record, _ in islice(self._waiting, BATCH)])
                pause, self._error = self._every, ""
            except StoreError as error:
                if not self._error:
                    log.warning("Records wait: %s", error)
                self._error = str(error)
                pause = min(pause * 2, LONGEST_PAUSE)
                await asyncio.sleep(min(pause, 0.2) if self._closing else 0)

    async def _sleep(self, seconds: float) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _write(self, batch: list[Record]) -> None:
        """Write a batch and let go of it; one the database will not have is told of and let go of alone."""
        try:
            await self._keep(batch)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - one bad record must not hold up the rest
            if len(batch) > 1:
                for record in batch:
                    await self._write([record])
                return
            self._refused += 1
            said = str(error) if isinstance(error, OpposableError) else type(error).__name__
            log.error("A record was refused by the store: %s", said)  # noqa: TRY400 - a trace may hold arguments
        else:
            self._written += len(batch)
        for _ in batch:
            self._characters -= self._waiting.popleft()[1]

    async def _keep(self, batch: Sequence[Record]) -> None:
        await self._executions.add([record for record in batch if type(record) is Execution])
        await self._runs.add_events([record for record in batch if type(record) is RunEvent])
        await self._runs.save(*[record for record in batch if type(record) is Run])  # told as ended when all is there

    def _lose(self, count: int, why: str) -> None:
        if count and not self._lost:
            log.error("Records are lost: %s", why)
        self._lost += count


def _safe(record: Record, secrets: Collection[str]) -> tuple[Record, int]:
    """The record without secrets, and about how many characters it holds."""
    match record:
        case RunEvent(data=data):
            raw = _raw(data)
            if secrets or may_hold_secrets(raw):
                record = replace(record, data=redacted(data, secrets))
            return record, 500 + len(raw)
        case Execution(arguments=arguments, result=result):
            raw = _raw(arguments)
            if secrets or may_hold_secrets(raw):
                record = replace(record, arguments=redacted(arguments, secrets), result=without(result, secrets))
            return record, 500 + len(result) + len(raw)
    if secrets:
        record = replace(record, task=without(record.task, secrets), text=without(record.text, secrets))
    return record, 500 + len(record.task) + len(record.text)


def _raw(value: Any) -> bytes:
    """The value's JSON, or nearly: what may hold secrets in one is in the other."""
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, RecursionError):  # a number beyond 64 bits, or nested too deeply
        return repr(value).encode("utf-8", "replace")
