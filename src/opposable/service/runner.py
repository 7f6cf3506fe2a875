"""Runs of a service: begun, told, recorded, ended; each goes on in a task of its own whoever listens."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, field, replace

from opposable.domain.call_context import CallContext
from opposable.domain.errors import OpposableError
from opposable.domain.events import DataAnswered, Event, ModelReplied, RunFinished, RunStarted, ToolFinished
from opposable.domain.json_forms import event_to_json
from opposable.domain.messages import Message
from opposable.domain.records import (
    Conversation,
    ConversationTurn,
    Run,
    RunEvent,
    RunStatus,
    execution_from_result,
    get_utc_now,
)
from opposable.domain.usage import NO_USAGE, Usage
from opposable.service.approvals import Approver
from opposable.service.event_log import RunEventLog
from opposable.service.heartbeat import Heartbeat
from opposable.service.turn_writer import TurnWriter
from opposable.store.recorder import Recorder
from opposable.store.store import Store

CANCEL_POLL_SECONDS = 0.5
"""Seconds between looks for wishes to cancel, which may come from other processes."""

STORE_POLL_SECONDS = 0.2
"""Seconds between looks at a run of another process."""

MAX_RECORD_DELAY_SECONDS = 0.5
"""Seconds after which a run of another process is surely in the store."""

ENDED_RUN_CACHE_SECONDS = 3.0
"""Seconds an ended run's events are told from memory: the last of them may not be written yet."""

TERMINAL_STATUSES: tuple[RunStatus, ...] = ("finished", "failed", "cancelled")

EventSource = Callable[[CallContext], AsyncGenerator[Event, None]]
"""Begins a run's events in a context: the loop of an agent, or the team that answers questions about data."""

log = logging.getLogger("opposable.service")


@dataclass(slots=True)
class ActiveRun:
    """A run of this process. `task` ends when the run has, and raises nothing; `usage` and `turns` grow as it goes."""

    run: Run
    event_log: RunEventLog
    messages: tuple[Message, ...] = ()
    finished_event: RunFinished | None = None
    data_answer: DataAnswered | None = None
    finished_calls: list[ToolFinished] = field(default_factory=list)
    usage: Usage = NO_USAGE
    turns: int = 0
    error: OpposableError | None = None
    task: "asyncio.Task[None] | None" = None
    pending_approvals: int = 0

    async def wait_until_ended(self) -> Run:
        """The run when it has ended."""
        assert self.task is not None
        await asyncio.wait({self.task})
        return self.run

    def stop(self) -> None:
        """Have the run cancelled, unless its answer is there already."""
        if self.task is not None and self.finished_event is None:
            self.task.cancel()


class Runner:
    """Begins runs and sees them to their end: `async with Runner(...)`.

    `approval_seconds` is how long a person has to decide on a call. Leaving gives the runs that still go on `grace`
    seconds, then ends them. What is in `on_event` is told each event of each run as it passes, what is in `on_end`
    each run that has ended; neither may block or raise.
    """

    def __init__(
        self,
        store: Store,
        recorder: Recorder,
        get_tool_id: Callable[[str], str],
        *,
        approval_seconds: float = 600.0,
        grace_seconds: float = 0.0,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        self.grace_seconds = grace_seconds
        self.on_event: list[Callable[[ActiveRun, Event], None]] = []
        self.on_end: list[Callable[[ActiveRun], None]] = []
        self._store = store
        self._recorder = recorder
        self._get_tool_id = get_tool_id
        self._approval_seconds = approval_seconds
        self._turn_writer = TurnWriter(store.conversations)
        self._heartbeat = heartbeat or Heartbeat(store.workers)
        self._active_runs: dict[str, ActiveRun] = {}
        self._ended_runs: dict[str, ActiveRun] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Runner":
        await self._stack.enter_async_context(self._heartbeat)
        await self._stack.enter_async_context(self._turn_writer)
        looking = asyncio.create_task(self._poll_cancel_requests(), name="cancels")
        self._stack.push_async_callback(_cancel_task, looking)
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            tasks = [going.task for going in self._active_runs.values() if going.task is not None]
            if tasks:
                await asyncio.wait(tasks, timeout=self.grace_seconds)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await self._stack.aclose()

    @property
    def active_count(self) -> int:
        """How many runs of this process go on."""
        return len(self._active_runs)

    async def start(self, run: Run, user_message: Message | None, event_source: EventSource) -> ActiveRun:
        """Begin a run. `asked` is what the user said, kept in the conversation with the answer.

        Raises: `StoreUnavailable` when the store is known to be away; the run is not begun then.
        """
        run = replace(run, worker=self._heartbeat.worker_id)
        if self._recorder.error:
            await self._store.runs.save(run)
            self._recorder.wake()
        else:
            self._recorder.record(run)
        going = ActiveRun(run, RunEventLog(run.run_id, self._record_events))
        self._active_runs[run.run_id] = going
        approver = Approver(
            self._store.approvals, self._create_approval_listener(going), run.owner, self._approval_seconds
        )
        context = CallContext(
            run_id=run.run_id,
            trace_id=run.trace_id,
            agent_id=run.agent_id,
            conversation_id=run.conversation_id,
            approve=approver,
        )
        going.task = asyncio.create_task(
            self._drive(going, user_message, event_source(context)), name=f"run {run.run_id}"
        )
        return going

    def find(self, run_id: str) -> ActiveRun | None:
        """The run, if it goes on in this process or has just ended there."""
        return self._active_runs.get(run_id) or self._ended_runs.get(run_id)

    async def get(self, run_id: str) -> Run | None:
        """A run of any process as it stands. Raises: `StoreUnavailable`."""
        going = self.find(run_id)
        if going is not None:
            return going.run
        waited = 0.0
        while (run := await self._store.runs.get(run_id)) is None and waited < MAX_RECORD_DELAY_SECONDS:
            await asyncio.sleep(STORE_POLL_SECONDS)
            waited += STORE_POLL_SECONDS
        return run

    async def cancel(self, run_id: str) -> bool:
        """Stop a run, here or wherever it goes on. Returns whether it still did. Raises: `StoreUnavailable`."""
        going = self._active_runs.get(run_id)
        if going is None:
            run = await self.get(run_id)
            return (
                run is not None
                and run.status not in TERMINAL_STATUSES
                and await self._store.runs.request_cancel(run_id)
            )
        going.stop()
        return (await going.wait_until_ended()).status == "cancelled"

    async def follow(self, run_id: str, after: int = 0) -> AsyncGenerator[RunEvent, None]:
        """A run's events behind number `after`: those that were, and those to come until it ends.

        Raises: `StoreUnavailable`.
        """
        going = self.find(run_id)
        if going is not None:
            async with aclosing(going.event_log.follow(after)) as events:
                async for event in events:
                    yield event
            return
        ended = False
        while True:
            kept = await self._store.runs.list_events(run_id, after=after)
            for event in kept:
                after = event.sequence
                yield event
            if kept:
                continue
            if ended:
                return
            run = await self.get(run_id)
            ended = run is None or run.status in TERMINAL_STATUSES  # its last events are written before its end is
            if not ended:
                await asyncio.sleep(STORE_POLL_SECONDS)

    async def _drive(
        self, active_run: ActiveRun, user_message: Message | None, events: AsyncGenerator[Event, None]
    ) -> None:
        status: RunStatus = "finished"
        try:
            async with aclosing(events):
                async for event in events:
                    self._handle_event(active_run, event)
            await self._save_turn(active_run, user_message)
        except asyncio.CancelledError:
            status = "cancelled"
            active_run.event_log.append("error", {"kind": "Cancelled", "message": "The run was cancelled."})
        except OpposableError as error:
            status = "failed"
            active_run.error = error
            active_run.event_log.append("error", {"kind": type(error).__name__, "message": str(error)})
        except Exception as error:
            status = "failed"
            active_run.error = OpposableError("Opposable itself failed; the log of the service says how.")
            active_run.event_log.append("error", {"kind": "InternalError", "message": str(active_run.error)})
            log.exception("A run failed by a mistake of ours", exc_info=error)
        self._finish_run(active_run, status)

    def _handle_event(self, active_run: ActiveRun, event: Event) -> None:
        match event:
            case ToolFinished():
                active_run.finished_calls.append(event)
                tool_id = self._get_tool_id(event.call.name)
                ids = _get_run_ids(active_run.run)
                self._recorder.record(execution_from_result(event.result, tool_id, dict(event.call.arguments), **ids))
            case ModelReplied():
                active_run.usage += event.usage
                active_run.turns += 1
            case RunFinished():
                active_run.finished_event = event
                active_run.messages = event.messages
            case DataAnswered():
                active_run.data_answer = event
        for heard in self.on_event:
            heard(active_run, event)
        if type(event) is RunStarted:
            active_run.event_log.append("run_started", _get_run_ids(active_run.run))
        elif (kind_and_data := event_to_json(event)) is not None:
            active_run.event_log.append(*kind_and_data)

    async def _save_turn(self, active_run: ActiveRun, user_message: Message | None) -> None:
        """Put the turn into its conversation, whole: a turn that was cut short leaves nothing behind."""
        run = active_run.run
        if user_message is None or not run.conversation_id or active_run.finished_event is None:
            return
        title = " ".join(run.task.split())[:80]
        conversation = Conversation(run.conversation_id, run.owner, run.agent_id, title)
        await self._turn_writer.write(ConversationTurn(run.run_id, conversation, (user_message, *active_run.messages)))

    def _finish_run(self, active_run: ActiveRun, status: RunStatus) -> None:
        end = active_run.finished_event
        active_run.run = replace(
            active_run.run,
            status=status,
            ended_at=get_utc_now(),
            text="" if end is None else end.text,
            reason="" if end is None else end.reason,
            usage=active_run.usage if end is None else end.usage,
            turns=active_run.turns if end is None else end.turns,
            tool_calls=len(active_run.finished_calls) if end is None else end.tool_calls,
        )
        run_id = active_run.run.run_id
        self._ended_runs[run_id] = self._active_runs.pop(run_id)
        asyncio.get_running_loop().call_later(ENDED_RUN_CACHE_SECONDS, self._evict_run, run_id)
        active_run.event_log.close()
        self._recorder.record(active_run.run)
        for heard in self.on_end:
            heard(active_run)

    def _evict_run(self, run_id: str) -> None:
        """Let an ended run go, once the store has it."""
        if self._recorder.error:
            asyncio.get_running_loop().call_later(ENDED_RUN_CACHE_SECONDS, self._evict_run, run_id)
        else:
            self._ended_runs.pop(run_id, None)

    def _record_events(self, events: Sequence[RunEvent]) -> None:
        for event in events:
            self._recorder.record(event)

    def _create_approval_listener(self, active_run: ActiveRun) -> Callable[[str, dict[str, object]], None]:
        def tell(kind: str, data: dict[str, object]) -> None:
            active_run.pending_approvals += 1 if kind == "approval_needed" else -1
            status: RunStatus = "waiting" if active_run.pending_approvals else "running"
            if status != active_run.run.status:
                active_run.run = replace(active_run.run, status=status)
                self._recorder.record(active_run.run)
            active_run.event_log.append(kind, data)

        return tell

    async def _poll_cancel_requests(self) -> None:
        """Follow the wishes to cancel that other processes leave."""
        while True:
            await asyncio.sleep(CANCEL_POLL_SECONDS)
            if not self._active_runs:
                continue
            with suppress(OpposableError):
                for run_id in await self._store.runs.list_cancel_requested(tuple(self._active_runs)):
                    going = self._active_runs.get(run_id)
                    if going is not None:
                        going.stop()


def _get_run_ids(run: Run) -> dict[str, str]:
    return {
        "run_id": run.run_id,
        "conversation_id": run.conversation_id,
        "trace_id": run.trace_id,
        "agent_id": run.agent_id,
    }


async def _cancel_task(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
