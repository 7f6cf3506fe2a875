"""Log formats with the trace of the request."""

import logging

import orjson

from opposable.web.telemetry.logs import JsonFormatter, TextFormatter
from opposable.web.telemetry.tracing import CURRENT_TRACE, RequestTrace


def test_a_log_line_has_its_trace():
    token = CURRENT_TRACE.set(RequestTrace("t-1"))
    try:
        record = logging.LogRecord("opposable.web", logging.WARNING, "x.py", 1, "不 %s", ("ok",), None)
        line = orjson.loads(JsonFormatter().format(record))
        assert (line["level"], line["logger"], line["message"], line["trace_id"]) == (
            "warning",
            "opposable.web",
            "不 ok",
            "t-1",
        )
        assert TextFormatter().format(record).endswith("WARNING opposable.web: 不 ok [t-1]")
    finally:
        CURRENT_TRACE.reset(token)
