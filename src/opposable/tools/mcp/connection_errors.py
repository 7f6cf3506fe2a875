"""Explanations for people: why an MCP server cannot be reached."""

from urllib.parse import urlsplit

from opposable.domain.specs import McpServerSpec
from opposable.safety.redaction import redact_known_secrets
from opposable.tools.mcp.transport import ConnectionDiagnostics

_STATUS_REASONS = {
    401: "it requires other credentials (401); see `headers`",
    403: "it refuses these credentials (403); see `headers`",
    404: "there is no MCP server at that address (404)",
    405: "there is no MCP server at that address (405)",
}


def describe_connection_error(
    error: BaseException | None, spec: McpServerSpec, diagnostics: ConnectionDiagnostics
) -> str:
    """Explain why a connection ended, with the last line that the server's program wrote, if any.

    Returns:
        A phrase without a final period. It may contain secrets, which the caller must redact.
    """
    if spec.command:
        last_line = _get_last_stderr_line(diagnostics)
        cause = _describe_cause(error, spec, diagnostics) or "the program ended"
        return f"{cause}; the last line of its output: {last_line}" if last_line else cause
    return _describe_cause(error, spec, diagnostics) or f"the connection to {_get_host(spec)} ended"


def _describe_cause(error: BaseException | None, spec: McpServerSpec, diagnostics: ConnectionDiagnostics) -> str:
    import httpx2  # lazy: the extra "mcp"
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    leaf = _get_first_leaf(error)
    match leaf:
        case None:
            return ""
        case TimeoutError():
            return f"it did not answer within {spec.connect_timeout:g} seconds"
        case MCPError() if diagnostics.http_status in _STATUS_REASONS:
            return _STATUS_REASONS[diagnostics.http_status]
        case MCPError() if diagnostics.http_status >= 400:
            return f"it answered with HTTP status {diagnostics.http_status}"
        case MCPError() if leaf.code == CONNECTION_CLOSED:
            return ""
        case MCPError():
            return f"it answered: {leaf.message[:300].rstrip('.')}"
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return f"nothing answers at {_get_host(spec)}"
        case httpx2.HTTPError():
            return f"the connection to {_get_host(spec)} broke ({type(leaf).__name__})"
        case OSError():
            return (leaf.strerror or str(leaf))[:300]
    return f"{type(leaf).__name__}: {str(leaf)[:300].rstrip('.')}"


def _get_first_leaf(error: BaseException | None) -> BaseException | None:
    """Return the first error of nested exception groups; the others are cancellations that follow from it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _get_host(spec: McpServerSpec) -> str:
    return urlsplit(spec.url).netloc


def _get_last_stderr_line(diagnostics: ConnectionDiagnostics) -> str:
    text = redact_known_secrets(diagnostics.stderr.decode(errors="replace"), diagnostics.secrets)
    lines = text.strip().splitlines()
    return lines[-1].strip()[:300].rstrip(".") if lines else ""
