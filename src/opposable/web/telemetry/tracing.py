"""The trace of a request, from its headers or new."""

import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opposable.domain.usage import Usage

_TRACEPARENT_PATTERN = re.compile(rb"^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$")
_TRACE_ID_PATTERN = re.compile(rb"^[\w.\-]{1,64}$", re.ASCII)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a model, with its reply or failure.

    Times are in nanoseconds since 1970. `failure` is the kind of the error, "" for a reply. `provider` is that of the
    model's profile.
    """

    model: str
    usage: Usage
    started_at_ns: int
    ended_at_ns: int
    failure: str = ""
    provider: str = ""

    @property
    def seconds(self) -> float:
        """The duration."""
        return (self.ended_at_ns - self.started_at_ns) / 1e9


@dataclass(slots=True)
class RequestTrace:
    """The trace of one request.

    Attributes:
        trace_id: The id that the response returns.
        parent_span_id: The span of the client, 16 hexadecimal digits, or "".
        model_calls: Model calls that are not in a span yet. Filled only if traces are exported.
        has_run: Whether the request started a run, which will export the model calls.
    """

    trace_id: str
    parent_span_id: str = ""
    model_calls: list[ModelCall] = field(default_factory=list)
    has_run: bool = False


NO_TRACE = RequestTrace("")
CURRENT_TRACE: ContextVar[RequestTrace] = ContextVar("trace", default=NO_TRACE)
"""The trace of the current request."""


class TracingMiddleware:
    """Gives every request a trace and returns its id as `X-Trace-ID`.

    The trace comes from the W3C header `traceparent`, else from `X-Trace-ID`, else it is new.

    Args:
        app: The application.
        on_end: Called with the trace of each request that started no run.
    """

    def __init__(self, app: ASGIApp, on_end: Callable[[RequestTrace], None] | None = None) -> None:
        self._app = app
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with its trace in `CURRENT_TRACE`."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace = parse_trace(scope["headers"])
        header = (b"x-trace-id", trace.trace_id.encode())
        CURRENT_TRACE.set(trace)

        async def send_with_trace_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), header]
            await send(message)

        try:
            await self._app(scope, receive, send_with_trace_id)
        finally:
            if self._on_end is not None and not trace.has_run:
                self._on_end(trace)


def parse_trace(headers: list[tuple[bytes, bytes]]) -> RequestTrace:
    """Return the trace in the headers of a request, or a new one."""
    requested_id = b""
    for name, value in headers:
        if name == b"traceparent":
            match = _TRACEPARENT_PATTERN.match(value.strip())
            if match is not None and match[1].strip(b"0") and match[2].strip(b"0"):
                return RequestTrace(match[1].decode(), match[2].decode())
        elif name == b"x-trace-id":
            requested_id = value.strip()
    return RequestTrace(requested_id.decode() if _TRACE_ID_PATTERN.match(requested_id) else uuid4().hex)
