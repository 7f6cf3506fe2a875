"""Log formats of the service, text or JSON, with the trace id of the request."""

import logging
import sys
from datetime import UTC, datetime
from typing import Literal

import orjson

from opposable.web.telemetry.tracing import CURRENT_TRACE


class JsonFormatter(logging.Formatter):
    """Formats a record as JSON: time, level, logger, message, trace_id and error."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if trace_id := CURRENT_TRACE.get().trace_id:
            fields["trace_id"] = trace_id
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return orjson.dumps(fields, default=str).decode("utf-8")


class TextFormatter(logging.Formatter):
    """Formats a record as a line of text that ends with the trace id."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, followed by the traceback of an error."""
        line = super().format(record)
        trace_id = CURRENT_TRACE.get().trace_id
        return f"{line} [{trace_id}]" if trace_id and not record.exc_info else line


def log_to_stderr(log_format: Literal["text", "json"]) -> None:
    """Log to standard error: Opposable from level INFO, libraries from level WARNING."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("opposable").setLevel(logging.INFO)
