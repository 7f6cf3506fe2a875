"""Runs that worker processes execute, seen from the process that queued them."""

from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

from opposable.domain.batches import QueuedRun
from opposable.domain.errors import OpposableError, error_from_kind
from opposable.domain.events import ToolFinished
from opposable.domain.records import DURABLE_WORKER, Run, RunEvent
from opposable.domain.tools import ToolCall, ToolResult
from opposable.service.event_log import RunEventLog
from opposable.service.runner import MAX_OUTAGE_SECONDS, ActiveRun, Runner
from opposable.service.store_retries import retry_while_unavailable
from opposable.store.store import Store


class RemoteRuns:
    """Queues runs for worker processes and follows them."""

    def __init__(self, store: Store, runner: Runner) -> None:
        self._store = store
        self._runner = runner

    async def start(self, run: Run, request: dict[str, Any]) -> ActiveRun:
        """Queue a run. It outlives its caller: `stop` does not cancel it.

        Args:
            run: The record of the run.
            request: The arguments of the run, for the worker.

        Raises:
            StoreUnavailable: If the run cannot be queued.
        """
        run = replace(run, status="queued", worker=DURABLE_WORKER)
        await self._store.queued_runs.add(QueuedRun(run.run_id, request), run)
        return ActiveRun(run, RunEventLog(run.run_id, lambda event: None), collect=self._collect)

    async def _collect(self, remote_run: ActiveRun) -> None:
        """Wait for the end of a run, and collect what its caller reads."""
        run_id = remote_run.run.run_id
        calls: dict[str, ToolCall] = {}
        try:
            async with aclosing(self._runner.follow(run_id)) as events:
                async for event in events:
                    _collect_event(remote_run, event, calls)
            ended_run = await retry_while_unavailable(partial(self._store.runs.get, run_id), MAX_OUTAGE_SECONDS)
            remote_run.run = ended_run or remote_run.run
        except OpposableError as error:
            remote_run.error = error


def _collect_event(remote_run: ActiveRun, event: RunEvent, calls: dict[str, ToolCall]) -> None:
    data = event.data
    match event.kind:
        case "tool_started":
            calls[data["call_id"]] = ToolCall(data["call_id"], data["name"], data["arguments"])
        case "tool_finished":
            call = calls.get(data["call_id"]) or ToolCall(data["call_id"], data["name"], {})
            result = ToolResult(
                call.id,
                call.name,
                data["result"],
                data["failure"],
                data=data.get("data"),
                seconds=data["seconds"],
                attempts=data["attempts"],
            )
            remote_run.finished_calls.append(ToolFinished(call, result))
        case "error" if data["kind"] != "cancelled":
            remote_run.error = error_from_kind(data["kind"], data["message"])
