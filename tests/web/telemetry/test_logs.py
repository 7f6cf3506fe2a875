"""Log lines are structured, as text or JSON, and have the trace of the request."""

import io
import json
import logging

import pytest

from opposable.web.telemetry.logs import create_formatter, log_to_stderr
from opposable.web.telemetry.tracing import CURRENT_TRACE, RequestTrace


@pytest.fixture
def trace():
    token = CURRENT_TRACE.set(RequestTrace("t-1"))
    yield
    CURRENT_TRACE.reset(token)


def create_record(error=None, **extra) -> logging.LogRecord:
    logger = logging.getLogger("opposable.web")
    return logger.makeRecord("opposable.web", logging.WARNING, "x.py", 1, "不 %s", ("ok",), error, extra=extra)


def test_a_json_line_has_its_fields_and_its_trace(trace):
    line = json.loads(create_formatter("json").format(create_record(run_id="r", seconds=0.5)))
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "opposable.web",
        "message": "不 ok",
        "run_id": "r",
        "seconds": 0.5,
        "trace_id": "t-1",
    }


def test_a_text_line_has_its_fields_and_its_trace(trace):
    line = create_formatter("text").format(create_record(run_id="r"))
    assert "[warning] 不 ok [opposable.web] run_id=r trace_id=t-1" in line
    assert "\n" not in line


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_an_error_has_its_traceback(log_format):
    try:
        int("broken")
    except ValueError as error:
        line = create_formatter(log_format).format(create_record((ValueError, error, error.__traceback__)))
    assert "ValueError: invalid literal" in (json.loads(line)["exception"] if log_format == "json" else line)


def test_libraries_log_from_level_warning_on():
    root, own = logging.getLogger(), logging.getLogger("opposable")
    before, levels, stream = root.handlers[:], (root.level, own.level), io.StringIO()
    try:
        log_to_stderr("json", stream)
        logging.getLogger("some_library").info("noise")
        logging.getLogger("some_library").warning("careful")
        logging.getLogger("opposable.runs").info("run started")
        logging.getLogger("opposable.runs").debug("noise")
    finally:
        root.handlers[:] = before
        root.setLevel(levels[0])
        own.setLevel(levels[1])
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["careful", "run started"]
