"""Log lines of runs and tool calls. They hold ids, names and counts, never arguments or content."""

import logging

from opposable.domain.events import Event, RunStarted, ToolFinished
from opposable.service.runner import ActiveRun
from opposable.service.service import Service

log = logging.getLogger("opposable.runs")


def log_runs(service: Service) -> None:
    """Log the start and the end of each run and of its calls."""
    service.runner.on_event.append(_log_event)
    service.runner.on_end.append(_log_end)


def _log_event(active_run: ActiveRun, event: Event) -> None:
    run = active_run.run
    if isinstance(event, RunStarted):
        ids = {"agent_id": run.agent_id, "conversation_id": run.conversation_id, "owner": run.owner}
        log.info("run started", extra={"run_id": run.run_id, **ids})
    elif isinstance(event, ToolFinished):
        result = event.result
        fields = {"tool": event.call.name[:100], "failure": result.failure, "seconds": round(result.seconds, 3)}
        log.info("tool call ended", extra={"run_id": run.run_id, "call_id": event.call.id, **fields})


def _log_end(active_run: ActiveRun) -> None:
    run = active_run.run
    fields = {
        "status": run.status,
        "reason": run.reason,
        "seconds": round((run.ended_at - run.started_at).total_seconds(), 3) if run.ended_at else None,
        "turns": run.turns,
        "tool_calls": run.tool_calls,
        "tokens": run.usage.total_tokens,
    }
    level = logging.WARNING if run.status == "failed" else logging.INFO
    log.log(level, "run ended", extra={"run_id": run.run_id, "agent_id": run.agent_id, **fields})
