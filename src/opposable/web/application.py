"""The administration of a service put onto its application: who may ask, how much, what is counted, what can be changed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from opposable.service.service import Service
from opposable.web.api import agents, bindings, executions, failures, health, imports, keys, skills, tools
from opposable.web.api import tool_calls as calling
from opposable.web.middleware.authentication import Access, KeyRing
from opposable.web.middleware.request_limits import BodyLimit, Budgets
from opposable.web.middleware.security_headers import SecurityHeaders
from opposable.web.telemetry.metered_model import metered
from opposable.web.telemetry.metrics import Counting, Metrics
from opposable.web.telemetry.spans import Spans
from opposable.web.telemetry.tracing import CURRENT, Tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

ROOMS = (calling, imports, tools, bindings, agents, executions, failures, skills, keys, health)
"""In the order their routes are tried: `/api/tools/import/…` before `/api/tools/{tool_id}`."""

ASKED_WITH = ["Authorization", "Content-Type", "Last-Event-ID", "Traceparent", "X-Agent-ID", "X-Trace-ID"]
TOLD_WITH = ["Retry-After", "X-Trace-ID"]


def administer(
    app: FastAPI, service: Service, *, api_key: str, largest_body: int, exporter: "SpanExporter | None" = None
) -> None:
    """Give the application its administration, and put its guards in front of all its routes.

    With an `api_key` every request must bear it, or a key of the store. `largest_body` is in bytes. The service's models
    are counted from now on. Where the settings want spans, `exporter` takes them in place of OpenTelemetry's own. Raises:
    `BadInput` where a library is missing.
    """
    for room in ROOMS:
        app.include_router(room.router)
    counted = app.state.metrics = Metrics()
    counted.watch(service)
    spans = Spans(content=service.settings.traces_content, exporter=exporter) if service.settings.traces else None
    heard = [counted.used]
    if spans is not None:
        spans.watch(service)
        heard.append(lambda call: CURRENT.get().models.append(call))
    service.models = metered(service.models, heard)
    budgets = Budgets(service.store.keys)
    _during(app, budgets, spans)
    origins = service.settings.origins
    ring = KeyRing(service.store.keys, service.store.limiter, budgets)
    app.add_middleware(BodyLimit, largest=largest_body)
    app.add_middleware(Access, key=api_key, ring=ring, origins=origins)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=ASKED_WITH,
            expose_headers=TOLD_WITH,
        )
    app.add_middleware(SecurityHeaders, shared=bool(origins))
    app.add_middleware(Counting, metrics=counted)
    app.add_middleware(Tracing, on_end=None if spans is None else spans.asked)


def _during(app: FastAPI, budgets: Budgets, spans: Spans | None) -> None:
    """Have used tokens written, and spans sent, for as long as the application lives."""
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[Any]:
        async with spans.sent() if spans else nullcontext(), budgets.written(), inner(app) as state:
            yield state

    app.router.lifespan_context = lifespan
