"""Prometheus metrics: requests, runs, tool calls, models and records.

Several processes on one socket share their metrics in the directory of the variable PROMETHEUS_MULTIPROC_DIR.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from opposable.domain.errors import BadInput
from opposable.domain.records import ENDED_STATUSES, Execution, Run
from opposable.service.background import run_in_background
from opposable.store.recorder import Record
from opposable.web.telemetry.tracing import ModelCall

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from opposable.service.service import Service

REQUEST_SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Histogram buckets for requests and tool calls, in seconds."""
RUN_SECONDS_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
"""Histogram buckets for runs, in seconds."""
MAX_TOOL_LABELS = 500
"""Tools with a label of their own; all others share the label "other"."""
OTHER_LABEL = "other"
DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
REFRESH_SECONDS = 1.0
"""Seconds between updates of the state that a process shares with the others."""


class Metrics:
    """The metrics of one application.

    Raises:
        BadInput: If prometheus-client is not installed.
    """

    def __init__(self) -> None:
        try:
            from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
        except ModuleNotFoundError as error:
            raise BadInput('Metrics need the extra "serve": pip install "opposable[serve]".') from error
        self._registry = registry = CollectorRegistry()
        self._gauge = partial(Gauge, registry=registry)
        counter = partial(Counter, registry=registry)
        request_histogram = partial(Histogram, registry=registry, buckets=REQUEST_SECONDS_BUCKETS)
        run_histogram = partial(Histogram, registry=registry, buckets=RUN_SECONDS_BUCKETS)
        self._requests = counter("opposable_http_requests", "HTTP requests.", ("method", "route", "status"))
        self._request_seconds = request_histogram(
            "opposable_http_request_seconds", "Duration of HTTP requests in seconds.", ("route",)
        )
        self._runs = counter("opposable_runs", "Ended runs.", ("status",))
        self._run_seconds = run_histogram("opposable_run_seconds", "Duration of runs in seconds.")
        self._calls = counter("opposable_tool_calls", "Tool calls.", ("tool", "failure"))
        self._call_seconds = request_histogram(
            "opposable_tool_call_seconds", "Duration of tool calls in seconds.", ("tool",)
        )
        self._tokens = counter("opposable_tokens", "Input and output tokens of models.", ("model", "direction"))
        self._replies = counter("opposable_model_replies", "Model replies.", ("model",))
        self._failures = counter("opposable_model_failures", "Failed model requests.", ("model", "kind"))
        self._model_seconds = run_histogram(
            "opposable_model_seconds", "Duration of model requests in seconds.", ("model",)
        )
        self._state: list[tuple[Any, Callable[[], float]]] = []
        self._tool_labels: set[str] = set()

    def watch(self, service: "Service") -> None:
        """Count what the service records, and export the state of its recorder and runs."""
        service.recorder.add_watcher(lambda record: self.count_record(record, service))
        state: dict[str, tuple[str, Callable[[], float]]] = {
            "opposable_records_waiting": ("Records waiting to be written.", lambda: service.recorder.status.waiting),
            "opposable_records_written": ("Written records.", lambda: service.recorder.status.written),
            "opposable_records_lost": ("Lost records.", lambda: service.recorder.status.lost),
            "opposable_records_refused": ("Records rejected by the store.", lambda: service.recorder.status.refused),
            "opposable_recorder_up": ("1 while the recorder can write.", lambda: service.recorder.status.is_writing),
            "opposable_active_runs": ("Active runs of this process.", lambda: service.runner.active_count),
        }
        for name, (description, read_value) in state.items():
            mode: Literal["livemin", "livesum"] = "livemin" if name == "opposable_recorder_up" else "livesum"
            gauge = self._gauge(name, description, multiprocess_mode=mode)
            self._state.append((gauge, read_value))

    @asynccontextmanager
    async def share(self) -> AsyncIterator[None]:
        """Share the state of this process with the others while the block runs, if there are others."""
        if DIRECTORY_VARIABLE not in os.environ:
            yield
            return
        async with run_in_background(self._refresh_periodically(), "shared metrics"):
            yield

    async def _refresh_periodically(self) -> None:
        while True:
            self._refresh()
            await asyncio.sleep(REFRESH_SECONDS)

    def _refresh(self) -> None:
        """Set the gauges to the current state."""
        for gauge, read_value in self._state:
            gauge.set(read_value())

    def count_record(self, record: Record, service: "Service") -> None:
        """Count a tool call or a run that has ended."""
        if isinstance(record, Execution):
            tool = self._get_tool_label(record.tool_id, service)
            self._calls.labels(tool, record.failure or "none").inc()
            self._call_seconds.labels(tool).observe(record.seconds)
        elif isinstance(record, Run) and record.status in ENDED_STATUSES:
            self._runs.labels(record.status).inc()
            if record.ended_at is not None:
                self._run_seconds.observe((record.ended_at - record.started_at).total_seconds())

    def count_model_call(self, call: ModelCall) -> None:
        """Count one request to a model, with its tokens and duration."""
        model, usage = call.model, call.usage
        self._tokens.labels(model, "input").inc(usage.input_tokens)
        self._tokens.labels(model, "output").inc(usage.output_tokens)
        self._model_seconds.labels(model).observe(call.seconds)
        if call.failure:
            self._failures.labels(model, call.failure).inc()
        else:
            self._replies.labels(model).inc()

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def render(self) -> tuple[bytes, str]:
        """Return the metrics of all processes in the text format of Prometheus, and its media type."""
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.exposition import CONTENT_TYPE_LATEST
        from prometheus_client.multiprocess import MultiProcessCollector

        self._refresh()
        registry = self._registry
        if DIRECTORY_VARIABLE in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST

    def _get_tool_label(self, tool_id: str, service: "Service") -> str:
        """Return the label of a tool: its id, or "other".

        Unknown tools and tools beyond `MAX_TOOL_LABELS` are "other".
        """
        if tool_id not in self._tool_labels:
            if len(self._tool_labels) >= MAX_TOOL_LABELS or service.library.find_tool(tool_id) is None:
                return OTHER_LABEL
            self._tool_labels.add(tool_id)
        return tool_id


class MetricsMiddleware:
    """Counts every request by its route."""

    def __init__(self, app: "ASGIApp", metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass the request on and count it at its end."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_at = time.perf_counter()
        status = 500

        async def send_with_status(message: "Message") -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_with_status)
        finally:
            route = getattr(scope.get("route"), "path", OTHER_LABEL)
            method = scope["method"] if scope["method"] in KNOWN_METHODS else OTHER_LABEL
            self._metrics.count_request(method, route, status, time.perf_counter() - started_at)


KNOWN_METHODS = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))
