"""The administration of a service put onto its application: who may ask, how much, what is counted, what can be changed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from opposable.service.service import Service
from opposable.web.api import agents, bindings, executions, failures, health, imports, keys, skills, tools
from opposable.web.api import tool_calls as calling
from opposable.web.middleware.authentication import ApiKeyCache, AuthenticationMiddleware
from opposable.web.middleware.request_limits import BodyLimitMiddleware, TokenUsageRecorder
from opposable.web.middleware.security_headers import SecurityHeadersMiddleware
from opposable.web.telemetry.metered_model import wrap_models
from opposable.web.telemetry.metrics import Metrics, MetricsMiddleware
from opposable.web.telemetry.spans import SpanRecorder
from opposable.web.telemetry.tracing import CURRENT_TRACE, TracingMiddleware

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

ADMIN_ROUTE_MODULES = (calling, imports, tools, bindings, agents, executions, failures, skills, keys, health)
"""In the order their routes are tried: `/api/tools/import/…` before `/api/tools/{tool_id}`."""

ALLOWED_REQUEST_HEADERS = ["Authorization", "Content-Type", "Last-Event-ID", "Traceparent", "X-Agent-ID", "X-Trace-ID"]
EXPOSED_RESPONSE_HEADERS = ["Retry-After", "X-Trace-ID"]


def install_admin(
    app: FastAPI, service: Service, *, api_key: str, max_body_bytes: int, exporter: "SpanExporter | None" = None
) -> None:
    """Give the application its administration, and put its guards in front of all its routes.

    With an `api_key` every request must bear it, or a key of the store. `largest_body` is in bytes. The service's models
    are counted from now on. Where the settings want spans, `exporter` takes them in place of OpenTelemetry's own. Raises:
    `BadInput` where a library is missing.
    """
    for room in ADMIN_ROUTE_MODULES:
        app.include_router(room.router)
    counted = app.state.metrics = Metrics()
    counted.watch(service)
    spans = (
        SpanRecorder(include_content=service.settings.traces_content, exporter=exporter)
        if service.settings.traces
        else None
    )
    heard = [counted.count_model_call]
    if spans is not None:
        spans.watch(service)
        heard.append(lambda call: CURRENT_TRACE.get().model_calls.append(call))
    service.models = wrap_models(service.models, heard)
    budgets = TokenUsageRecorder(service.store.keys)
    _extend_lifespan(app, budgets, spans)
    origins = service.settings.origins
    ring = ApiKeyCache(service.store.keys, service.store.limiter, budgets)
    app.add_middleware(BodyLimitMiddleware, max_bytes=max_body_bytes)
    app.add_middleware(AuthenticationMiddleware, api_key=api_key, key_cache=ring, origins=origins)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=ALLOWED_REQUEST_HEADERS,
            expose_headers=EXPOSED_RESPONSE_HEADERS,
        )
    app.add_middleware(SecurityHeadersMiddleware, allow_cross_origin=bool(origins))
    app.add_middleware(MetricsMiddleware, metrics=counted)
    app.add_middleware(TracingMiddleware, on_end=None if spans is None else spans.record_model_calls)


def _extend_lifespan(app: FastAPI, token_usage: TokenUsageRecorder, spans: SpanRecorder | None) -> None:
    """Have used tokens written, and spans sent, for as long as the application lives."""
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[Any]:
        async with (
            spans.flush_on_exit() if spans else nullcontext(),
            token_usage.write_periodically(),
            inner(app) as state,
        ):
            yield state

    app.router.lifespan_context = lifespan
