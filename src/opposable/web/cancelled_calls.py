"""The result of a tool call whose client disconnected."""

import time

from opposable.domain.call_context import CallContext
from opposable.domain.tools import ToolResult
from opposable.tools.failure_messages import client_left_message


def create_cancelled_result(context: CallContext, name: str, started_at: float) -> ToolResult:
    """Return the result of a call that was cancelled. `started_at` is a time of `time.perf_counter`."""
    message = client_left_message(name, context.language)
    return ToolResult(context.call_id, name, message, "cancelled", seconds=time.perf_counter() - started_at)
