import datetime

import pytest

from opposable.ask.intent.intent import TimeIntent
from opposable.ask.intent.parser import SemanticParser
from opposable.ask.intent.time_expressions import CONSUMED_CHARACTER as BLANK
from opposable.ask.intent.time_expressions import find_time

TODAY = datetime.date(2025, 11, 15)
D = datetime.date


def build_days(start: str, end: str, **fields: object) -> TimeIntent:
    return TimeIntent(start=D.fromisoformat(start), end=D.fromisoformat(end), **fields)


def build_year(number: int, **fields: object) -> TimeIntent:
    return TimeIntent(granularity="year", year=number, **fields)


def build_quarter(year: int, number: int, **fields: object) -> TimeIntent:
    return TimeIntent(granularity="quarter", year=year, quarter=number, **fields)


def build_month(year: int, number: int, **fields: object) -> TimeIntent:
    return TimeIntent(granularity="month", year=year, month=number, **fields)


CASES = {
    "orders yesterday": build_days("2025-11-14", "2025-11-14", granularity="day"),
    "今天的订单": build_days("2025-11-15", "2025-11-15", granularity="day"),
    "the last 7 days": build_days("2025-11-09", "2025-11-15"),
    "过去三十天": build_days("2025-10-17", "2025-11-15"),
    "近三个月": build_days("2025-08-16", "2025-11-15"),
    "近半年": build_days("2025-05-16", "2025-11-15"),
    "this week": build_days("2025-11-10", "2025-11-16", granularity="week"),
    "上周": build_days("2025-11-03", "2025-11-09", granularity="week"),
    "本月": build_month(2025, 11),
    "上个月": build_month(2025, 10),
    "上上周": build_days("2025-10-27", "2025-11-02", granularity="week"),
    "上上季度": build_quarter(2025, 2),
    "last month": build_month(2025, 10),
    "2023年3月": build_month(2023, 3),
    "2024年1-3月": build_quarter(2024, 1),
    "去年3至5月": build_days("2024-03-01", "2024-05-31"),
    "去年3月": build_month(2024, 3),
    "in March 2024": build_month(2024, 3),
    "三月": build_month(2025, 3),
    "上个季度": build_quarter(2025, 3),
    "2024年第三季度": build_quarter(2024, 3),
    "Q3 2024": build_quarter(2024, 3),
    "2024 Q3": build_quarter(2024, 3),
    "the third quarter of last year": build_quarter(2024, 3),
    "去年": build_year(2024),
    "前年": build_year(2023),
    "in 2024": build_year(2024),
    "今年上半年": build_days("2025-01-01", "2025-06-30"),
    "first half of 2024": build_days("2024-01-01", "2024-06-30"),
    "between 2023-03-01 and 2023-05-31": build_days("2023-03-01", "2023-05-31"),
    "from January 1993 to June 1993": build_days("1993-01-01", "1993-06-30"),
    "from January to June 1993": build_days("1993-01-01", "1993-06-30"),
    "2024年3月5日": build_days("2024-03-05", "2024-03-05", granularity="day"),
    "March 5, 2024": build_days("2024-03-05", "2024-03-05", granularity="day"),
    "since 2024": build_days("2024-01-01", "2025-11-15"),
    "2022年以前": TimeIntent(end=D(2021, 12, 31)),
    "after 2023": TimeIntent(start=D(2024, 1, 1)),
    "今年至今": build_year(2025, comparison="ytd"),
    "revenue year to date": build_year(2025, comparison="ytd"),
    "2024年同比": build_year(2024, comparison="yoy"),
    "2025年第二季度环比": build_quarter(2025, 2, comparison="qoq"),
    "上个月环比": build_month(2025, 10, comparison="mom"),
    "by quarter in 1995 compared to the year before": build_year(1995, comparison="yoy", grain="quarter"),
    "monthly sales for 2023": build_year(2023, grain="month"),
    "1994年到1996年每年": build_days("1994-01-01", "1996-12-31", grain="year"),
    "2024年1月到3月": build_quarter(2024, 1),
    "2024H1 A2024 2024A": build_days("2024-01-01", "2024-06-30"),
    "Q1流水": build_quarter(2025, 1),
    "2024年Q3销售额": build_quarter(2024, 3),
    "YTD销售额": build_year(2025, comparison="ytd"),
    "YTD June 2024": build_month(2024, 6, comparison="ytd"),
    "YTD 2024": build_year(2024, comparison="ytd"),
    "2024年累计流水": build_year(2024, comparison="ytd"),
    "今年至今同比": build_days("2025-01-01", "2025-11-15", comparison="yoy"),
    "二〇二四年的流水": build_year(2024),
    "二零二三年三月": build_month(2023, 3),
    "2024H1": build_days("2024-01-01", "2024-06-30"),
    "2024年H2流水": build_days("2024-07-01", "2024-12-31"),
    "from 2023 to 2024": build_days("2023-01-01", "2024-12-31"),
    "按月统计": TimeIntent(grain="month"),
    "which month": TimeIntent(grain="month"),
    "more than 2000 dollars": None,
    "前五个国家": None,
    "in 2024-02-30": None,
    "": None,
}


@pytest.mark.parametrize("words", CASES)
def test_time_expressions_are_parsed(words):
    assert find_time(words, TODAY).time == CASES[words]


def test_the_parsed_characters_are_blank():
    result = find_time("Revenue in Q3 2024 by month", TODAY)
    assert result.text == f"revenue {BLANK * len('in Q3 2024')} {BLANK * len('by month')}"


@pytest.mark.parametrize("words", ["in 2020 and in 2024", "2024 vs 2023", "in 2023 and 2024", "in the last year"])
def test_two_separate_periods_are_ambiguous(words):
    assert find_time(words, TODAY).ambiguities == ["the question names several periods"]


@pytest.mark.parametrize(
    ("words", "is_clear"),
    [
        *(("vs the same month last year", False), ("in 2024 vs the same quarter last year", False)),
        *(("compared to last month", False), ("in 2023 compared to last year", False), ("2024年与去年相比", False)),
        *(("10月与上月相比", False), ("this week vs the same week last year", False), ("本周同比", False)),
        *(("in October vs the same month last year", True), ("by month vs the same month last year", True)),
        *(("this month vs last month", True), ("in Q1 2024 vs the previous quarter", True), ("vs last year", True)),
        *(("本月与上月相比", True), ("10月与去年同期相比", True), ("in June compared to last year", True)),
    ],
)
def test_the_compared_period_is_that_before_the_period(words, is_clear):
    expected = [] if is_clear else ["what a change is measured against"]
    assert find_time(words, TODAY).ambiguities == expected


@pytest.mark.parametrize("day", ["2025-01-01", "2025-11-01", "2025-11-15", "2025-11-30", "2025-12-31"])
def test_two_periods_to_date_are_ambiguous_on_every_day(day):
    today = datetime.date.fromisoformat(day)
    assert find_time("本月至今和年初至今的流水", today).ambiguities == ["the question names several periods"]


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        ("2024年同比和环比", "环比"),
        ("yoy and qoq", "qoq"),
        ("monthly by quarter", "monthly"),
        ("最近半个月", "最近半个月"),
    ],
)
def test_a_second_comparison_or_grain_and_an_unknown_length_are_not_parsed(words, rest):
    assert rest in find_time(words, TODAY).text


def test_a_repeated_comparison_is_one():
    result = find_time("revenue yoy and orders yoy", TODAY)
    assert (result.time, result.text) == (TimeIntent(comparison="yoy"), f"revenue {BLANK * 3} and orders {BLANK * 3}")


@pytest.mark.parametrize(
    "question",
    [
        "orders until March 2024",
        "orders from 2024-03-31",
        "orders from 2024",
        "orders to 2024",
        "2024.03销售额",
        "本周末订单数",
        "去年同期",
    ],
)
def test_a_period_that_is_not_read_is_left_to_the_model(question, shop_model):
    parsed = SemanticParser(shop_model, {}).parse(question, TODAY)
    assert (parsed.intent.time and parsed.intent.time.comparison, parsed.is_resolved) == (None, False)


def test_a_period_that_begins_on_a_day_or_after_it_is_not_read_as_after_it(shop_model):
    assert not SemanticParser(shop_model, {}).parse("orders on or after 2024-03-31", TODAY).is_resolved
