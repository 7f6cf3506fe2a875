"""The trace a request belongs to: taken from it or begun with it, told in the answer, known to logs and records."""

import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opposable.domain.usage import Usage

_PARENT = re.compile(rb"^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$")
_OWN = re.compile(rb"^[\w.\-]{1,64}$", re.ASCII)
KEY = "opposable.trace"


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One reply of a model; moments are in nanoseconds since 1970."""

    model: str
    usage: Usage
    begun: int
    ended: int


@dataclass(slots=True)
class Trace:
    """`trace_id` is what clients are told; `parent` the span of theirs that asks (16 hexadecimal digits), or "".

    `models` are calls of models that no span was made of yet, where spans are made at all; `in_run` says that a run
    will.
    """

    trace_id: str
    parent: str = ""
    models: list[ModelCall] = field(default_factory=list)
    in_run: bool = False


NO_TRACE = Trace("")
CURRENT: ContextVar[Trace] = ContextVar("trace", default=NO_TRACE)
"""The trace of the request that is being answered."""


class Tracing:
    """Gives every request its trace: W3C's `traceparent`, else `X-Trace-ID`, else a new one; told as `X-Trace-ID`."""

    def __init__(self, app: ASGIApp, on_end: Callable[[Trace], None] | None = None) -> None:
        self._app = app
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its trace."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace = trace_from(scope["headers"])
        header = (b"x-trace-id", trace.trace_id.encode())
        scope[KEY] = trace
        CURRENT.set(trace)

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), header]
            await send(message)

        try:
            await self._app(scope, receive, told)
        finally:
            if self._on_end is not None and not trace.in_run:
                self._on_end(trace)


def trace_from(headers: list[tuple[bytes, bytes]]) -> Trace:
    """The trace that a request's headers name, or a new one."""
    own = b""
    for name, value in headers:
        if name == b"traceparent":
            found = _PARENT.match(value.strip())
            if found is not None and found[1].strip(b"0") and found[2].strip(b"0"):
                return Trace(found[1].decode(), found[2].decode())
        elif name == b"x-trace-id":
            own = value.strip()
    return Trace(own.decode() if _OWN.match(own) else uuid4().hex)
