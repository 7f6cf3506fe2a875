"""Execution of runs in background tasks, with their events, records and approvals."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from opposable.agent.history import detect_conversation_language
from opposable.domain.call_context import CallContext
from opposable.domain.errors import OpposableError, StoreConflict, get_error_kind
from opposable.domain.events import DataAnswered, Event, ModelReplied, RunFinished, ToolFinished, ToolStarted
from opposable.domain.language import detect_language
from opposable.domain.messages import Message
from opposable.domain.records import (
    ENDED_STATUSES,
    Run,
    RunEvent,
    RunStatus,
    execution_from_result,
    get_utc_now,
    turn_from_run,
)
from opposable.domain.tools import ToolCall
from opposable.domain.usage import NO_USAGE, Usage
from opposable.service.approvals import Approver
from opposable.service.background import run_in_background
from opposable.service.event_log import RunEventLog
from opposable.service.event_writer import EventWriter, get_run_ids
from opposable.service.heartbeat import Heartbeat
from opposable.service.store_retries import retry_while_unavailable
from opposable.service.turn_writer import TurnWriter
from opposable.service.unfinished_turns import list_executed_messages
from opposable.store.recorder import Recorder
from opposable.store.runs import RunRepository
from opposable.store.store import Store
from opposable.tools.invocation import create_interrupted_result
from opposable.tools.library import ToolLibrary

CANCEL_POLL_SECONDS = 0.5
"""Seconds between reads of the cancellation requests that other processes store."""

STORE_POLL_SECONDS = 0.2
"""Seconds between reads of a run of another process."""

MAX_OUTAGE_SECONDS = 60.0
"""Seconds without the store after which following a run of another process fails; the run itself goes on."""

MAX_RECORD_DELAY_SECONDS = 0.5
"""Seconds within which a new run of another process reaches the store."""

ENDED_RUN_CACHE_SECONDS = 3.0
"""Seconds for which the events of an ended run are read from memory: the last ones may not be stored yet."""

MAX_CONVERSATION_WAIT_SECONDS = 2.0
"""Seconds for which the end of an unfinished run waits until its conversation is stored."""

MAX_CANCEL_WAIT_SECONDS = 15.0
"""Seconds in which a cancelled run of another process ends; a dead process is detected within 12 s."""

ACTIVE_STATUSES: tuple[RunStatus, ...] = ("queued", "running", "waiting")

EventSource = Callable[[CallContext], AsyncGenerator[Event, None]]
"""Starts a run and yields its events: the loop of an agent, or the team that answers questions about data."""

T = TypeVar("T")

log = logging.getLogger("opposable.service")


@dataclass(slots=True)
class ActiveRun:
    """A run of this process.

    Attributes:
        run: The current record of the run.
        event_log: Its events.
        finished_event: The last event of an agent's run, once it has finished.
        data_answer: The answer to a question about data.
        unfinished_calls: The calls that have no result yet, with their start (`time.perf_counter`), by call id.
        finished_calls: The calls so far, with their results.
        usage: The tokens used so far.
        replies: The model replies so far.
        error: Why the run failed.
        task: Ends with the run and never raises; None for a run of a worker process, which outlives its caller.
        collect: Waits for the end of a run of a worker process, and reads what its caller needs.
        waiting_call_ids: The ids of the calls that wait for a person.
    """

    run: Run
    event_log: RunEventLog
    finished_event: RunFinished | None = None
    data_answer: DataAnswered | None = None
    unfinished_calls: dict[str, tuple[ToolCall, float]] = field(default_factory=dict)
    finished_calls: list[ToolFinished] = field(default_factory=list)
    usage: Usage = NO_USAGE
    replies: list[Message] = field(default_factory=list)
    error: OpposableError | None = None
    task: "asyncio.Task[None] | None" = None
    waiting_call_ids: set[str] = field(default_factory=set)
    collect: "Callable[[ActiveRun], Awaitable[None]] | None" = None

    async def wait_until_ended(self) -> Run:
        """Wait for the end of the run and return its record."""
        if self.collect is not None:
            await self.collect(self)
        else:
            assert self.task is not None
            await asyncio.wait({self.task})
        return self.run

    def stop(self) -> None:
        """Cancel the run, unless it has finished or a worker process executes it."""
        if self.task is not None and self.finished_event is None:
            self.task.cancel()


class Runner:
    """An async context manager that executes runs and records them.

    Args:
        store: Where runs, events, approvals and conversations are stored.
        recorder: Writes runs, calls and events in the background.
        library: Has the tools that runs call.
        approval_seconds: How long a call waits for a person.

    Attributes:
        grace_seconds: How long the exit waits for active runs before it cancels them.
        on_event: Callbacks for every event of every run. They must not block or raise.
        on_end: Callbacks for every run that has ended. They must not block or raise.
    """

    def __init__(
        self, store: Store, recorder: Recorder, library: ToolLibrary, *, approval_seconds: float = 600.0
    ) -> None:
        self.grace_seconds = 0.0
        self.on_event: list[Callable[[ActiveRun, Event], None]] = []
        self.on_end: list[Callable[[ActiveRun], None]] = []
        self._store = store
        self._recorder = recorder
        self._library = library
        self._approval_seconds = approval_seconds
        self._turn_writer = TurnWriter(store.conversations)
        self._heartbeat = Heartbeat(store.workers)
        self._active_runs: dict[str, ActiveRun] = {}
        self._ended_runs: dict[str, ActiveRun] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Runner":
        await self._stack.enter_async_context(self._heartbeat.run())
        await self._stack.enter_async_context(self._turn_writer.run())
        polling = poll_cancel_requests(self._store.runs, self._active_runs, ActiveRun.stop)
        await self._stack.enter_async_context(run_in_background(polling, "cancellation requests"))
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            tasks = [active_run.task for active_run in self._active_runs.values() if active_run.task is not None]
            if tasks:
                await asyncio.wait(tasks, timeout=self.grace_seconds)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await self._stack.aclose()

    @property
    def active_count(self) -> int:
        """The number of active runs of this process."""
        return len(self._active_runs)

    async def start(
        self, run: Run, new_messages: Sequence[Message], event_source: EventSource, *, holds_text: bool = True
    ) -> ActiveRun:
        """Start a run.

        Args:
            run: The record of the run.
            new_messages: Stored in the conversation together with the answer, () to store nothing.
            event_source: Produces the events of the run.
            holds_text: Whether the beginning of each reply is held until it is known to be no commentary.

        Raises:
            StoreUnavailable: If the store is known to be unavailable; the run is not started.
        """
        run = replace(run, worker=self._heartbeat.worker_id)
        if self._recorder.error:
            await self._store.runs.save(run)
            self._recorder.wake()
        else:
            self._recorder.record(run)
        active_run = ActiveRun(run, RunEventLog(run.run_id, self._recorder.record))
        self._active_runs[run.run_id] = active_run
        approver = Approver(
            self._store.approvals, self._create_approval_listener(active_run), run.owner, self._approval_seconds
        )
        context = CallContext(
            run_id=run.run_id,
            trace_id=run.trace_id,
            agent_id=run.agent_id,
            conversation_id=run.conversation_id,
            owner=run.owner,
            approve=approver,
        )
        active_run.task = asyncio.create_task(
            self._drive(active_run, new_messages, event_source(context), holds_text=holds_text),
            name=f"run {run.run_id}",
        )
        return active_run

    def find(self, run_id: str) -> ActiveRun | None:
        """Return the run if it is active in this process, or ended here a few seconds ago."""
        return self._active_runs.get(run_id) or self._ended_runs.get(run_id)

    async def get(self, run_id: str) -> Run | None:
        """Return the current record of a run of any process, or None.

        Raises:
            StoreUnavailable: If the store cannot be read.
        """
        active_run = self.find(run_id)
        if active_run is not None:
            return active_run.run
        waited_seconds = 0.0
        while (run := await self._store.runs.get(run_id)) is None and waited_seconds < MAX_RECORD_DELAY_SECONDS:
            await asyncio.sleep(STORE_POLL_SECONDS)
            waited_seconds += STORE_POLL_SECONDS
        return run

    async def cancel(self, run_id: str) -> bool:
        """Cancel a run of any process. Return False if it has already ended.

        Raises:
            StoreUnavailable: If the run is of another process and the request cannot be stored.
        """
        active_run = self._active_runs.get(run_id)
        if active_run is not None:
            active_run.stop()
            return (await active_run.wait_until_ended()).status == "cancelled"
        run = await self.get(run_id)
        if run is None or run.status in ENDED_STATUSES:
            return False
        return await self._store.runs.request_cancel(run_id)

    def has_active_run(self, conversation_id: str, owner: str) -> bool:
        """Return whether this process runs something in a conversation of the owner."""
        return bool(self._list_active_ids(conversation_id, owner))

    def _list_active_ids(self, conversation_id: str, owner: str) -> set[str]:
        runs = (active_run.run for active_run in self._active_runs.values())
        return {run.run_id for run in runs if (run.conversation_id, run.owner) == (conversation_id, owner)}

    async def cancel_conversation(self, conversation_id: str, owner: str) -> None:
        """Cancel the active runs of a conversation in every process, and wait until they have ended.

        Args:
            conversation_id: The id under which the conversation is stored, or would be.
            owner: The id of the API key that owns the runs.

        Raises:
            StoreUnavailable: If the runs of other processes cannot be read.
            StoreConflict: If a run of another process does not end in time.
        """
        run_ids = self._list_active_ids(conversation_id, owner)
        for status in ACTIVE_STATUSES:
            page = await self._store.runs.list(owner=owner, conversation_id=conversation_id, status=status, limit=1000)
            run_ids |= {run.run_id for run in page.items}
        for run_id in run_ids:
            await self.cancel(run_id)
        try:
            async with asyncio.timeout(MAX_CANCEL_WAIT_SECONDS):
                while run_ids:
                    runs = [await self.get(run_id) for run_id in run_ids]
                    run_ids = {run.run_id for run in runs if run is not None and run.status not in ENDED_STATUSES}
                    if run_ids:
                        await asyncio.sleep(STORE_POLL_SECONDS)
        except TimeoutError:
            raise StoreConflict(
                "A run of the conversation has not ended yet. Its cancellation is requested. Try again later."
            ) from None

    async def follow(self, run_id: str, after: int = 0) -> AsyncGenerator[RunEvent, None]:
        """Yield the events of a run after number `after`, past and future, until it ends.

        Raises:
            StoreUnavailable: If the run is of another process and the store cannot be read for `MAX_OUTAGE_SECONDS`.
        """
        active_run = self.find(run_id)
        if active_run is not None:
            async with aclosing(active_run.event_log.follow(after)) as events:
                async for event in events:
                    yield event
            return
        is_ended = False
        while True:
            stored_events = await retry_while_unavailable(
                partial(self._store.runs.list_events, run_id, after=after), MAX_OUTAGE_SECONDS
            )
            for event in stored_events:
                after = event.sequence
                yield event
            if stored_events:
                continue
            if is_ended:
                return
            run = await retry_while_unavailable(partial(self.get, run_id), MAX_OUTAGE_SECONDS)
            is_ended = run is None or run.status in ENDED_STATUSES  # written after the last event
            if not is_ended:
                await asyncio.sleep(STORE_POLL_SECONDS)

    async def _drive(
        self,
        active_run: ActiveRun,
        new_messages: Sequence[Message],
        events: AsyncGenerator[Event, None],
        *,
        holds_text: bool,
    ) -> None:
        status: RunStatus = "finished"
        writer = EventWriter(active_run.run, active_run.event_log.append, holds_text=holds_text)
        try:
            try:
                async with aclosing(events):
                    async for event in events:
                        self._handle_event(active_run, event, writer)
            finally:
                self._cancel_unfinished_calls(active_run, writer)
            await self._save_turn(active_run, new_messages)
        except asyncio.CancelledError:
            status = "cancelled"
            active_run.event_log.append("error", {"kind": "cancelled", "message": "The run was cancelled."})
        except OpposableError as error:
            status = "failed"
            active_run.error = error
            active_run.event_log.append("error", {"kind": get_error_kind(error), "message": str(error)})
        except Exception as error:
            status = "failed"
            active_run.error = OpposableError("Internal error. The log of the service has the details.")
            active_run.event_log.append("error", {"kind": "internal_error", "message": str(active_run.error)})
            log.exception("Run %s failed with an internal error.", active_run.run.run_id, exc_info=error)
        if active_run.finished_event is None:
            await self._save_unfinished_turn(active_run, new_messages)
        self._finish_run(active_run, status)

    def _handle_event(self, active_run: ActiveRun, event: Event, writer: EventWriter) -> None:
        event = writer.write(event)
        match event:
            case ToolStarted(call):
                active_run.unfinished_calls[call.id] = (call, time.perf_counter())
            case ToolFinished():
                active_run.unfinished_calls.pop(event.call.id, None)
                active_run.finished_calls.append(event)
                tool_id = self._library.get_tool_id(event.call.name)
                ids = get_run_ids(active_run.run)
                self._recorder.record(execution_from_result(event.result, tool_id, dict(event.call.arguments), **ids))
            case ModelReplied():
                active_run.usage += event.usage
                active_run.replies.append(event.message)
            case RunFinished():
                active_run.finished_event = event
            case DataAnswered():
                active_run.data_answer = event
        for callback in self.on_event:
            callback(active_run, event)

    def _cancel_unfinished_calls(self, active_run: ActiveRun, writer: EventWriter) -> None:
        """Record the calls that an interrupted run leaves without a result as cancelled."""
        language = detect_language(active_run.run.task)
        for call, started_at in tuple(active_run.unfinished_calls.values()):
            traits, seconds = self._library.get_traits(call.name), time.perf_counter() - started_at
            has_started = call.id not in active_run.waiting_call_ids
            result = create_interrupted_result(call, traits, language, has_started=has_started, seconds=seconds)
            self._handle_event(active_run, ToolFinished(call, result), writer)

    async def _save_turn(self, active_run: ActiveRun, new_messages: Sequence[Message]) -> None:
        """Store the turn of a finished run in its conversation."""
        finished = active_run.finished_event
        if not new_messages or not active_run.run.conversation_id or finished is None:
            return
        await self._turn_writer.write(turn_from_run(active_run.run, (*new_messages, *finished.messages)))

    async def _save_unfinished_turn(self, active_run: ActiveRun, new_messages: Sequence[Message]) -> None:
        """Store the turn of an unfinished run: its calls, which must not be made again unknowingly. Never raises.

        Without calls, only the conversation is stored, so that it is listed.
        """
        if not new_messages or not active_run.run.conversation_id:
            return
        language = detect_conversation_language(new_messages)
        executed = list_executed_messages(active_run.event_log.events, active_run.replies, language)
        turn = turn_from_run(active_run.run, (*new_messages, *executed) if executed else ())
        with suppress(OpposableError, TimeoutError, asyncio.CancelledError):  # the write continues if this wait ends
            async with asyncio.timeout(MAX_CONVERSATION_WAIT_SECONDS):
                await self._turn_writer.write(turn)

    def _finish_run(self, active_run: ActiveRun, status: RunStatus) -> None:
        counted = replace(
            active_run.run,
            usage=active_run.usage,
            turns=len(active_run.replies),
            tool_calls=len(active_run.finished_calls),
        )
        active_run.run = end_run(counted, status, active_run.finished_event)
        run_id = active_run.run.run_id
        self._ended_runs[run_id] = self._active_runs.pop(run_id)
        asyncio.get_running_loop().call_later(ENDED_RUN_CACHE_SECONDS, self._evict_run, run_id)
        active_run.event_log.close()
        self._recorder.record(active_run.run)
        for callback in self.on_end:
            callback(active_run)

    def _evict_run(self, run_id: str) -> None:
        """Remove an ended run from memory once the store has it."""
        if self._recorder.error:
            asyncio.get_running_loop().call_later(ENDED_RUN_CACHE_SECONDS, self._evict_run, run_id)
        else:
            self._ended_runs.pop(run_id, None)

    def _create_approval_listener(self, active_run: ActiveRun) -> Callable[[str, dict[str, Any]], None]:
        def on_approval_event(kind: str, data: dict[str, Any]) -> None:
            if kind == "approval_needed":
                active_run.waiting_call_ids.add(data["call_id"])
            else:
                active_run.waiting_call_ids.discard(data["call_id"])
            status: RunStatus = "waiting" if active_run.waiting_call_ids else "running"
            if status != active_run.run.status:
                active_run.run = replace(active_run.run, status=status)
                self._recorder.record(active_run.run)
            active_run.event_log.append(kind, data)

        return on_approval_event


async def poll_cancel_requests(runs: RunRepository, active: Mapping[str, T], cancel: Callable[[T], None]) -> None:
    """Cancel the active runs, by id, whose cancellation another process requested, until cancelled itself."""
    while True:
        await asyncio.sleep(CANCEL_POLL_SECONDS)
        if not active:
            continue
        with suppress(OpposableError):
            for run_id in await runs.list_cancel_requested(tuple(active)):
                if run_id in active:
                    cancel(active[run_id])


def end_run(run: Run, status: RunStatus, finished: RunFinished | None) -> Run:
    """Return the record of a run that has ended now; an unfinished one has no text and keeps its counts."""
    ended = replace(run, status=status, ended_at=get_utc_now(), text="", reason="")
    if finished is None:
        return ended
    return replace(
        ended,
        text=finished.text,
        reason=finished.reason,
        usage=finished.usage,
        turns=finished.turns,
        tool_calls=finished.tool_calls,
    )
