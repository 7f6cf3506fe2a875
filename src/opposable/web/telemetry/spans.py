"""What a service does as OpenTelemetry spans, in the words of the GenAI conventions: invoke_agent, chat, execute_tool."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson

from opposable.domain.errors import BadInput
from opposable.domain.records import Execution, Run
from opposable.safety.redaction import redact
from opposable.service.service import Service
from opposable.store.recorder import Record
from opposable.web.telemetry.metrics import ACTIVE_STATUSES
from opposable.web.telemetry.tracing import CURRENT_TRACE, ModelCall, RequestTrace

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

log = logging.getLogger("opposable.web")

SERVICE_NAME = "opposable"
_TRACE_ID_DIGITS = 32


class SpanRecorder:
    """Makes spans of what a service records, when a run or a call of its own has ended.

    With `content`, they hold what was asked and answered, arguments and results; secrets are taken out. `exporter` is
    where they go, by default where OpenTelemetry's variables say. Raises: `BadInput` where the extra is missing.
    """

    def __init__(self, *, include_content: bool = False, exporter: "SpanExporter | None" = None) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
        except ModuleNotFoundError as error:
            raise BadInput('Traces need the extra "otel": pip install "opposable[otel]".') from error

        class Ids(RandomIdGenerator):
            """Traces are called as clients are told they are."""

            def generate_trace_id(self) -> int:
                return _parse_trace_id(CURRENT_TRACE.get().trace_id) or super().generate_trace_id()

        self._include_content = include_content
        resource = Resource.create() if _has_service_name() else Resource.create({"service.name": SERVICE_NAME})
        self._provider = TracerProvider(resource=resource, id_generator=Ids())
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer(SERVICE_NAME)
        self._pending_calls: dict[str, list[Execution]] = {}

    def watch(self, service: Service) -> None:
        """Make spans of what the service records from now on."""
        service.recorder.add_watcher(self.handle_record)

    @asynccontextmanager
    async def flush_on_exit(self) -> AsyncIterator[None]:
        """Send what is left at the end."""
        try:
            yield
        finally:
            await asyncio.to_thread(self._provider.shutdown)

    def handle_record(self, record: Record) -> None:
        """Note a call of a run; make spans of a run that ended, or of a call of its own. Never raises."""
        try:
            self._process_record(record)
        except Exception:
            log.exception("A span could not be made.")

    def _process_record(self, record: Record) -> None:
        if isinstance(record, Run):
            CURRENT_TRACE.get().has_run = True
            if record.status not in ACTIVE_STATUSES:
                self._record_run(record, self._pending_calls.pop(record.run_id, []))
        elif isinstance(record, Execution) and record.run_id:
            self._pending_calls.setdefault(record.run_id, []).append(record)
        elif isinstance(record, Execution):
            self._record_tool_call(record, _get_parent_context(CURRENT_TRACE.get()))

    def record_model_calls(self, trace: RequestTrace) -> None:
        """Make spans of the calls of models that a request made without a run."""
        for one in trace.model_calls:
            self._record_model_call(one, _get_parent_context(trace))
        trace.model_calls.clear()

    def _record_run(self, run: Run, calls: list[Execution]) -> None:
        from opentelemetry import trace as api

        current = CURRENT_TRACE.get()
        told: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.id": run.agent_id,
            "gen_ai.conversation.id": run.conversation_id,
            "gen_ai.usage.input_tokens": run.usage.input_tokens,
            "gen_ai.usage.output_tokens": run.usage.output_tokens,
            "opposable.run.id": run.run_id,
            "opposable.run.reason": run.reason,
            "opposable.trace_id": run.trace_id,
        }
        if self._include_content:
            told |= {
                "gen_ai.input.messages": _serialize_message("user", run.task),
                "gen_ai.output.messages": _serialize_message("assistant", run.text),
            }
        span = self._start_span(f"invoke_agent {run.agent_id}", run.started_at, told, _get_parent_context(current))
        inside = api.set_span_in_context(span)
        for call in calls:
            self._record_tool_call(call, inside)
        for one in current.model_calls:
            self._record_model_call(one, inside)
        current.model_calls.clear()
        if run.status != "finished":
            span.set_status(api.StatusCode.ERROR)
            span.set_attribute("error.type", run.status)
        span.end(_to_nanoseconds(run.ended_at or run.started_at))

    def _record_tool_call(self, call: Execution, parent: Any) -> None:
        from opentelemetry.trace import StatusCode

        told: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.call_id,
            "gen_ai.tool.type": "function",
            "opposable.tool.attempts": call.attempts,
        }
        if self._include_content:
            told["gen_ai.tool.call.arguments"] = orjson.dumps(redact(call.arguments), default=str).decode()
            told["gen_ai.tool.call.result"] = str(redact(call.result))
        end = _to_nanoseconds(call.at)
        span = self._start_span(f"execute_tool {call.name}", end - int(call.seconds * 1e9), told, parent)
        if call.failure is not None:
            span.set_status(StatusCode.ERROR)
            span.set_attribute("error.type", call.failure)
        span.end(end)

    def _record_model_call(self, call: ModelCall, parent: Any) -> None:
        told = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": SERVICE_NAME,
            "gen_ai.request.model": call.model,
            "gen_ai.usage.input_tokens": call.usage.input_tokens,
            "gen_ai.usage.output_tokens": call.usage.output_tokens,
        }
        self._start_span(f"chat {call.model}", call.started_at_ns, told, parent, is_client=True).end(call.ended_at_ns)

    def _start_span(
        self, name: str, started_at: datetime | int, attributes: dict[str, Any], parent: Any, *, is_client: bool = False
    ) -> Any:
        from opentelemetry.trace import SpanKind

        begun = started_at if isinstance(started_at, int) else _to_nanoseconds(started_at)
        kind = SpanKind.CLIENT if is_client else SpanKind.INTERNAL
        known = {key: value for key, value in attributes.items() if value != ""}
        return self._tracer.start_span(name, context=parent, kind=kind, attributes=known, start_time=begun)


def _get_parent_context(trace: RequestTrace) -> Any:
    """The context of whoever asked; an empty one where nobody named a span."""
    from opentelemetry import trace as api
    from opentelemetry.context import Context

    number = _parse_trace_id(trace.trace_id)
    if not trace.parent_span_id or number is None:
        return Context()
    flags = api.TraceFlags(api.TraceFlags.SAMPLED)
    known = api.SpanContext(number, int(trace.parent_span_id, 16), is_remote=True, trace_flags=flags)
    return api.set_span_in_context(api.NonRecordingSpan(known), Context())


def _parse_trace_id(trace_id: str) -> int | None:
    if len(trace_id) != _TRACE_ID_DIGITS:
        return None
    try:
        return int(trace_id, 16) or None
    except ValueError:
        return None


def _has_service_name() -> bool:
    """Whether OpenTelemetry's own variables name the service."""
    return "OTEL_SERVICE_NAME" in os.environ or "service.name" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")


def _to_nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1e9)


def _serialize_message(role: str, text: str) -> str:
    message = {"role": role, "parts": [{"type": "text", "content": str(redact(text))}]}
    return orjson.dumps([message]).decode()
