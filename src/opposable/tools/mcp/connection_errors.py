"""Explanations for people: why an MCP server cannot be reached."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from opposable.domain.specs import McpServerSpec
from opposable.safety.redaction import redact_known_secrets
from opposable.tools.mcp.transport import ConnectionDiagnostics

if TYPE_CHECKING:
    from mcp import MCPError

_CLOSED_MESSAGES = ("Connection closed", "SSE stream ")
"""The beginnings of the SDK's messages for a connection that ended."""
_STATUS_REASONS = {
    401: "it requires other credentials (401); see `headers`",
    403: "it refuses these credentials (403); see `headers`",
    404: "there is no MCP server at that address (404)",
    405: "there is no MCP server at that address (405)",
}


def is_connection_closed(error: "MCPError", diagnostics: ConnectionDiagnostics) -> bool:
    """Return whether an error means that the connection or its session ended.

    Servers use the code of the SDK's error for failures of their own, too.
    """
    from mcp.types import CONNECTION_CLOSED  # lazy: the extra "mcp"

    is_from_sdk = error.message.startswith(_CLOSED_MESSAGES) or diagnostics.http_status >= 400
    return error.code == CONNECTION_CLOSED and is_from_sdk


def describe_connection_error(
    error: BaseException | None, spec: McpServerSpec, diagnostics: ConnectionDiagnostics
) -> str:
    """Explain why a connection ended, with the last line that the server's program wrote, if any.

    Returns:
        A phrase without a final period. It may contain secrets, which the caller must redact.
    """
    if spec.command:
        text = redact_known_secrets(diagnostics.stderr.decode(errors="replace"), diagnostics.secrets)
        last_line = (text.strip().splitlines() or [""])[-1].strip()[:300].rstrip(".")
        cause = _describe_cause(error, spec, diagnostics) or "the program ended"
        return f"{cause}; the last line of its output: {last_line}" if last_line else cause
    return _describe_cause(error, spec, diagnostics) or f"the connection to {urlsplit(spec.url).netloc} ended"


def _describe_cause(error: BaseException | None, spec: McpServerSpec, diagnostics: ConnectionDiagnostics) -> str:
    import httpx2  # lazy: the extra "mcp"
    from mcp import MCPError

    leaf = error
    while isinstance(leaf, BaseExceptionGroup):  # further errors are cancellations that follow from the first
        leaf = leaf.exceptions[0]
    host = urlsplit(spec.url).netloc
    match leaf:
        case None:
            return ""
        case TimeoutError():
            return f"it did not answer within {spec.connect_timeout:g} seconds"
        case MCPError() if diagnostics.http_status in _STATUS_REASONS:
            return _STATUS_REASONS[diagnostics.http_status]
        case MCPError() if diagnostics.http_status >= 400:
            return f"it answered with HTTP status {diagnostics.http_status}"
        case MCPError() if is_connection_closed(leaf, diagnostics):
            return ""
        case MCPError():
            return f"it answered: {leaf.message[:300].rstrip('.')}"
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return f"nothing answers at {host}"
        case httpx2.HTTPError():
            return f"the connection to {host} broke ({type(leaf).__name__})"
        case OSError():
            return (leaf.strerror or str(leaf))[:300]
    return f"{type(leaf).__name__}: {str(leaf)[:300].rstrip('.')}"
