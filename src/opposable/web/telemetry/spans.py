"""OpenTelemetry spans in the GenAI conventions: invoke_agent, chat, execute_tool."""

import asyncio
import logging
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson

from opposable.domain.errors import BadInput
from opposable.domain.json_text import dump_json
from opposable.domain.records import ENDED_STATUSES, Execution, Run
from opposable.safety.redaction import redact
from opposable.store.recorder import Record
from opposable.web.telemetry.tracing import CURRENT_TRACE, ModelCall, RequestTrace

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

log = logging.getLogger("opposable.web")

SERVICE_NAME = "opposable"
UNKNOWN_PROVIDER = "custom"
"""The provider in the span of a model that names none."""
_TRACE_ID_PATTERN = re.compile(r"[0-9a-fA-F]{32}")


class SpanRecorder:
    """Creates spans from the records of a service when runs or single calls end.

    Args:
        include_content: Whether spans hold messages, arguments and results, with secrets redacted.
        exporter: Where spans are sent, by default as the environment variables of OpenTelemetry say.

    Raises:
        BadInput: If the extra "otel" is not installed.
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

        class IdGenerator(RandomIdGenerator):
            """Uses the trace id that the response of the request returns."""

            def generate_trace_id(self) -> int:
                return _parse_trace_id(CURRENT_TRACE.get().trace_id) or super().generate_trace_id()

        self._include_content = include_content
        resource = Resource.create() if _has_service_name() else Resource.create({"service.name": SERVICE_NAME})
        self._provider = TracerProvider(resource=resource, id_generator=IdGenerator())
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer(SERVICE_NAME)
        self._pending_calls: dict[str, list[Execution]] = {}

    @asynccontextmanager
    async def flush_on_exit(self) -> AsyncIterator[None]:
        """Send the remaining spans at the end of the block."""
        try:
            yield
        finally:
            await asyncio.to_thread(self._provider.shutdown)

    def handle_record(self, record: Record) -> None:
        """Collect the calls of a run; create spans for an ended run or a single call.

        Never raises.
        """
        try:
            self._process_record(record)
        except Exception:
            log.exception("Cannot create a span.")

    def _process_record(self, record: Record) -> None:
        if isinstance(record, Run):
            CURRENT_TRACE.get().has_run = True
            if record.status in ENDED_STATUSES:
                self._record_run(record, self._pending_calls.pop(record.run_id, []))
        elif isinstance(record, Execution) and record.run_id:
            self._pending_calls.setdefault(record.run_id, []).append(record)
        elif isinstance(record, Execution):
            self._record_tool_call(record, _get_parent_context(CURRENT_TRACE.get()))

    def record_model_calls(self, trace: RequestTrace) -> None:
        """Create spans for the model calls of a request that started no run."""
        for model_call in trace.model_calls:
            self._record_model_call(model_call, _get_parent_context(trace))
        trace.model_calls.clear()

    def _record_run(self, run: Run, calls: list[Execution]) -> None:
        from opentelemetry.trace import set_span_in_context

        trace = CURRENT_TRACE.get()
        attributes: dict[str, Any] = {
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
            attributes |= {
                "gen_ai.input.messages": _serialize_message("user", run.task),
                "gen_ai.output.messages": _serialize_message("assistant", run.text),
            }
        started_at_ns = _to_nanoseconds(run.started_at)
        span = self._start_span(f"invoke_agent {run.agent_id}", started_at_ns, attributes, _get_parent_context(trace))
        context = set_span_in_context(span)
        for call in calls:
            self._record_tool_call(call, context)
        for model_call in trace.model_calls:
            self._record_model_call(model_call, context)
        trace.model_calls.clear()
        failure = "" if run.status == "finished" else run.status
        _end_span(span, failure, _to_nanoseconds(run.ended_at or run.started_at))

    def _record_tool_call(self, call: Execution, parent: Any) -> None:
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.call_id,
            "gen_ai.tool.type": "function",
            "opposable.tool.attempts": call.attempts,
        }
        if self._include_content:
            attributes["gen_ai.tool.call.arguments"] = dump_json(redact(call.arguments), default=str).decode()
            attributes["gen_ai.tool.call.result"] = str(redact(call.result))
        ended_at_ns = _to_nanoseconds(call.at)
        started_at_ns = ended_at_ns - int(call.seconds * 1e9)
        span = self._start_span(f"execute_tool {call.name}", started_at_ns, attributes, parent)
        _end_span(span, call.failure, ended_at_ns)

    def _record_model_call(self, call: ModelCall, parent: Any) -> None:
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": call.provider or UNKNOWN_PROVIDER,
            "gen_ai.request.model": call.model,
            "gen_ai.usage.input_tokens": call.usage.input_tokens,
            "gen_ai.usage.output_tokens": call.usage.output_tokens,
        }
        span = self._start_span(f"chat {call.model}", call.started_at_ns, attributes, parent, is_client=True)
        _end_span(span, call.failure, call.ended_at_ns)

    def _start_span(
        self, name: str, started_at_ns: int, attributes: dict[str, Any], parent: Any, *, is_client: bool = False
    ) -> Any:
        from opentelemetry.trace import SpanKind

        kind = SpanKind.CLIENT if is_client else SpanKind.INTERNAL
        attributes = {key: value for key, value in attributes.items() if value != ""}
        return self._tracer.start_span(name, context=parent, kind=kind, attributes=attributes, start_time=started_at_ns)


def _end_span(span: Any, failure: str | None, ended_at_ns: int) -> None:
    """End a span, as an error of this kind if there is one."""
    from opentelemetry.trace import StatusCode

    if failure:
        span.set_status(StatusCode.ERROR)
        span.set_attribute("error.type", failure)
    span.end(ended_at_ns)


def _get_parent_context(trace: RequestTrace) -> Any:
    """Return the context of the client's span, or an empty one."""
    from opentelemetry import trace as api
    from opentelemetry.context import Context

    trace_id = _parse_trace_id(trace.trace_id)
    if not trace.parent_span_id or trace_id is None:
        return Context()
    flags = api.TraceFlags(api.TraceFlags.SAMPLED)
    span_context = api.SpanContext(trace_id, int(trace.parent_span_id, 16), is_remote=True, trace_flags=flags)
    return api.set_span_in_context(api.NonRecordingSpan(span_context), Context())


def _parse_trace_id(trace_id: str) -> int | None:
    return int(trace_id, 16) or None if _TRACE_ID_PATTERN.fullmatch(trace_id) else None


def _has_service_name() -> bool:
    """Return whether the environment variables of OpenTelemetry name the service."""
    return "OTEL_SERVICE_NAME" in os.environ or "service.name" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")


def _to_nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1e9)


def _serialize_message(role: str, text: str) -> str:
    message = {"role": role, "parts": [{"type": "text", "content": str(redact(text))}]}
    return orjson.dumps([message]).decode()
