"""Logs of common formats are counted; damaged, large and unusual ones are reported."""

import gzip
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from opposable.builtin_tools.logs.log_transform import LogTransform
from opposable.domain.errors import ToolFailed, ToolRefused

DATA = Path(__file__).parents[1] / "data"
CHANGED = datetime(2026, 11, 20, tzinfo=UTC).timestamp()


@pytest.fixture
def logs(tmp_path):
    """The samples, last changed on one known day."""
    for sample in DATA.glob("*.log"):
        copy = tmp_path / sample.name
        copy.write_bytes(sample.read_bytes())
        os.utime(copy, (CHANGED, CHANGED))
    return tmp_path


def build_level_counts(fatal=0, critical=0, error=0, warning=0, info=0, debug=0, none=0):
    counts = {
        "FATAL": fatal,
        "CRITICAL": critical,
        "ERROR": error,
        "WARNING": warning,
        "INFO": info,
        "DEBUG": debug,
        "NONE": none,
    }
    return {level: count for level, count in counts.items() if count}


@pytest.mark.parametrize(
    ("name", "form", "counts", "top", "first", "last"),
    [
        (
            "python.log",
            "python logging",
            build_level_counts(critical=1, error=3, warning=1, info=2, debug=1),
            (2, "Payment failed for order <n>: card declined"),
            "2026-11-02T09:00:01",
            "2026-11-02T09:06:00",
        ),
        (
            "basic.log",
            "python logging",
            build_level_counts(error=2, warning=1, info=1),
            (2, "Connection to <ip> refused"),
            None,
            None,
        ),
        (
            "loguru.log",
            "loguru",
            build_level_counts(error=2, info=2),
            (2, "User <n> not found"),
            "2026-11-02T09:00:01",
            "2026-11-02T09:40:02",
        ),
        (
            "log4j.log",
            "log4j/logback",
            build_level_counts(fatal=1, error=2, warning=1, info=1),
            (2, "Could not load order <n> | java.lang.NullPointerException: customer is null"),
            "2026-11-02T09:00:00",
            "2026-11-02T09:00:06",
        ),
        (
            "logback.log",
            "log4j/logback",
            build_level_counts(error=2, info=1, debug=1),
            (2, "Message <n> lost"),
            "09:00:00",
            "09:00:03",
        ),
        (
            "spring.log",
            "spring boot",
            build_level_counts(error=2, warning=1, info=1),
            (2, "Gateway answered <n> after <n> ms"),
            "2026-11-02T09:00:00+08:00",
            "2026-11-02T09:00:19+08:00",
        ),
        (
            "syslog3164.log",
            "syslog (RFC 3164)",
            build_level_counts(error=3, none=3),
            (2, "Failed password for root from <ip> port <n> ssh<n>"),
            "2026-11-02T09:00:01",
            "2026-11-02T09:15:00",
        ),
        (
            "syslog5424.log",
            "syslog (RFC 5424)",
            build_level_counts(critical=1, error=2, info=1),
            (2, "connection to relay <n> lost"),
            "2026-11-02T09:00:00+00:00",
            "2026-11-02T11:00:04+00:00",
        ),
        (
            "access.log",
            "access log",
            build_level_counts(error=3, warning=2, info=2),
            (2, "502 POST <path>"),
            "2026-11-02T09:00:00+08:00",
            "2026-11-02T09:03:09+08:00",
        ),
        (
            "nginx_error.log",
            "nginx error log",
            build_level_counts(critical=1, error=2, info=1),
            (2, "connect() failed (<n>: Connection refused) while connecting to upstream"),
            "2026-11-02T09:00:00",
            "2026-11-02T09:02:09",
        ),
        (
            "apache_error.log",
            "apache error log",
            build_level_counts(error=2, info=1),
            (2, "AH<n>: Invalid URI in request"),
            "2026-11-02T09:00:00",
            "2026-11-02T09:00:06",
        ),
        (
            "json.log",
            "JSON lines",
            build_level_counts(error=4, warning=1, info=1),
            (3, "user <n> has no cart"),
            "2026-11-02T01:00:00+00:00",
            "2026-11-02T01:00:09+00:00",
        ),
        (
            "logfmt.log",
            "logfmt",
            build_level_counts(error=2, info=1),
            (2, "dial tcp <ip>: connection refused"),
            "2026-11-02T09:00:00+00:00",
            "2026-11-02T09:00:20+00:00",
        ),
        (
            "zap.log",
            "zap",
            build_level_counts(error=2, info=1),
            (2, "acquire timed out"),
            "2026-11-02T09:00:00+00:00",
            "2026-11-02T09:00:02+00:00",
        ),
        (
            "klog.log",
            "klog",
            build_level_counts(fatal=1, error=2, warning=1, info=1),
            (2, "Pod shop-<hex>-x<n>x<n>z failed to start: exit code <n>"),
            "2026-11-02T09:00:00",
            "2026-11-02T09:00:04",
        ),
        (
            "brackets.log",
            "timestamp and level",
            build_level_counts(error=2, warning=2, info=1),
            (2, "token <hex> rejected"),
            "2026-11-02T09:00:00+08:00",
            "2026-11-02T09:00:04",
        ),
        (
            "chinese.log",
            "timestamp and level",
            build_level_counts(error=3, warning=1, info=2),
            (2, "订单<n>支付失败：余额不足"),
            "2026-11-02T09:00:00",
            "2026-11-02T09:09:00",
        ),
        (
            "mixed.log",
            "mixed: timestamp and level, JSON lines",
            build_level_counts(error=3, info=1),
            (3, "disk <n> failed"),
            "2026-11-02T09:00:00",
            "2026-11-02T09:00:03",
        ),
        (
            "container.log",
            "mixed: timestamp and level, container log",
            build_level_counts(error=1, info=1, none=1),
            (1, "cannot bind port 80"),
            "2026-11-02T09:00:00",
            "2026-11-02T09:00:02",
        ),
    ],
)
def test_each_format_is_recognized_and_counted(logs, name, form, counts, top, first, last):
    result = LogTransform([logs]).log_transform(name)
    assert result["format"] == form
    assert result["levels"] == counts
    assert (result["top_errors"][0]["count"], result["top_errors"][0]["message"]) == top
    assert result.get("time_range") == ({"first": first, "last": last} if first else None)
    assert result["lines"] == len((DATA / name).read_text(errors="replace").splitlines())


def test_summary_of_a_log(logs):
    assert LogTransform([logs]).log_transform("python.log", limit=2) == {
        "path": "python.log",
        "lines": 13,
        "format": "python logging",
        "entries": 8,
        "levels": {"CRITICAL": 1, "ERROR": 3, "WARNING": 1, "INFO": 2, "DEBUG": 1},
        "top_errors": [
            {
                "count": 2,
                "message": "Payment failed for order <n>: card declined",
                "first_line": 4,
                "example": "Payment failed for order 1001: card declined",
            },
            {
                "count": 1,
                "message": "Job 7f3c2a91-55d0-4b6e-9a55-0d8d2f6b1e11 crashed | ZeroDivisionError: division by zero",
                "first_line": 6,
            },
        ],
        "time_range": {"first": "2026-11-02T09:00:01", "last": "2026-11-02T09:06:00"},
        "histogram": {
            "per": "minute",
            "entries": {
                "2026-11-02 09:00": 2,
                "2026-11-02 09:01": 1,
                "2026-11-02 09:02": 1,
                "2026-11-02 09:03": 1,
                "2026-11-02 09:04": 1,
                "2026-11-02 09:05": 1,
                "2026-11-02 09:06": 1,
            },
            "errors": {
                "2026-11-02 09:02": 1,
                "2026-11-02 09:03": 1,
                "2026-11-02 09:04": 1,
                "2026-11-02 09:06": 1,
            },
        },
        "parsed_share": 1.0,
        "attached_lines": 5,
    }


def test_access_log_is_counted_by_status(logs):
    result = LogTransform([logs]).log_transform("access.log")
    assert result["status"] == {"200": 2, "400": 1, "404": 1, "500": 1, "502": 2}


def test_guessed_levels_and_unparsed_lines_are_reported(logs):
    transform = LogTransform([logs])
    assert transform.log_transform("syslog3164.log")["levels_guessed"] == 2
    mixed = transform.log_transform("mixed.log")
    assert (mixed["parsed_share"], mixed["unparsed_lines"]) == (0.571, 3)


def test_empty_and_plain_files_are_reported(logs):
    transform = LogTransform([logs])
    assert transform.log_transform("empty.log")["notes"] == ["The file is empty."]
    assert transform.log_transform("plain.log")["notes"] == ["No line is in a known log format; read the file instead."]


def test_compressed_log_equals_the_plain_one(logs):
    (logs / "python.log.gz").write_bytes(gzip.compress((DATA / "python.log").read_bytes()))
    transform = LogTransform([logs])
    packed = transform.log_transform("python.log.gz")
    assert packed == transform.log_transform("python.log") | {"path": "python.log.gz"}


def test_truncated_compressed_log_is_read_partially(logs):
    text = "".join(f"2026-11-02 09:00:00 ERROR disk {n * 7919} failed\n" for n in range(20_000)).encode()
    (logs / "cut.log.gz").write_bytes(gzip.compress(text)[:-3000])
    result = LogTransform([logs]).log_transform("cut.log.gz")
    assert result["levels"]["ERROR"] > 1000
    assert result["notes"][0].startswith("Partial: the file is damaged")


def test_decompression_bomb_is_stopped(logs):
    (logs / "bomb.log.gz").write_bytes(gzip.compress(b"0" * 200_000_000, compresslevel=1))
    result = LogTransform([logs], timeout_seconds=0.3).log_transform("bomb.log.gz")
    assert result["lines"] <= 1


@pytest.mark.parametrize("encoding", ["gb18030", "utf-8-sig", "utf-16"])
def test_chinese_log_is_decoded(logs, encoding):
    (logs / "other.log").write_bytes((DATA / "chinese.log").read_text("utf-8").encode(encoding))
    transform = LogTransform([logs])
    assert transform.log_transform("other.log") == transform.log_transform("chinese.log") | {"path": "other.log"}


def test_reading_stops_at_the_limits(logs):
    (logs / "big.log").write_text("2026-11-02 09:00:00 ERROR disk failed\n" * 60_000)
    assert LogTransform([logs], timeout_seconds=0).log_transform("big.log")["notes"] == [
        "Partial: reading was stopped after 0 seconds."
    ]
    result = LogTransform([logs], max_bytes=1_000_000).log_transform("big.log")
    assert result["notes"] == ["Partial: only the first 1 MB of text were read."]
    assert result["levels"]["ERROR"] == result["lines"] < 30_000


def test_time_unit_grows_with_the_time_range(logs):
    (logs / "year.log").write_text(
        "".join(f"2025-{1 + n // 28:02}-{1 + n % 28:02} 10:00:00 INFO x\n" for n in range(12 * 28))
    )
    histogram = LogTransform([logs]).log_transform("year.log")["histogram"]
    assert histogram == {"per": "month", "entries": {f"2025-{month:02}": 28 for month in range(1, 13)}}


def test_very_long_line_is_one_line(logs):
    (logs / "long.log").write_text("2026-11-02 09:00:00 ERROR " + "x" * 500_000 + "\n2026-11-02 09:00:00 INFO done\n")
    result = LogTransform([logs]).log_transform("long.log")
    assert (result["lines"], result["levels"]) == (2, {"ERROR": 1, "INFO": 1})
    assert len(result["top_errors"][0]["message"]) <= 200


def test_distinct_messages_are_bounded(logs):
    words = [chr(97 + n % 26) + chr(97 + n // 26 % 26) + chr(97 + n // 676) for n in range(6000)]
    (logs / "many.log").write_text("".join(f"2026-11-02 09:00:00 ERROR {word} failed\n" for word in words))
    result = LogTransform([logs]).log_transform("many.log", limit=1)
    assert result["top_errors"] == [
        {"count": 1000, "message": "(other messages)", "first_line": 5001, "example": f"{words[5000]} failed"}
    ]


def test_warnings_are_listed_when_there_are_no_errors(logs):
    (logs / "calm.log").write_text("2026-11-02 09:00:00 WARN slow 12 ms\n2026-11-02 09:00:01 WARN slow 14 ms\n")
    result = LogTransform([logs]).log_transform("calm.log")
    assert result["top_errors"] == []
    assert result["top_warnings"] == [{"count": 2, "message": "slow <n> ms", "first_line": 1, "example": "slow 12 ms"}]


@pytest.mark.parametrize(
    "start", ["", "2026-11-02 09:00:00 ERROR ", "a=1 level=x ", "1.2.3.4 - - ", "{", "Nov  2 09:00:01 a "]
)
@pytest.mark.parametrize(
    "unit", ["a", "(", "[", "a.", '"', "/a", "0a", "a=", "| ", "a | ", "aError.", "1:", " ", "a.b:1"]
)
def test_no_line_makes_parsing_slow(logs, start, unit):
    (logs / "odd.log").write_text("2026-11-02 09:00:00 ERROR x\n" + start + unit * (60_000 // len(unit)) + "\n")
    begin = time.process_time()
    assert LogTransform([logs]).log_transform("odd.log")["lines"] == 2
    assert time.process_time() - begin < 1


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        '{"a":1}',
        '{"time":"x","level":"²"}',
        '{"level":"' + "9" * 5000 + '","msg":"x"}',
        '{"level":true,"ts":1e400}',
        '{"log":"{\\"log\\":\\"{}\\"}"}',
        "a | " * 5000,
        "time=Nov level=error msg=x",
        "[" * 60_000,
        "2026-99-99 99:99:99 ERROR x",
        "\x00\x01",
    ],
)
def test_odd_lines_are_counted(logs, line):
    (logs / "odd.log").write_text(f"2026-11-02 09:00:00 ERROR x\n{line}\n")
    result = LogTransform([logs]).log_transform("odd.log")
    assert (result["lines"], result["levels"]["ERROR"] >= 1) == (2, True)


def test_folder_missing_file_and_binary_file_are_reported(logs):
    (logs / "old").mkdir()
    (logs / "old" / "a.log").write_text("x")
    (logs / "core").write_bytes(b"\x7fELF" + bytes(5000))
    transform = LogTransform([logs])
    with pytest.raises(ToolFailed, match=r"^old is a folder; give one file, such as old/a\.log\.$"):
        transform.log_transform("old")
    with pytest.raises(ToolFailed, match=r"^There is no 'pyton\.log'\. Did you mean python\.log"):
        transform.log_transform("pyton.log")
    with pytest.raises(ToolRefused, match="core is not a text file"):
        transform.log_transform("core")


def test_demo_log_has_its_known_counts():
    files = Path(__file__).parents[3] / "examples" / "data" / "files"
    result = LogTransform([files]).log_transform("logs/app.log", limit=1)
    assert result["levels"] == {"CRITICAL": 1, "ERROR": 20, "WARNING": 32, "INFO": 217, "DEBUG": 30}
    assert result["top_errors"][0]["count"] == 11
    assert result["top_errors"][0]["message"] == "Payment gateway timed out after <n> ms for order <n>"
