import datetime

import pytest

from opposable.ask.intent.intent import TimeIntent
from opposable.ask.intent.periods import Period, get_previous_period, resolve_period
from opposable.ask.intent.time_expressions import find_time

TODAY = datetime.date(2025, 11, 15)
D = datetime.date


def days(start: str, end: str, **more: object) -> TimeIntent:
    return TimeIntent(start=D.fromisoformat(start), end=D.fromisoformat(end), **more)


def year(number: int, **more: object) -> TimeIntent:
    return TimeIntent(granularity="year", year=number, **more)


def quarter(of: int, number: int, **more: object) -> TimeIntent:
    return TimeIntent(granularity="quarter", year=of, quarter=number, **more)


def month(of: int, number: int, **more: object) -> TimeIntent:
    return TimeIntent(granularity="month", year=of, month=number, **more)


CASES = {
    "orders yesterday": days("2025-11-14", "2025-11-14", granularity="day"),
    "今天的订单": days("2025-11-15", "2025-11-15", granularity="day"),
    "the last 7 days": days("2025-11-09", "2025-11-15"),
    "过去三十天": days("2025-10-17", "2025-11-15"),
    "近三个月": days("2025-08-16", "2025-11-15"),
    "近半年": days("2025-05-16", "2025-11-15"),
    "this week": days("2025-11-10", "2025-11-16", granularity="week"),
    "上周": days("2025-11-03", "2025-11-09", granularity="week"),
    "本月": month(2025, 11),
    "上个月": month(2025, 10),
    "last month": month(2025, 10),
    "2023年3月": month(2023, 3),
    "2024年1-3月": quarter(2024, 1),
    "去年3至5月": days("2024-03-01", "2024-05-31"),
    "去年3月": month(2024, 3),
    "in March 2024": month(2024, 3),
    "三月": month(2025, 3),
    "上个季度": quarter(2025, 3),
    "2024年第三季度": quarter(2024, 3),
    "Q3 2024": quarter(2024, 3),
    "2024 Q3": quarter(2024, 3),
    "the third quarter of last year": quarter(2024, 3),
    "去年": year(2024),
    "前年": year(2023),
    "in 2024": year(2024),
    "今年上半年": days("2025-01-01", "2025-06-30"),
    "first half of 2024": days("2024-01-01", "2024-06-30"),
    "between 2023-03-01 and 2023-05-31": days("2023-03-01", "2023-05-31"),
    "from January 1993 to June 1993": days("1993-01-01", "1993-06-30"),
    "from January to June 1993": days("1993-01-01", "1993-06-30"),
    "2024年3月5日": days("2024-03-05", "2024-03-05", granularity="day"),
    "March 5, 2024": days("2024-03-05", "2024-03-05", granularity="day"),
    "since 2024": days("2024-01-01", "2025-11-15"),
    "2022年以前": TimeIntent(end=D(2021, 12, 31)),
    "after 2023": TimeIntent(start=D(2024, 1, 1)),
    "今年至今": year(2025, comparison="ytd"),
    "revenue year to date": year(2025, comparison="ytd"),
    "2024年同比": year(2024, comparison="yoy"),
    "2024 vs 2023": year(2024, comparison="yoy"),
    "2025年第二季度环比": quarter(2025, 2, comparison="qoq"),
    "上个月环比": month(2025, 10, comparison="mom"),
    "by quarter in 1995 compared to the year before": year(1995, comparison="yoy", grain="quarter"),
    "monthly sales for 2023": year(2023, grain="month"),
    "1994年到1996年每年": days("1994-01-01", "1996-12-31", grain="year"),
    "in 2023 and 2024": days("2023-01-01", "2024-12-31", grain="year"),
    "Q1流水": quarter(2025, 1),
    "2024年Q3销售额": quarter(2024, 3),
    "YTD销售额": year(2025, comparison="ytd"),
    "按月统计": TimeIntent(grain="month"),
    "which month": TimeIntent(grain="month"),
    "more than 2000 dollars": None,
    "前五个国家": None,
    "in 2024-02-30": None,
    "": None,
}


@pytest.mark.parametrize("words", CASES)
def test_time_words_are_read(words):
    assert find_time(words, TODAY).time == CASES[words]


def test_the_words_that_were_read_are_told():
    found = find_time("Revenue in Q3 2024 by month", TODAY)
    assert ["Revenue in Q3 2024 by month"[start:end] for start, end in found.spans] == ["in Q3 2024", "by month"]


def test_two_periods_that_do_not_touch_are_not_guessed_at():
    assert find_time("revenue in 2020 and in 2024", TODAY).ambiguities == ("the question names several periods",)


@pytest.mark.parametrize(
    ("time", "period"),
    [
        (month(2024, 2), Period(D(2024, 2, 1), D(2024, 2, 29))),
        (quarter(2024, 4), Period(D(2024, 10, 1), D(2024, 12, 31))),
        (TimeIntent(quarter=1), Period(D(2025, 1, 1), D(2025, 3, 31))),
        (year(2025, comparison="ytd"), Period(D(2025, 1, 1), TODAY)),
        (year(2023, comparison="ytd"), Period(D(2023, 1, 1), D(2023, 12, 31))),
        (TimeIntent(grain="month"), None),
    ],
)
def test_a_time_is_days(time, period):
    assert resolve_period(time, TODAY) == period


@pytest.mark.parametrize(
    ("period", "comparison", "earlier"),
    [
        (Period(D(2024, 2, 1), D(2024, 2, 29)), "yoy", Period(D(2023, 2, 1), D(2023, 2, 28))),
        (Period(D(2023, 2, 1), D(2023, 2, 28)), "mom", Period(D(2023, 1, 1), D(2023, 1, 31))),
        (Period(D(2024, 7, 1), D(2024, 9, 30)), "qoq", Period(D(2024, 4, 1), D(2024, 6, 30))),
        (Period(D(2025, 1, 1), D(2025, 11, 15)), "yoy", Period(D(2024, 1, 1), D(2024, 11, 15))),
    ],
)
def test_whole_months_stay_whole_when_looking_back(period, comparison, earlier):
    assert get_previous_period(period, comparison) == earlier
