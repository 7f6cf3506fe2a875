"""The clock knows zones by the names people use, and says what is wrong with the others."""

import importlib.util
import zoneinfo
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
def test_zones_by_the_names_people_use(name, zone):
    assert time(name)["timezone"] == zone


def test_the_answer_is_now_in_every_form():
    before = datetime.now(UTC).replace(microsecond=0)
    told = time("+08:00")
    moment = datetime.fromisoformat(told["time"])
    assert before <= moment <= datetime.now(UTC)
    assert moment.utcoffset() == timedelta(hours=8)
    assert told == {
        "timezone": "UTC+08:00",
        "time": moment.isoformat(),
        "date": moment.date().isoformat(),
        "weekday": moment.strftime("%A"),
        "unix": int(moment.timestamp()),
        "utc_offset": "+08:00",
    }


def test_local_is_this_machines_zone():
    told = time("local")
    assert told["timezone"] == f"local ({datetime.now().astimezone().tzname()})"
    assert datetime.fromisoformat(told["time"]).utcoffset() == datetime.now().astimezone().utcoffset()


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
def test_a_wrong_zone_is_told_with_near_names(name, sentence):
    with pytest.raises(InvalidArguments) as raised:
        time(name)
    assert sentence in str(raised.value)
    assert len(str(raised.value)) < 300


@pytest.mark.skipif(importlib.util.find_spec("tzdata") is not None, reason="zone data comes from the tzdata package")
def test_without_zone_data_the_sentence_says_what_still_works():
    zoneinfo.reset_tzpath(to=())
    zones._load_zones_by_name.cache_clear()
    try:
        with pytest.raises(ToolUnavailable, match="tzdata"):
            time("Europe/Oslo")
        assert time("UTC")["timezone"] == "UTC"
        assert time("+02:00")["timezone"] == "UTC+02:00"
    finally:
        zoneinfo.reset_tzpath()
        zones._load_zones_by_name.cache_clear()
