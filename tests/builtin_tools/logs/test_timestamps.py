"""Log timestamps are parsed in every format."""

from datetime import UTC, datetime

import pytest

from opposable.builtin_tools.logs.timestamps import parse_timestamp

CHANGED = datetime(2026, 11, 20, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-02 09:00:01,123", "2026-11-02T09:00:01.123000"),
        ("2026-11-02T09:00:01.123456789Z", "2026-11-02T09:00:01.123456+00:00"),
        ("2026/11/02 09:00:01", "2026-11-02T09:00:01"),
        ("2026-11-02 09:00:01 +0800", "2026-11-02T09:00:01+08:00"),
        ("2026-11-02 09:00:01 UTC", "2026-11-02T09:00:01+00:00"),
        ("02/Nov/2026:09:00:01 -0500", "2026-11-02T09:00:01-05:00"),
        ("Mon Nov 02 09:00:01.5 2026", "2026-11-02T09:00:01.500000"),
        ("Nov  2 09:00:01", "2026-11-02T09:00:01"),
        ("Dec 31 23:59:59", "2025-12-31T23:59:59"),
        ("Feb 29 10:00:00", "2024-02-29T10:00:00"),
        ("1102 09:00:01", "2026-11-02T09:00:01"),
        ("26/11/02 09:00:01", "2026-11-02T09:00:01"),
        ("2026年11月2日 09:00:01", "2026-11-02T09:00:01"),
        ("2026-13-45 09:00:01", None),
        ("Foo  2 09:00:01", None),
    ],
)
def test_timestamp_is_parsed(text, moment):
    read = parse_timestamp(text, CHANGED)
    assert (read and read.isoformat()) == moment
