"""The admin routes, telemetry and middleware of the application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from opposable.service.service import Service
from opposable.web.api import (
    agents,
    bindings,
    executions,
    failures,
    health,
    imports,
    keys,
    pins,
    session,
    skills,
    tool_calls,
    tool_trials,
    tools,
    usage,
)
from opposable.web.console_files import ConsoleMiddleware
from opposable.web.mcp.endpoint import MCP_PATH, McpEndpoint
from opposable.web.middleware.authentication import ApiKeyCache, AuthenticationMiddleware
from opposable.web.middleware.request_limits import BodyLimitMiddleware, TokenUsageRecorder
from opposable.web.middleware.request_log import RequestLogMiddleware
from opposable.web.middleware.security_headers import SecurityHeadersMiddleware
from opposable.web.telemetry.metered_model import wrap_models
from opposable.web.telemetry.metrics import Metrics, MetricsMiddleware
from opposable.web.telemetry.run_log import log_runs
from opposable.web.telemetry.spans import SpanRecorder
from opposable.web.telemetry.tracing import CURRENT_TRACE, TracingMiddleware
from opposable.web.telemetry.usage_recorder import UsageRecorder

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

ADMIN_ROUTE_MODULES = (
    tool_calls,
    tool_trials,
    imports,
    tools,
    bindings,
    agents,
    executions,
    failures,
    pins,
    skills,
    keys,
    usage,
    health,
    session,
)
"""In the order of matching: `/api/tools/import/…` comes before `/api/tools/{tool_id}`."""

ServedPart = Literal["gateway", "agents", "skills"]
"""A part of a service that can be served alone."""

SHARED_ROUTE_MODULES = (keys, usage, health, session)
"""The administration of keys, health and sessions, which every part needs."""

ALLOWED_REQUEST_HEADERS = ["Authorization", "Content-Type", "Last-Event-ID", "Traceparent", "X-Agent-ID", "X-Trace-ID"]
EXPOSED_RESPONSE_HEADERS = ["Retry-After", "X-Trace-ID"]


def install_admin(
    app: FastAPI,
    service: Service,
    *,
    api_key: str,
    max_body_bytes: int,
    only: ServedPart | None = None,
    exporter: "SpanExporter | None" = None,
) -> None:
    """Add the admin routes, telemetry and middleware to the application.

    The models of the service are replaced by wrappers that count their tokens.

    Args:
        app: The application.
        service: The service of the application.
        api_key: The key of the server; every request must carry it or a stored key. "" for none.
        max_body_bytes: The largest accepted request body.
        only: The only part of the service that is served, None for all.
        exporter: Where spans are sent if the settings enable traces, by default OpenTelemetry's exporter.

    Raises:
        BadInput: If an extra that the settings need is not installed.
    """
    for module in _select_route_modules(only):
        app.router.routes += module.router.routes
    mcp = McpEndpoint(service)
    if only != "gateway":
        app.router.routes.append(Route(MCP_PATH, mcp, include_in_schema=False))
    spans = _install_telemetry(app, service, exporter)
    token_usage = TokenUsageRecorder(service.store.keys)
    _extend_lifespan(app, token_usage, mcp, spans)
    origins = service.settings.origins
    key_cache = ApiKeyCache(service.store.keys, service.store.limiter, token_usage)
    app.add_middleware(BodyLimitMiddleware, max_bytes=max_body_bytes)
    app.add_middleware(AuthenticationMiddleware, api_key=api_key, key_cache=key_cache, origins=origins)
    if only in (None, "agents"):
        app.add_middleware(ConsoleMiddleware)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=ALLOWED_REQUEST_HEADERS,
            expose_headers=EXPOSED_RESPONSE_HEADERS,
        )
    app.add_middleware(SecurityHeadersMiddleware, allow_cross_origin=bool(origins))
    app.add_middleware(MetricsMiddleware, metrics=app.state.metrics)
    app.add_middleware(RequestLogMiddleware)
    app.add_middleware(TracingMiddleware, on_end=None if spans is None else spans.record_model_calls)


def _select_route_modules(only: ServedPart | None) -> tuple[ModuleType, ...]:
    """Return the modules with the routes of a part."""
    if only == "gateway":
        return SHARED_ROUTE_MODULES
    if only == "skills":
        return (skills, *SHARED_ROUTE_MODULES)
    return tuple(module for module in ADMIN_ROUTE_MODULES if only is None or module is not skills)


def _install_telemetry(app: FastAPI, service: Service, exporter: "SpanExporter | None") -> SpanRecorder | None:
    """Observe the service and its models.

    Return the span recorder if the settings enable traces.
    """
    metrics = app.state.metrics = Metrics()
    metrics.watch(service)
    log_runs(service)
    usage_recorder = app.state.usage_recorder = UsageRecorder(service.store.model_usage)
    listeners = [metrics.count_model_call, usage_recorder.record]
    spans = None
    if service.settings.traces:
        spans = SpanRecorder(include_content=service.settings.traces_content, exporter=exporter)
        service.recorder.add_watcher(spans.handle_record)
        listeners.append(lambda call: CURRENT_TRACE.get().model_calls.append(call))
    service.models = wrap_models(service.models, listeners)
    return spans


def _extend_lifespan(
    app: FastAPI, token_usage: TokenUsageRecorder, mcp: McpEndpoint, spans: SpanRecorder | None
) -> None:
    """Serve MCP, write used tokens and send spans while the application runs."""
    inner_lifespan = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[Any]:
        async with (
            spans.flush_on_exit() if spans else nullcontext(),
            token_usage.write_periodically(),
            app.state.usage_recorder.write_periodically(),
            app.state.metrics.share(),
            mcp.run(),
            inner_lifespan(app) as state,
        ):
            yield state

    app.router.lifespan_context = lifespan
