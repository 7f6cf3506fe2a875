"""Days that a request names by weekday."""

import orjson
import pytest

from opposable.domain.tools import ToolCall
from opposable.models.python_weekdays import with_days_counted


@pytest.mark.parametrize(
    ("asked", "written", "meant"),
    [
        ("The forecast for Saturday? Today is Tuesday, April 25th 2023.", "2023-04-26", "2023-04-29"),
        ("Today is 2026-11-20. Book a table for this Sunday.", "2026-11-23", "2026-11-22"),
        (
            "Today is Monday 2022-10-20. Move it to next Thursday at 4:30 PM",
            "2022-10-24T16:30:00Z",
            "2022-10-30T16:30:00Z",
        ),
        ("Today is Monday 2022-10-20. Move it to next Thursday", "2022-10-23", "2022-10-23"),
        ("今天是2026年11月20日，周五。下周三提醒我", "2026-11-24", "2026-11-25"),
        ("今天是 2026-11-20，星期天提醒我", "2026-11-21", "2026-11-22"),
        ("Today is 2026-11-20. What was the weather last Sunday?", "2026-11-15", "2026-11-15"),
        ("Today is 2026-11-20. Monday or Tuesday?", "2026-11-21", "2026-11-21"),
        ("Today is 2026-11-20. On Sunday, 29 November 2026", "2026-11-29", "2026-11-29"),
        ("Today is 2026-11-20. Tomorrow, please", "2026-11-21", "2026-11-21"),
        ("The forecast for Saturday?", "2023-04-26", "2023-04-26"),
        ("Today is a Friday. The forecast for Saturday?", "2023-04-26", "2023-04-26"),
        ("Today is 2026-11-20. Every Sunday since 2026-01-04", "2026-01-04", "2026-01-04"),
        ("Today is 2026-11-20. See you Sunday", "Sunday", "Sunday"),
    ],
)
def test_a_weekday_is_counted_from_today(asked, written, meant):
    call = ToolCall("1", "on", orjson.dumps({"day": written, "n": 1}).decode())
    made = with_days_counted(call, asked, asked)
    assert orjson.loads(made.arguments) == {"day": meant, "n": 1}
    assert made.repairs == (("day counted from today",) if meant != written else ())


def test_today_may_be_told_before_the_request():
    call = ToolCall("1", "on", '{"day": "2026-11-21"}')
    made = with_days_counted(call, "Current date: 2026-11-20\nThe forecast for Sunday", "The forecast for Sunday")
    assert made.arguments == '{"day":"2026-11-22"}'
