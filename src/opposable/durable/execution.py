"""The execution of one run in a workflow, from its request to its stored result."""

import asyncio
import contextvars
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from dbos import DBOS
from sqlalchemy.exc import SQLAlchemyError

from opposable.agent.history import detect_conversation_language
from opposable.domain.batches import Batch, QueuedRun, RunOutcome
from opposable.domain.call_context import CallContext
from opposable.domain.errors import OpposableError, get_error_kind
from opposable.domain.events import Event, ModelReplied, RunFinished, ToolFinished
from opposable.domain.json_forms import message_from_json
from opposable.domain.messages import Message, user_message
from opposable.domain.records import (
    DURABLE_WORKER,
    Run,
    RunEvent,
    RunStatus,
    execution_from_result,
    get_utc_now,
    turn_from_run,
)
from opposable.domain.specs import AgentSpec
from opposable.domain.usage import NO_USAGE, Usage
from opposable.durable.call_slots import CallSlots
from opposable.durable.calls import CallGuard, RunSuspended
from opposable.durable.run_events import DurableEventLog
from opposable.durable.steps import DurableModel, DurableToolLibrary
from opposable.models.base import ModelOptions
from opposable.models.profile import get_profile
from opposable.service.event_writer import EventWriter, get_run_ids
from opposable.service.run_plan import RunPlan, limits_from_json, options_from_json
from opposable.service.runner import end_run, poll_cancel_requests
from opposable.service.service import Service
from opposable.service.store_retries import retry_while_unavailable
from opposable.service.unfinished_turns import list_executed_messages
from opposable.store.conversations import scope_turn

MAX_TAKEOVERS = 20
"""A run that this number of processes took over without finishing a step fails: it may be what ends them."""
EVENTS_PER_READ = 1000
BATCH_OPTIONS = ModelOptions(stream=False)

SetOwner = Callable[[str], Awaitable[None]]
"""Sets the id of the API key that owns the run of the current task, for which tokens count."""

log = logging.getLogger("opposable.durable")


@dataclass(slots=True)
class _Execution:
    """The state of one execution of a run."""

    run: Run
    queued: QueuedRun
    log: DurableEventLog
    task: "asyncio.Task[Any]"
    usage: Usage = NO_USAGE
    replies: list[Message] = field(default_factory=list)
    calls: int = 0
    finished: RunFinished | None = None
    error: str = ""
    is_cancelled: bool = False
    call_ids: dict[str, int] = field(default_factory=dict)

    def cancel(self) -> None:
        """Cancel the run, unless it has finished."""
        if not self.is_cancelled and self.finished is None:
            self.is_cancelled = True
            self.task.cancel()


class RunExecutor:
    """Executes the runs of one worker.

    Args:
        service: The service with the tools and models.
        slots: Limits the concurrent calls of batches.
        set_owner: Called at the start of each execution.
    """

    def __init__(self, service: Service, slots: CallSlots, set_owner: SetOwner) -> None:
        self._service = service
        self._slots = slots
        self._set_owner = set_owner
        self._store = service.store
        self._executions: dict[str, _Execution] = {}
        self._active_ids: Counter[str] = Counter()

    @property
    def active_ids(self) -> frozenset[str]:
        """The ids of the runs that this worker executes."""
        return frozenset(self._active_ids)

    async def execute(self, run_id: str) -> str:
        """Execute a run, or continue one that another process left. The body of the workflow.

        Returns:
            The status of the run.

        Raises:
            asyncio.CancelledError: The worker stops, the database is away, or the run waits for a person. Another
                execution continues it.
        """
        self._active_ids[run_id] += 1
        try:
            queued = await retry_while_unavailable(lambda: self._store.queued_runs.get(run_id))
            return "unknown" if queued is None else await self._execute_queued(queued)
        except SQLAlchemyError as error:  # from DBOS; the coordinator queues the run again
            log.warning("Run %s lost the database and will be continued: %s", run_id, type(error).__name__)
            raise asyncio.CancelledError from error
        finally:
            self._active_ids[run_id] -= 1
            self._active_ids += Counter()  # drops the id at 0

    async def _execute_queued(self, queued: QueuedRun) -> str:
        execution = self._executions[queued.run_id] = await self._open_execution(queued)
        try:
            status = await self._run_to_end(execution)
            await self._finish(execution, status)
        except RunSuspended as suspended:
            await self._suspend(execution)
            raise asyncio.CancelledError from suspended
        else:
            return status
        finally:
            if self._executions.get(queued.run_id) is execution:
                del self._executions[queued.run_id]

    def stop(self) -> None:
        """Leave the active runs to other workers."""
        for execution in tuple(self._executions.values()):
            execution.task.cancel()

    async def poll_cancel_requests(self) -> None:
        """Cancel the runs of this worker whose cancellation is requested, until cancelled itself."""
        await poll_cancel_requests(self._store.runs, self._executions, _Execution.cancel)

    async def _open_execution(self, queued: QueuedRun) -> _Execution:
        run_id = queued.run_id
        stored = await retry_while_unavailable(lambda: self._store.runs.get(run_id))
        run = replace(stored or self._create_run(queued), status="running", worker=DURABLE_WORKER)
        events = await retry_while_unavailable(lambda: self._load_events(run_id))
        if queued.status == "waiting":
            await retry_while_unavailable(lambda: self._store.queued_runs.set_status([run_id], "submitted"))
        self._service.recorder.record(run)
        task = asyncio.current_task()
        assert task is not None
        event_log = DurableEventLog(run_id, self._service.recorder, events)
        is_batch_cancelled = queued.batch is not None and queued.batch.status == "cancelled"
        is_cancelled = run.cancel_requested or is_batch_cancelled
        return _Execution(run, queued, event_log, task, is_cancelled=is_cancelled)

    async def _run_to_end(self, execution: _Execution) -> RunStatus:
        try:
            if not execution.is_cancelled:
                await self._run_agent(execution)
            status: RunStatus = "cancelled" if execution.finished is None else "finished"
        except asyncio.CancelledError:
            if not execution.is_cancelled:
                raise
            execution.task.uncancel()
            status = "cancelled"
        except SQLAlchemyError:
            raise
        except OpposableError as error:
            status = "failed"
            execution.error = str(error)
            execution.log.append("error", {"kind": get_error_kind(error), "message": execution.error})
        except Exception as error:
            status = "failed"
            execution.error = "Internal error. The log of the worker has the details."
            execution.log.append("error", {"kind": "internal_error", "message": execution.error})
            log.exception("Run %s failed with an internal error.", execution.run.run_id, exc_info=error)
        if status == "cancelled":
            execution.error = "The run was cancelled."
            execution.log.append("error", {"kind": "cancelled", "message": execution.error})
        return status

    async def _run_agent(self, execution: _Execution) -> None:
        """Run the agent and record its events.

        Raises:
            OpposableError: The agent cannot run, or the model does not answer.
            RunSuspended: The run waits for a person.
        """
        run = execution.run
        if execution.log.fruitless_takeovers >= MAX_TAKEOVERS:
            raise OpposableError(f"{MAX_TAKEOVERS} workers took over this run and none finished its next step.")
        await retry_while_unavailable(lambda: self._set_owner(run.owner))
        plan = await retry_while_unavailable(lambda: self._plan_run(execution.queued))
        guard = CallGuard(self._store, execution.log.append, run.owner)

        limit_call = partial(self._limit_call, execution.queued.batch, plan.model.name)
        is_assisted = get_profile(plan.model).assisted if plan.is_assisted is None else plan.is_assisted
        plan = replace(
            plan,
            model=DurableModel(plan.model, limit_call),
            library=DurableToolLibrary(plan.library, guard, limit_call),
            # Assistance decides by stored failures, which may change before a replay.
            failure_memory=None if is_assisted else plan.failure_memory,
        )
        context = CallContext(
            run_id=run.run_id,
            trace_id=run.trace_id,
            agent_id=run.agent_id,
            conversation_id=run.conversation_id,
            owner=run.owner,
        )
        writer = EventWriter(
            run,
            execution.log.append,
            holds_text=plan.holds_text,
            includes_data=True,  # for the process that queued the run
            published=execution.log.published_texts,
        )
        async with aclosing(plan.run(context)) as events:
            async for event in events:
                self._handle_event(execution, event, writer)

    async def _plan_run(self, queued: QueuedRun) -> RunPlan:
        request, batch = queued.request, queued.batch
        if batch is not None:
            task = user_message(request["task"])
            return await self._service.plan_run(batch.agent, task, owner=batch.owner, options=BATCH_OPTIONS)
        return await self._service.plan_run(
            AgentSpec.model_validate(request["agent"]),
            message_from_json(request["message"]),
            conversation_id=request["conversation_id"],
            stored_count=request.get("stored_count"),  # none in a request of an earlier version
            owner=request["owner"],
            limits=limits_from_json(request["limits"]),
            history=[message_from_json(message) for message in request["history"]],
            options=options_from_json(request["options"]),
        )

    @asynccontextmanager
    async def _limit_call(self, batch: Batch | None, model_name: str, tool_id: str) -> AsyncIterator[None]:
        """Wait until the limits of the batch allow a request or a call, and count it as active while the block runs."""
        if batch is None:
            yield
            return
        key = f"{batch.batch_id} " + (f"tool {tool_id}" if tool_id else f"model {model_name}")
        rate = batch.tool_rates.get(tool_id) if tool_id else batch.model_rate
        count = batch.tool_concurrency.get(tool_id) if tool_id else batch.model_concurrency
        async with nullcontext() if count is None else self._slots.hold(key, count):
            if rate is not None:
                reserve_slot = self._store.queued_runs.reserve_slot
                await asyncio.sleep(await retry_while_unavailable(lambda: reserve_slot(key, rate)))
            yield

    def _handle_event(self, execution: _Execution, event: Event, writer: EventWriter) -> None:
        event = writer.write(event)
        match event:
            case ToolFinished():
                execution.calls += 1
                self._record_execution(execution, event)
            case ModelReplied():
                execution.usage += event.usage
                execution.replies.append(event.message)
            case RunFinished():
                execution.finished = event

    def _record_execution(self, execution: _Execution, event: ToolFinished) -> None:
        """Record a call under an id that a replay computes again."""
        run, call = execution.run, event.call
        repetition = execution.call_ids[call.id] = execution.call_ids.get(call.id, 0) + 1
        tool_id = self._service.library.get_tool_id(call.name)
        record = execution_from_result(event.result, tool_id, dict(call.arguments), **get_run_ids(run))
        execution_id = f"{run.run_id}-{call.id}-{repetition}"
        self._service.recorder.record(replace(record, execution_id=execution_id))

    async def _suspend(self, execution: _Execution) -> None:
        """Store that a run waits for a person, and take it out of the queue: it costs nothing until it is resumed."""
        run_id = execution.run.run_id
        execution.log.close()
        self._service.recorder.record(replace(execution.run, status="waiting"))
        await self._service.recorder.flush()
        await retry_while_unavailable(lambda: self._store.queued_runs.set_status([run_id], "waiting"))
        # In a context of its own: within the workflow, the cancellation would be recorded as a step of it.
        await asyncio.create_task(DBOS.cancel_workflow_async(run_id), context=contextvars.Context())

    async def _finish(self, execution: _Execution, status: RunStatus) -> None:
        """Store how the run ended. A replay may repeat every part of it."""
        finished, run = execution.finished, execution.run
        if run.conversation_id:
            await self._save_turn(execution)
        counted = replace(run, usage=execution.usage, turns=len(execution.replies), tool_calls=execution.calls)
        ended = end_run(counted, status, finished)
        # First, so that no ended run has a pending approval.
        await retry_while_unavailable(lambda: self._store.approvals.expire_pending(run.run_id, "the run ended"))
        execution.log.close()
        self._service.recorder.record(ended)
        await self._service.recorder.flush()
        outcome = RunOutcome(
            status,  # type: ignore[arg-type]  # an ended run has a status of a queued run
            ended.text,
            ended.tool_calls,
            ended.usage.as_json(),
            execution.error,
            0.0 if finished is None or finished.cost is None else finished.cost,
        )
        await retry_while_unavailable(lambda: self._store.queued_runs.finish(run.run_id, outcome))

    async def _save_turn(self, execution: _Execution) -> None:
        """Store the turn in its conversation; of an unfinished run its calls, or only the conversation if it has none."""
        request, finished = execution.queued.request, execution.finished
        new_messages = [message_from_json(form) for form in (*request["history"], request["message"])]
        if finished is not None:
            answer = finished.messages
        else:
            language = detect_conversation_language(new_messages)
            answer = list_executed_messages(execution.log.events, execution.replies, language)
        turn = turn_from_run(execution.run, (*new_messages, *answer) if answer else ())
        append_turns = self._store.conversations.append_turns
        if await retry_while_unavailable(lambda: append_turns([turn], skip_existing=True)):
            await retry_while_unavailable(lambda: append_turns([scope_turn(turn)], skip_existing=True))

    def _create_run(self, queued: QueuedRun) -> Run:
        """Return the record of a run that has none yet: a task of a batch."""
        assert queued.batch is not None
        return Run(
            run_id=queued.run_id,
            started_at=get_utc_now(),
            agent_id=queued.batch.agent.agent_id,
            owner=queued.batch.owner,
            trace_id=queued.run_id,
            task=queued.request["task"],
            model=self._service.get_model_name(queued.batch.agent.model),
        )

    async def _load_events(self, run_id: str) -> tuple[RunEvent, ...]:
        events: tuple[RunEvent, ...] = ()
        while True:
            after = events[-1].sequence if events else 0
            page = await self._store.runs.list_events(run_id, after=after, limit=EVENTS_PER_READ)
            events += page
            if len(page) < EVENTS_PER_READ:
                return events
