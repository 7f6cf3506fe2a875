"""Runs of a service: begun, told, recorded, ended; each goes on in a task of its own whoever listens."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from uuid import uuid4

import orjson

from opposable.domain.errors import OpposableError
from opposable.domain.events import DataAnswered, Event, RunFinished, ToolFinished
from opposable.domain.messages import Message
from opposable.domain.records import Execution, Run, RunEvent, RunStatus, now
from opposable.service.approving import Approver
from opposable.service.log import RunLog
from opposable.service.told import told
from opposable.store.recorder import Recorder
from opposable.store.store import Store
from opposable.tools.base import CallContext

LOOK = 0.5
"""Seconds between looks for wishes to cancel, which may come from other processes."""

LINGER = 30.0
"""Seconds an ended run's events are told from memory: the last of them may not be written yet."""

Begin = Callable[[CallContext], AsyncGenerator[Event, None]]
"""Begins a run's events in a context: the loop of an agent, or the team that answers questions about data."""


@dataclass(slots=True)
class Going:
    """A run of this process. `task` ends when the run has, and raises nothing."""

    run: Run
    log: RunLog
    said: tuple[Message, ...] = ()
    end: RunFinished | None = None
    answer: DataAnswered | None = None
    calls: list[ToolFinished] = field(default_factory=list)
    error: OpposableError | None = None
    task: "asyncio.Task[None] | None" = None

    async def ended(self) -> Run:
        """The run when it has ended."""
        assert self.task is not None
        await asyncio.wait({self.task})
        return self.run


class Runner:
    """Begins runs and sees them to their end: `async with Runner(...)`.

    `approval_seconds` is how long a person has to decide on a call. Leaving ends the runs that still go on.
    """

    def __init__(
        self,
        store: Store,
        recorder: Recorder,
        tool_id_of: Callable[[str], str],
        *,
        approval_seconds: float = 600.0,
        on_end: Callable[[Run], None] = lambda run: None,
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._tool_id_of = tool_id_of
        self._approval_seconds = approval_seconds
        self._on_end = on_end
        self._going: dict[str, Going] = {}
        self._over: dict[str, Going] = {}
        self._looking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Runner":
        self._looking = asyncio.create_task(self._look(), name="cancels")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._looking is not None
        self._looking.cancel()
        tasks = [going.task for going in self._going.values() if going.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(self._looking, *tasks, return_exceptions=True)

    @property
    def going(self) -> int:
        """How many runs of this process go on."""
        return len(self._going)

    async def start(self, run: Run, asked: Message | None, begin: Begin) -> Going:
        """Begin a run. `asked` is what the user said, kept in the conversation with the answer.

        Raises: `StoreUnavailable` when the run cannot be kept; it is not begun then.
        """
        await self._store.runs.save(run)
        log = RunLog(run.run_id, self._keep)
        going = Going(run, log)
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
        """The run, if it goes on in this process."""
        return self._going.get(run_id)

    async def cancel(self, run_id: str) -> bool:
        """Stop a run, here or wherever it goes on. Returns whether it still did."""
        going = self._going.get(run_id)
        if going is None or going.task is None:
            return await self._store.runs.request_cancel(run_id)
        going.task.cancel()
        await asyncio.wait({going.task})
        return going.run.status == "cancelled"

    async def follow(self, run_id: str, after: int = 0) -> AsyncGenerator[RunEvent, None]:
        """A run's events behind number `after`: those that were, and those to come until it ends."""
        going = self._going.get(run_id) or self._over.get(run_id)
        if going is not None:
            async with aclosing(going.log.follow(after)) as events:
                async for event in events:
                    yield event
            return
        while True:
            kept = await self._store.runs.events(run_id, after=after)
            for event in kept:
                after = event.sequence
                yield event
            if kept:
                continue
            run = await self._store.runs.get(run_id)
            if run is None or run.status not in ("running", "waiting"):
                for event in await self._store.runs.events(run_id, after=after):
                    yield event
                return
            await asyncio.sleep(LOOK)

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
        except Exception as error:  # noqa: BLE001 - a mistake of ours ends this run, not the service
            status = "failed"
            going.error = OpposableError("Opposable itself failed; the log of the service says how.")
            going.log.tell("error", {"kind": "InternalError", "message": str(going.error)})
            _log_mistake(error)
        await self._close(going, status)

    def _take(self, going: Going, event: Event) -> None:
        if type(event) is ToolFinished:
            going.calls.append(event)
            self._recorder.record(self._execution(going.run, event))
        elif type(event) is RunFinished:
            going.end = event
            going.said = event.messages
        elif type(event) is DataAnswered:
            going.answer = event
        if (kind_and_data := told(event)) is not None:
            going.log.tell(*kind_and_data)

    async def _remember(self, going: Going, asked: Message | None) -> None:
        """Put the turn into its conversation, whole: a turn that was cut short leaves nothing behind."""
        if asked is not None and going.run.conversation_id and going.end is not None:
            await self._store.conversations.append(going.run.conversation_id, (asked, *going.said))

    async def _close(self, going: Going, status: RunStatus) -> None:
        end = going.end
        going.run = replace(going.run, status=status, ended_at=now())
        if end is not None:
            going.run = replace(
                going.run,
                text=end.text,
                reason=end.reason,
                usage=end.usage,
                turns=end.turns,
                tool_calls=end.tool_calls,
            )
        run_id = going.run.run_id
        self._over[run_id] = self._going.pop(run_id)
        asyncio.get_running_loop().call_later(LINGER, self._over.pop, run_id, None)
        going.log.end()
        self._on_end(going.run)
        with contextlib.suppress(OpposableError):  # the events tell it too, once the store is back
            await asyncio.shield(self._store.runs.save(going.run))

    def _keep(self, events: Sequence[RunEvent]) -> None:
        for event in events:
            self._recorder.record(event)

    def _waiting(self, going: Going) -> Callable[[str, dict[str, object]], None]:
        def tell(kind: str, data: dict[str, object]) -> None:
            going.log.tell(kind, data)

        return tell

    def _execution(self, run: Run, event: ToolFinished) -> Execution:
        result = event.result
        arguments = orjson.loads(event.call.arguments or "{}")
        return Execution(
            execution_id=uuid4().hex,
            run_id=run.run_id,
            call_id=event.call.id,
            tool_id=self._tool_id_of(event.call.name),
            name=event.call.name,
            arguments=arguments if isinstance(arguments, dict) else {},
            result=result.content,
            at=now(),
            seconds=result.seconds,
            failure=result.failure,
            attempts=result.attempts,
            cached=result.cached,
            repairs=result.repairs,
            handle=result.handle,
            trace_id=run.trace_id,
            agent_id=run.agent_id,
            conversation_id=run.conversation_id,
        )

    async def _look(self) -> None:
        """Follow the wishes to cancel that other processes leave."""
        while True:
            await asyncio.sleep(LOOK)
            if not self._going:
                continue
            with contextlib.suppress(OpposableError):
                for run_id in await self._store.runs.to_cancel(tuple(self._going)):
                    going = self._going.get(run_id)
                    if going is not None and going.task is not None:
                        going.task.cancel()


def _log_mistake(error: Exception) -> None:
    import logging

    logging.getLogger("opposable.service").error("A run failed by a mistake of ours", exc_info=error)
