"""The trace a request belongs to: taken from it or begun with it, told in the answer, known to logs and records."""

import re
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PARENT = re.compile(rb"^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$")
_OWN = re.compile(rb"^[\w.\-]{1,64}$", re.ASCII)
KEY = "opposable.trace"


@dataclass(frozen=True, slots=True)
class Trace:
    """`trace_id` is what clients are told; `parent` the span of theirs that asks (16 hexadecimal digits), or ""."""

    trace_id: str
    parent: str = ""


NO_TRACE = Trace("")
CURRENT: ContextVar[Trace] = ContextVar("trace", default=NO_TRACE)
"""The trace of the request that is being answered."""


class Tracing:
    """Gives every request its trace: W3C's `traceparent`, else `X-Trace-ID`, else a new one; told as `X-Trace-ID`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

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

        await self._app(scope, receive, told)


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
