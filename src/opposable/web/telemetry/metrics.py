"""What a service counts, for Prometheus: requests, runs, calls of tools, tokens, records."""

import time
from typing import TYPE_CHECKING, Any

from opposable.domain.errors import BadInput
from opposable.domain.records import Execution, Run
from opposable.store.recorder import Record
from opposable.web.telemetry.tracing import ModelCall

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from opposable.service.service import Service

REQUEST_SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Seconds of requests and calls."""
RUN_SECONDS_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
"""Seconds of runs."""
MAX_TOOL_LABELS = 500
"""Tools that are told apart; those beyond are counted together."""
OTHER_LABEL = "other"
ACTIVE_STATUSES = ("running", "waiting")


class Metrics:
    """Counters of one application. Raises: `BadInput` where prometheus-client is missing."""

    def __init__(self) -> None:
        try:
            from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
        except ModuleNotFoundError as error:
            raise BadInput('Metrics need the extra "serve": pip install "opposable[serve]".') from error
        self._registry = registry = CollectorRegistry()
        self._gauge = Gauge
        self._requests = Counter(
            "opposable_http_requests", "Requests answered.", ("method", "route", "status"), registry=registry
        )
        self._request_seconds = Histogram(
            "opposable_http_request_seconds",
            "From request to answer.",
            ("route",),
            buckets=REQUEST_SECONDS_BUCKETS,
            registry=registry,
        )
        self._runs = Counter("opposable_runs", "Runs that ended.", ("status",), registry=registry)
        self._run_seconds = Histogram(
            "opposable_run_seconds", "Length of runs.", buckets=RUN_SECONDS_BUCKETS, registry=registry
        )
        self._calls = Counter("opposable_tool_calls", "Calls of tools.", ("tool", "failure"), registry=registry)
        self._call_seconds = Histogram(
            "opposable_tool_call_seconds",
            "Length of calls.",
            ("tool",),
            buckets=REQUEST_SECONDS_BUCKETS,
            registry=registry,
        )
        self._tokens = Counter(
            "opposable_tokens", "Tokens read and written.", ("model", "direction"), registry=registry
        )
        self._replies = Counter("opposable_model_replies", "Replies of models.", ("model",), registry=registry)
        self._tool_labels: dict[str, str] = {}
        self._children: dict[tuple[str, ...], Any] = {}

    def watch(self, service: "Service") -> None:
        """Count what the service records, and show how its recorder and its runs stand."""
        service.recorder.add_watcher(lambda record: self.count_record(record, service))
        gauges = {
            "opposable_records_waiting": ("Records that wait to be written.", lambda: service.recorder.status.waiting),
            "opposable_records_written": ("Records written.", lambda: service.recorder.status.written),
            "opposable_records_lost": ("Records lost.", lambda: service.recorder.status.lost),
            "opposable_records_refused": ("Records the store refused.", lambda: service.recorder.status.refused),
            "opposable_recorder_up": (
                "1 while records are written.",
                lambda: float(service.recorder.status.is_writing),
            ),
            "opposable_runs_going": ("Runs of this process that go on.", lambda: service.runner.active_count),
        }
        for name, (what, look) in gauges.items():
            self._gauge(name, what, registry=self._registry).set_function(look)

    def count_record(self, record: Record, service: "Service") -> None:
        """Count a call, or a run that ended."""
        if isinstance(record, Execution):
            tool = self._get_tool_label(record.tool_id, service)
            self._get_child("calls", tool, record.failure or "none").inc()
            self._get_child("call_seconds", tool).observe(record.seconds)
        elif isinstance(record, Run) and record.status not in ACTIVE_STATUSES:
            self._get_child("runs", record.status).inc()
            if record.ended_at is not None:
                self._run_seconds.observe((record.ended_at - record.started_at).total_seconds())

    def count_model_call(self, call: ModelCall) -> None:
        """Count what one reply used."""
        model, usage = call.model, call.usage
        self._get_child("tokens", model, "input").inc(usage.input_tokens)
        self._get_child("tokens", model, "output").inc(usage.output_tokens)
        self._get_child("replies", model).inc()

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._get_child("requests", method, route, str(status)).inc()
        self._get_child("request_seconds", route).observe(seconds)

    def render(self) -> tuple[bytes, str]:
        """All of it in Prometheus' text format, and that format's media type."""
        from prometheus_client import generate_latest
        from prometheus_client.exposition import CONTENT_TYPE_LATEST

        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    def _get_child(self, metric: str, *labels: str) -> Any:
        """The child of a metric with these labels: looked up once."""
        key = (metric, *labels)
        made = self._children.get(key)
        if made is None:
            made = self._children[key] = getattr(self, f"_{metric}").labels(*labels)
        return made

    def _get_tool_label(self, tool_id: str, service: "Service") -> str:
        """The label of a tool: its id where there is such a tool and there are not too many."""
        known = self._tool_labels.get(tool_id)
        if known is not None:
            return known
        if len(self._tool_labels) >= MAX_TOOL_LABELS or service.library.find_tool(tool_id) is None:
            return OTHER_LABEL
        self._tool_labels[tool_id] = tool_id
        return tool_id


class MetricsMiddleware:
    """Counts every request, by the route that answered it."""

    def __init__(self, app: "ASGIApp", metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass the request on, and count it when it was answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        status = 500

        async def counted(message: "Message") -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            route = getattr(scope.get("route"), "path", OTHER_LABEL)
            method = scope["method"] if scope["method"] in KNOWN_METHODS else OTHER_LABEL
            self._metrics.count_request(method, route, status, time.perf_counter() - begun)


KNOWN_METHODS = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))
