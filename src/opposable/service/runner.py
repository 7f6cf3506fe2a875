"""Runs of a service: begun, told, recorded, ended; each goes on in a task of its own whoever listens."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, field, replace

from opposable.domain.call_context import CallContext
from opposable.domain.errors import OpposableError
from opposable.domain.events import DataAnswered, Event, ModelReplied, RunFinished, RunStarted, ToolFinished
from opposable.domain.messages import Message
from opposable.domain.records import Conversation, Run, RunEvent, RunStatus, Turn, execution_of, now
from opposable.domain.usage import NO_USAGE, Usage
from opposable.service.approvals import Approver
from opposable.service.event_json import arguments_of, told
from opposable.service.event_log import RunLog
from opposable.service.heartbeat import Living
from opposable.service.turn_writer import Turns
from opposable.store.recorder import Recorder
from opposable.store.store import Store

LOOK = 0.5
"""Seconds between looks for wishes to cancel, which may come from other processes."""

POLL = 0.2
"""Seconds between looks at a run of another process."""

LATE = 0.5
"""Seconds after which a run of another process is surely in the store."""

LINGER = 3.0
"""Seconds an ended run's events are told from memory: the last of them may not be written yet."""

ENDED: tuple[RunStatus, ...] = ("finished", "failed", "cancelled")

Begin = Callable[[CallContext], AsyncGenerator[Event, None]]
"""Begins a run's events in a context: the loop of an agent, or the team that answers questions about data."""

log = logging.getLogger("opposable.service")


@dataclass(slots=True)
class Going:
    """A run of this process. `task` ends when the run has, and raises nothing; `usage` and `turns` grow as it goes."""

    run: Run
    log: RunLog
    said: tuple[Message, ...] = ()
    end: RunFinished | None = None
    answer: DataAnswered | None = None
    calls: list[ToolFinished] = field(default_factory=list)
    usage: Usage = NO_USAGE
    turns: int = 0
    error: OpposableError | None = None
    task: "asyncio.Task[None] | None" = None
    asking: int = 0

    async def ended(self) -> Run:
        """The run when it has ended."""
        assert self.task is not None
        await asyncio.wait({self.task})
        return self.run

    def stop(self) -> None:
        """Have the run cancelled, unless its answer is there already."""
        if self.task is not None and self.end is None:
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
        tool_id_of: Callable[[str], str],
        *,
        approval_seconds: float = 600.0,
        grace: float = 0.0,
        living: Living | None = None,
    ) -> None:
        self.grace = grace
        self.on_event: list[Callable[[Going, Event], None]] = []
        self.on_end: list[Callable[[Going], None]] = []
        self._store = store
        self._recorder = recorder
        self._tool_id_of = tool_id_of
        self._approval_seconds = approval_seconds
        self._turns = Turns(store.conversations)
        self._living = living or Living(store.workers)
        self._going: dict[str, Going] = {}
        self._over: dict[str, Going] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Runner":
        await self._stack.enter_async_context(self._living)
        await self._stack.enter_async_context(self._turns)
        looking = asyncio.create_task(self._look(), name="cancels")
        self._stack.push_async_callback(_ended, looking)
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            tasks = [going.task for going in self._going.values() if going.task is not None]
            if tasks:
                await asyncio.wait(tasks, timeout=self.grace)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await self._stack.aclose()

    @property
    def going(self) -> int:
        """How many runs of this process go on."""
        return len(self._going)

    async def start(self, run: Run, asked: Message | None, begin: Begin) -> Going:
        """Begin a run. `asked` is what the user said, kept in the conversation with the answer.

        Raises: `StoreUnavailable` when the store is known to be away; the run is not begun then.
        """
        run = replace(run, worker=self._living.worker)
        if self._recorder.error:
            await self._store.runs.save(run)
            self._recorder.wake()
        else:
            self._recorder.record(run)
        going = Going(run, RunLog(run.run_id, self._keep))
        self._going[run.run_id] = going
        approver = Approver(self._store.approvals, self._waiting(going), run.owner, self._approval_seconds)
        context = CallContext(
            run_id=run.run_id,
            trace_id=run.trace_id,
            agent_id=run.agent_id,
            conversation_id=run.conversation_id,
            approve=approver,
        )
        going.task = asyncio.create_task(self._see_through(going, asked, begin(context)), name=f"run {run.run_id}")
        return going

    def find(self, run_id: str) -> Going | None:
        """The run, if it goes on in this process or has just ended there."""
        return self._going.get(run_id) or self._over.get(run_id)

    async def get(self, run_id: str) -> Run | None:
        """A run of any process as it stands. Raises: `StoreUnavailable`."""
        going = self.find(run_id)
        if going is not None:
            return going.run
        waited = 0.0
        while (run := await self._store.runs.get(run_id)) is None and waited < LATE:
            await asyncio.sleep(POLL)
            waited += POLL
        return run

    async def cancel(self, run_id: str) -> bool:
        """Stop a run, here or wherever it goes on. Returns whether it still did. Raises: `StoreUnavailable`."""
        going = self._going.get(run_id)
        if going is None:
            run = await self.get(run_id)
            return run is not None and run.status not in ENDED and await self._store.runs.request_cancel(run_id)
        going.stop()
        return (await going.ended()).status == "cancelled"

    async def follow(self, run_id: str, after: int = 0) -> AsyncGenerator[RunEvent, None]:
        """A run's events behind number `after`: those that were, and those to come until it ends.

        Raises: `StoreUnavailable`.
        """
        going = self.find(run_id)
        if going is not None:
            async with aclosing(going.log.follow(after)) as events:
                async for event in events:
                    yield event
            return
        ended = False
        while True:
            kept = await self._store.runs.events(run_id, after=after)
            for event in kept:
                after = event.sequence
                yield event
            if kept:
                continue
            if ended:
                return
            run = await self.get(run_id)
            ended = run is None or run.status in ENDED  # its last events are written before its end is
            if not ended:
                await asyncio.sleep(POLL)

    async def _see_through(self, going: Going, asked: Message | None, events: AsyncGenerator[Event, None]) -> None:
        status: RunStatus = "finished"
        try:
            async with aclosing(events):
                async for event in events:
                    self._take(going, event)
            await self._remember(going, asked)
        except asyncio.CancelledError:
            status = "cancelled"
            going.log.tell("error", {"kind": "Cancelled", "message": "The run was cancelled."})
        except OpposableError as error:
            status = "failed"
            going.error = error
            going.log.tell("error", {"kind": type(error).__name__, "message": str(error)})
        except Exception as error:
            status = "failed"
            going.error = OpposableError("Opposable itself failed; the log of the service says how.")
            going.log.tell("error", {"kind": "InternalError", "message": str(going.error)})
            log.exception("A run failed by a mistake of ours", exc_info=error)
        self._close(going, status)

    def _take(self, going: Going, event: Event) -> None:
        match event:
            case ToolFinished():
                going.calls.append(event)
                tool_id = self._tool_id_of(event.call.name)
                ids = _ids(going.run)
                self._recorder.record(execution_of(event.result, tool_id, arguments_of(event.call), **ids))
            case ModelReplied():
                going.usage += event.usage
                going.turns += 1
            case RunFinished():
                going.end = event
                going.said = event.messages
            case DataAnswered():
                going.answer = event
        for heard in self.on_event:
            heard(going, event)
        if type(event) is RunStarted:
            going.log.tell("run_started", _ids(going.run))
        elif (kind_and_data := told(event)) is not None:
            going.log.tell(*kind_and_data)

    async def _remember(self, going: Going, asked: Message | None) -> None:
        """Put the turn into its conversation, whole: a turn that was cut short leaves nothing behind."""
        run = going.run
        if asked is None or not run.conversation_id or going.end is None:
            return
        title = " ".join(run.task.split())[:80]
        conversation = Conversation(run.conversation_id, run.owner, run.agent_id, title)
        await self._turns.keep(Turn(run.run_id, conversation, (asked, *going.said)))

    def _close(self, going: Going, status: RunStatus) -> None:
        end = going.end
        going.run = replace(
            going.run,
            status=status,
            ended_at=now(),
            text="" if end is None else end.text,
            reason="" if end is None else end.reason,
            usage=going.usage if end is None else end.usage,
            turns=going.turns if end is None else end.turns,
            tool_calls=len(going.calls) if end is None else end.tool_calls,
        )
        run_id = going.run.run_id
        self._over[run_id] = self._going.pop(run_id)
        asyncio.get_running_loop().call_later(LINGER, self._forget, run_id)
        going.log.end()
        self._recorder.record(going.run)
        for heard in self.on_end:
            heard(going)

    def _forget(self, run_id: str) -> None:
        """Let an ended run go, once the store has it."""
        if self._recorder.error:
            asyncio.get_running_loop().call_later(LINGER, self._forget, run_id)
        else:
            self._over.pop(run_id, None)

    def _keep(self, events: Sequence[RunEvent]) -> None:
        for event in events:
            self._recorder.record(event)

    def _waiting(self, going: Going) -> Callable[[str, dict[str, object]], None]:
        def tell(kind: str, data: dict[str, object]) -> None:
            going.asking += 1 if kind == "approval_needed" else -1
            status: RunStatus = "waiting" if going.asking else "running"
            if status != going.run.status:
                going.run = replace(going.run, status=status)
                self._recorder.record(going.run)
            going.log.tell(kind, data)

        return tell

    async def _look(self) -> None:
        """Follow the wishes to cancel that other processes leave."""
        while True:
            await asyncio.sleep(LOOK)
            if not self._going:
                continue
            with suppress(OpposableError):
                for run_id in await self._store.runs.to_cancel(tuple(self._going)):
                    going = self._going.get(run_id)
                    if going is not None:
                        going.stop()


def _ids(run: Run) -> dict[str, str]:
    return {
        "run_id": run.run_id,
        "conversation_id": run.conversation_id,
        "trace_id": run.trace_id,
        "agent_id": run.agent_id,
    }


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
