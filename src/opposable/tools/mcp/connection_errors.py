"""Why a server cannot be reached, as half a sentence for a person."""

from urllib.parse import urlsplit

from opposable.domain.specs import McpServerSpec
from opposable.tools.mcp.transport import Trace

_STATUS = {
    401: "it wants other credentials (401); see `headers`",
    403: "it refuses these credentials (403); see `headers`",
    404: "there is no MCP server at that address (404)",
    405: "there is no MCP server at that address (405)",
}


def reason_of(error: BaseException | None, spec: McpServerSpec, trace: Trace) -> str:
    """What ended a connection: the first cause, in plain words, with a program's last line where there is one.

    No final stop, no traceback; the caller takes secrets out.
    """
    if spec.command:
        last = _last_line(trace)
        base = _cause(error, spec, trace) or "the program ended"
        return f"{base}; its last words: {last}" if last else base
    return _cause(error, spec, trace) or f"the connection to {_place(spec)} ended"


def _cause(error: BaseException | None, spec: McpServerSpec, trace: Trace) -> str:
    import httpx2
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    leaf = _leaf(error)
    match leaf:
        case None:
            return ""
        case TimeoutError():
            return f"it did not answer within {spec.connect_timeout:g} seconds"
        case MCPError() if trace.status in _STATUS:
            return _STATUS[trace.status]
        case MCPError() if trace.status >= 400:
            return f"it answered with HTTP status {trace.status}"
        case MCPError() if leaf.code == CONNECTION_CLOSED:
            return ""
        case MCPError():
            return f"it answered: {leaf.message[:300].rstrip('.')}"
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return f"nothing answers at {_place(spec)}"
        case httpx2.HTTPError():
            return f"the connection to {_place(spec)} broke ({type(leaf).__name__})"
        case OSError():
            return (leaf.strerror or str(leaf))[:300]
    return f"{type(leaf).__name__}: {str(leaf)[:300].rstrip('.')}"


def _leaf(error: BaseException | None) -> BaseException | None:
    """The first error in groups of groups that says something: a cancellation only follows from another."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _place(spec: McpServerSpec) -> str:
    return urlsplit(spec.url).netloc


def _last_line(trace: Trace) -> str:
    lines = trace.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1].strip()[:300].rstrip(".") if lines else ""
