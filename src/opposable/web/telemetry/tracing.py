"""The trace a request belongs to: taken from it or begun with it, told in the answer, known to logs and records."""

import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opposable.domain.usage import Usage

_TRACEPARENT_PATTERN = re.compile(rb"^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$")
_TRACE_ID_PATTERN = re.compile(rb"^[\w.\-]{1,64}$", re.ASCII)
TRACE_SCOPE_KEY = "opposable.trace"


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One reply of a model; moments are in nanoseconds since 1970."""

    model: str
    usage: Usage
    started_at_ns: int
    ended_at_ns: int


@dataclass(slots=True)
class RequestTrace:
    """`trace_id` is what clients are told; `parent` the span of theirs that asks (16 hexadecimal digits), or "".

    `models` are calls of models that no span was made of yet, where spans are made at all; `in_run` says that a run
    will.
    """

    trace_id: str
    parent_span_id: str = ""
    model_calls: list[ModelCall] = field(default_factory=list)
    has_run: bool = False


NO_TRACE = RequestTrace("")
CURRENT_TRACE: ContextVar[RequestTrace] = ContextVar("trace", default=NO_TRACE)
"""The trace of the request that is being answered."""


class TracingMiddleware:
    """Gives every request its trace: W3C's `traceparent`, else `X-Trace-ID`, else a new one; told as `X-Trace-ID`."""

    def __init__(self, app: ASGIApp, on_end: Callable[[RequestTrace], None] | None = None) -> None:
        self._app = app
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its trace."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace = parse_trace(scope["headers"])
        header = (b"x-trace-id", trace.trace_id.encode())
        scope[TRACE_SCOPE_KEY] = trace
        CURRENT_TRACE.set(trace)

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), header]
            await send(message)

        try:
            await self._app(scope, receive, told)
        finally:
            if self._on_end is not None and not trace.has_run:
                self._on_end(trace)


def parse_trace(headers: list[tuple[bytes, bytes]]) -> RequestTrace:
    """The trace that a request's headers name, or a new one."""
    own = b""
    for name, value in headers:
        if name == b"traceparent":
            found = _TRACEPARENT_PATTERN.match(value.strip())
            if found is not None and found[1].strip(b"0") and found[2].strip(b"0"):
                return RequestTrace(found[1].decode(), found[2].decode())
        elif name == b"x-trace-id":
            own = value.strip()
    return RequestTrace(own.decode() if _TRACE_ID_PATTERN.match(own) else uuid4().hex)
