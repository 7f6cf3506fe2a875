import datetime

import pytest

from opposable.ask.intent.intent import TimeIntent
from opposable.ask.intent.periods import Period, get_previous_period, resolve_period

TODAY = datetime.date(2025, 11, 15)
D = datetime.date


@pytest.mark.parametrize(
    ("time", "period"),
    [
        (TimeIntent(year=2024, month=2), Period(D(2024, 2, 1), D(2024, 2, 29))),
        (TimeIntent(year=2024, quarter=4), Period(D(2024, 10, 1), D(2024, 12, 31))),
        (TimeIntent(quarter=1), Period(D(2025, 1, 1), D(2025, 3, 31))),
        (TimeIntent(year=2025, comparison="ytd"), Period(D(2025, 1, 1), TODAY)),
        (TimeIntent(year=2023, comparison="ytd"), Period(D(2023, 1, 1), D(2023, 12, 31))),
        (TimeIntent(grain="month"), None),
    ],
)
def test_a_time_is_resolved_to_days(time, period):
    assert resolve_period(time, TODAY) == period


@pytest.mark.parametrize(
    ("period", "comparison", "previous"),
    [
        (Period(D(2024, 2, 1), D(2024, 2, 29)), "yoy", Period(D(2023, 2, 1), D(2023, 2, 28))),
        (Period(D(2023, 2, 1), D(2023, 2, 28)), "mom", Period(D(2023, 1, 1), D(2023, 1, 31))),
        (Period(D(2024, 7, 1), D(2024, 9, 30)), "qoq", Period(D(2024, 4, 1), D(2024, 6, 30))),
        (Period(D(2025, 1, 1), D(2025, 11, 15)), "yoy", Period(D(2024, 1, 1), D(2024, 11, 15))),
    ],
)
def test_whole_months_have_whole_previous_months(period, comparison, previous):
    assert get_previous_period(period, comparison) == previous
