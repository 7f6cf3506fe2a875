"""Days that a request names by weekday."""

import pytest

from opposable.domain.tools import ToolDefinition
from opposable.models.python_protocol.call_builder import build_calls
from opposable.models.python_protocol.weekdays import find_requested_days, replace_ungrounded_days


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
    repairs: list[str] = []
    made = replace_ungrounded_days({"day": written, "n": 1}, find_requested_days(asked, asked), asked, repairs)
    assert made == {"day": meant, "n": 1}
    assert repairs == (["day counted from today"] if meant != written else [])


def test_the_current_date_may_precede_the_request():
    on = ToolDefinition("on", "", {"type": "object", "properties": {"day": {"type": "string"}}})
    said = "Current date: 2026-11-20\nThe forecast for Sunday"
    [call] = build_calls("on(day='2026-11-21')", (on,), said, "The forecast for Sunday")
    assert call.arguments_json == '{"day":"2026-11-22"}'
    assert call.repairs == ("day counted from today",)
