"""Time zones are found by common names, and unknown ones are reported."""

from datetime import UTC, datetime, timedelta

import pytest

from opposable.builtin_tools import time_zones as zones
from opposable.builtin_tools.clock import time
from opposable.domain.errors import InvalidArguments, ToolUnavailable


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("", "UTC"),
        ("UTC", "UTC"),
        ("gmt", "UTC"),
        ("Asia/Shanghai", "Asia/Shanghai"),
        ("asia/shanghai", "Asia/Shanghai"),
        ("Shanghai", "Asia/Shanghai"),
        ("Beijing", "Asia/Shanghai"),
        ("Asia/Beijing", "Asia/Shanghai"),
        ("北京", "Asia/Shanghai"),
        ("北京时间", "Asia/Shanghai"),
        ("上海市", "Asia/Shanghai"),
        ("中国", "Asia/Shanghai"),
        ("China Standard Time", "Asia/Shanghai"),
        ("香港", "Asia/Hong_Kong"),
        ("东京时间", "Asia/Tokyo"),
        ("New York", "America/New_York"),
        ("new york time", "America/New_York"),
        ("纽约", "America/New_York"),
        ("San Francisco", "America/Los_Angeles"),
        ("PST", "America/Los_Angeles"),
        ("London, UK", "Europe/London"),
        ("伦敦", "Europe/London"),
        ("India", "Asia/Kolkata"),
        ("Buenos Aires", "America/Argentina/Buenos_Aires"),
        ("+08:00", "UTC+08:00"),
        ("UTC+8", "UTC+08:00"),
        ("GMT-5", "UTC-05:00"),
        ("+0530", "UTC+05:30"),
    ],
)
def test_zone_is_found_by_common_names(name, zone):
    assert time(name)["timezone"] == zone


def test_result_has_the_time_in_every_form():
    before = datetime.now(UTC).replace(microsecond=0)
    result = time("+08:00")
    moment = datetime.fromisoformat(result["time"])
    assert before <= moment <= datetime.now(UTC)
    assert moment.utcoffset() == timedelta(hours=8)
    assert result == {
        "timezone": "UTC+08:00",
        "time": moment.isoformat(),
        "date": moment.date().isoformat(),
        "weekday": moment.strftime("%A"),
        "unix": int(moment.timestamp()),
        "utc_offset": "+08:00",
    }


def test_local_is_the_zone_of_this_machine():
    result = time("local")
    assert result["timezone"] == f"local ({datetime.now().astimezone().tzname()})"
    assert datetime.fromisoformat(result["time"]).utcoffset() == datetime.now().astimezone().utcoffset()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Asia/Shangai", "did you mean Asia/Shanghai"),
        ("CST", "several zones are meant by that; use one of Asia/Shanghai, America/Chicago"),
        ("美国", "several zones are meant"),
        ("+25:00", "between -14:00 and +14:00"),
        ("../../etc/passwd", "use a name such as"),
        ("x" * 100_000, "use a name such as"),
    ],
)
def test_unknown_zone_is_reported_with_similar_names(name, sentence):
    with pytest.raises(InvalidArguments) as raised:
        time(name)
    assert sentence in str(raised.value)
    assert len(str(raised.value)) < 300


def test_missing_zone_data_is_reported_with_what_still_works(monkeypatch):
    monkeypatch.setattr(zones, "available_timezones", set)
    zones._load_zones_by_name.cache_clear()
    try:
        with pytest.raises(ToolUnavailable, match="tzdata"):
            time("Europe/Oslo")
        assert time("UTC")["timezone"] == "UTC"
        assert time("+02:00")["timezone"] == "UTC+02:00"
    finally:
        zones._load_zones_by_name.cache_clear()
