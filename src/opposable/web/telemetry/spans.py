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
from opposable.safety.redaction import redacted
from opposable.service.service import Service
from opposable.store.recorder import Record
from opposable.web.telemetry.metrics import STILL_GOING
from opposable.web.telemetry.tracing import CURRENT, ModelCall, Trace

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

log = logging.getLogger("opposable.web")

NAME = "opposable"
_HEXADECIMAL = 32


class Spans:
    """Makes spans of what a service records, when a run or a call of its own has ended.

    With `content`, they hold what was asked and answered, arguments and results; secrets are taken out. `exporter` is
    where they go, by default where OpenTelemetry's variables say. Raises: `BadInput` where the extra is missing.
    """

    def __init__(self, *, content: bool = False, exporter: "SpanExporter | None" = None) -> None:
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
                return _as_number(CURRENT.get().trace_id) or super().generate_trace_id()

        self._content = content
        resource = Resource.create() if _is_named() else Resource.create({"service.name": NAME})
        self._provider = TracerProvider(resource=resource, id_generator=Ids())
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer(NAME)
        self._calls: dict[str, list[Execution]] = {}

    def watch(self, service: Service) -> None:
        """Make spans of what the service records from now on."""
        service.recorder.watch(self.recorded)

    @asynccontextmanager
    async def sent(self) -> AsyncIterator[None]:
        """Send what is left at the end."""
        try:
            yield
        finally:
            await asyncio.to_thread(self._provider.shutdown)

    def recorded(self, record: Record) -> None:
        """Note a call of a run; make spans of a run that ended, or of a call of its own. Never raises."""
        try:
            self._take(record)
        except Exception:
            log.exception("A span could not be made.")

    def _take(self, record: Record) -> None:
        if isinstance(record, Run):
            CURRENT.get().in_run = True
            if record.status not in STILL_GOING:
                self._run(record, self._calls.pop(record.run_id, []))
        elif isinstance(record, Execution) and record.run_id:
            self._calls.setdefault(record.run_id, []).append(record)
        elif isinstance(record, Execution):
            self._tool(record, _parent(CURRENT.get()))

    def asked(self, trace: Trace) -> None:
        """Make spans of the calls of models that a request made without a run."""
        for one in trace.models:
            self._chat(one, _parent(trace))
        trace.models.clear()

    def _run(self, run: Run, calls: list[Execution]) -> None:
        from opentelemetry import trace as api

        current = CURRENT.get()
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
        if self._content:
            told |= {
                "gen_ai.input.messages": _said("user", run.task),
                "gen_ai.output.messages": _said("assistant", run.text),
            }
        span = self._begun(f"invoke_agent {run.agent_id}", run.started_at, told, _parent(current))
        inside = api.set_span_in_context(span)
        for call in calls:
            self._tool(call, inside)
        for one in current.models:
            self._chat(one, inside)
        current.models.clear()
        if run.status != "finished":
            span.set_status(api.StatusCode.ERROR)
            span.set_attribute("error.type", run.status)
        span.end(_nanoseconds(run.ended_at or run.started_at))

    def _tool(self, call: Execution, parent: Any) -> None:
        from opentelemetry.trace import StatusCode

        told: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.call_id,
            "gen_ai.tool.type": "function",
            "opposable.tool.attempts": call.attempts,
        }
        if self._content:
            told["gen_ai.tool.call.arguments"] = orjson.dumps(redacted(call.arguments), default=str).decode()
            told["gen_ai.tool.call.result"] = str(redacted(call.result))
        end = _nanoseconds(call.at)
        span = self._begun(f"execute_tool {call.name}", end - int(call.seconds * 1e9), told, parent)
        if call.failure is not None:
            span.set_status(StatusCode.ERROR)
            span.set_attribute("error.type", call.failure)
        span.end(end)

    def _chat(self, one: ModelCall, parent: Any) -> None:
        told = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": NAME,
            "gen_ai.request.model": one.model,
            "gen_ai.usage.input_tokens": one.usage.input_tokens,
            "gen_ai.usage.output_tokens": one.usage.output_tokens,
        }
        self._begun(f"chat {one.model}", one.begun, told, parent, client=True).end(one.ended)

    def _begun(self, name: str, at: datetime | int, told: dict[str, Any], parent: Any, *, client: bool = False) -> Any:
        from opentelemetry.trace import SpanKind

        begun = at if isinstance(at, int) else _nanoseconds(at)
        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        known = {key: value for key, value in told.items() if value != ""}
        return self._tracer.start_span(name, context=parent, kind=kind, attributes=known, start_time=begun)


def _parent(trace: Trace) -> Any:
    """The context of whoever asked; an empty one where nobody named a span."""
    from opentelemetry import trace as api
    from opentelemetry.context import Context

    number = _as_number(trace.trace_id)
    if not trace.parent or number is None:
        return Context()
    flags = api.TraceFlags(api.TraceFlags.SAMPLED)
    known = api.SpanContext(number, int(trace.parent, 16), is_remote=True, trace_flags=flags)
    return api.set_span_in_context(api.NonRecordingSpan(known), Context())


def _as_number(trace_id: str) -> int | None:
    if len(trace_id) != _HEXADECIMAL:
        return None
    try:
        return int(trace_id, 16) or None
    except ValueError:
        return None


def _is_named() -> bool:
    """Whether OpenTelemetry's own variables name the service."""
    return "OTEL_SERVICE_NAME" in os.environ or "service.name" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1e9)


def _said(role: str, text: str) -> str:
    message = {"role": role, "parts": [{"type": "text", "content": str(redacted(text))}]}
    return orjson.dumps([message]).decode()
