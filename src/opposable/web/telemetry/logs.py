"""The log of the service: structured lines as text or JSON, with the trace id of the request."""

import logging
import sys
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor

from opposable.web.telemetry.tracing import CURRENT_TRACE

LogFormat = Literal["text", "json"]


def create_formatter(log_format: LogFormat) -> logging.Formatter:
    """Create a formatter: time, level, logger, message, trace_id, and the `extra` fields of a record."""
    renderer: list[Processor] = [structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, pad_level=False)]
    if log_format == "json":
        renderer = [structlog.processors.EventRenamer("message"), structlog.processors.JSONRenderer(ensure_ascii=False)]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp" if log_format == "text" else "time"),
            structlog.stdlib.ExtraAdder(),
            _add_trace_id,
            structlog.processors.format_exc_info,
        ],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
    )


def log_to_stderr(log_format: LogFormat, stream: TextIO | None = None) -> None:
    """Log to standard error: Opposable from level INFO, libraries from level WARNING."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(create_formatter(log_format))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("opposable").setLevel(logging.INFO)


def _add_trace_id(logger: Any, method: str, event: EventDict) -> EventDict:
    if trace_id := CURRENT_TRACE.get().trace_id:
        event["trace_id"] = trace_id
    return event
