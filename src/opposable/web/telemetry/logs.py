"""What a service logs, as text for people or as JSON for machines, each line with its trace."""

import logging
import sys
from datetime import UTC, datetime
from typing import Literal

import orjson

from opposable.web.telemetry.tracing import CURRENT_TRACE


class JsonFormatter(logging.Formatter):
    """A record as one JSON object: time, level, logger, message, trace_id, and the error where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if trace_id := CURRENT_TRACE.get().trace_id:
            told["trace_id"] = trace_id
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return orjson.dumps(told, default=str).decode("utf-8")


class TextFormatter(logging.Formatter):
    """A record as a line of text, with its trace at the end."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the error below it where there is one."""
        told = super().format(record)
        trace_id = CURRENT_TRACE.get().trace_id
        return f"{told} [{trace_id}]" if trace_id and not record.exc_info else told


def log_to_stderr(log_format: Literal["text", "json"]) -> None:
    """Have everything logged to standard error: ours from INFO on, others' from WARNING on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("opposable").setLevel(logging.INFO)
