"""Finds the time of a question: its period, grain and comparison.

The patterns are searched with `re.ASCII`: without it there is no word boundary between "q1" and a Chinese character.
"""

import datetime
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from opposable.ask.intent.date_parsing import (
    CHINESE_YEAR_PATTERN,
    DATE_PATTERN,
    SMALL_NUMBER_PATTERN,
    parse_date_period,
)
from opposable.ask.intent.intent import Comparison, Grain, TimeIntent
from opposable.ask.intent.messages import MONTHLY_TREND, SEVERAL_PERIODS, describe_rolling_period
from opposable.ask.intent.number_parsing import NUMBER_PATTERN, parse_number
from opposable.ask.intent.periods import Period, get_granularity, get_unit, shift_day
from opposable.domain.localized_text import LocalizedText
from opposable.domain.text_normalization import lowercase_halfwidth

Span = tuple[int, int]
"""Start and end (exclusive) of some characters of the question."""

ComparisonKind = Comparison | Literal["before"] | None
"""A comparison; "before" is one with the period before, whose length is not known yet."""

_GRAIN_BY_WORD: dict[str, Grain] = {
    "year": "year", "annual": "year", "quarter": "quarter", "month": "month", "week": "week", "dai": "day", "day": "day",
    "年": "year", "季": "quarter", "季度": "quarter", "月": "month", "周": "week", "星期": "week", "天": "day", "日": "day",
}  # fmt: skip
_PREVIOUS_PATTERN = r"(?:previous|preceding|prior|last|past)"
_COMPARED_WITH_PATTERN = r"\b(?:compared? (?:to|with|against)|versus|vs\.?|relative to) (?:the )?"
_COMPARISON_PATTERNS: tuple[tuple[str, ComparisonKind], ...] = (
    (
        r"\byoy\b|\byear[- ]over[- ]year\b|\byear[- ]on[- ]year\b|同比|[与和跟较比]?(?:去年|上年)?同期(?:相比|对比)?",
        "yoy",
    ),
    (rf"{_COMPARED_WITH_PATTERN}(?:same \w+ (?:of )?(?:the )?)?(?:year before|{_PREVIOUS_PATTERN} year)", "yoy"),
    (r"[与和跟较比](?:去年|上年|上一年|前一年)(?:相比|比较|对比)?", "yoy"),
    (
        rf"\bqoq\b|\bquarter[- ]o(?:ver|n)[- ]quarter\b|{_COMPARED_WITH_PATTERN}(?:{_PREVIOUS_PATTERN} quarter|quarter before)",
        "qoq",
    ),
    (r"[与和跟较比]上(?:个|一)?季度(?:相比|比较|对比)?", "qoq"),
    (
        rf"\bmom\b|\bmonth[- ]o(?:ver|n)[- ]month\b|{_COMPARED_WITH_PATTERN}(?:{_PREVIOUS_PATTERN} month|month before)",
        "mom",
    ),
    (r"[与和跟较比]上(?:个|一)?月(?:相比|比较|对比)?", "mom"),
    (rf"环比|{_COMPARED_WITH_PATTERN}{_PREVIOUS_PATTERN} period", "before"),
)
_GRAIN_PATTERNS = (
    r"\b(?:by|per|each|every|for each|for every|which|what|across the) (?:calendar )?"
    r"(year|quarter|month|week|day)s?\b(?! (?:of|before|ago|over))",
    r"\bwhich (year|quarter|month|week|day)s?\b",
    r"\b(year|quarter|month|week)ly\b|\b(dai)ly\b|\b(annual)(?:ly)?\b",
    r"\b(year|quarter|month|week|day) by (?:year|quarter|month|week|day)\b",
    r"(?:按|每一?个?|各个?|逐|哪一?个?|分)(年|季|月|周|星期|天|日)(?:度|份|期)?(?:份)?",
    r"(年|季|月)度(?=趋势|走势|变化|统计|汇总|报表|明细|[销收营订数])",
    r"(?<=的)(年|季|月)(?:份|度)(?=$|[,，。?？、\s是有])",
    r"\b(year|quarter|month|week|day)s (?=with|where|when|that|had|have)",
)
_YTD_PATTERN = (
    r"\bytd\b|\b(?:this )?year[- ]to[- ]date\b|(?:今年|本年|年初)(?:至今|到现在|以来|到今天|迄今)|(?:本|今)?年累计"
)
_MTD_PATTERN = r"\bmtd\b|\b(?:this )?month[- ]to[- ]date\b|(?:本月|这个月|月初)(?:至今|到现在|以来)"
_QTD_PATTERN = r"\bqtd\b|\b(?:this )?quarter[- ]to[- ]date\b|(?:本季度?|这个季度)(?:至今|到现在|以来)"
_ENGLISH_ROLLING_PATTERN = (
    rf"\b(?:the )?(?:last|past|previous|recent|trailing|latest) ({NUMBER_PATTERN}) (day|week|month|quarter|year)s?\b"
)
_CHINESE_ROLLING_PATTERN = (
    rf"(?:最近|过去|近|过往)的?({NUMBER_PATTERN}|半)个?(天|日|周|星期|月|季度|年)(?:以来|之?内|里|来|间)?"
)
_RANGE_SEPARATOR_PATTERN = r"\s*(?:to|through|until|till|and|-|–|—|~|至|到)\s*"
_DATE_RANGE_PATTERN = rf"(?P<open>\bbetween |\bfrom |从|自|在)?(?P<a>{DATE_PATTERN})(?P<joint>{_RANGE_SEPARATOR_PATTERN})(?P<b>{DATE_PATTERN})(?:之间|期间)?"
_MONTH_RANGE_PATTERN = rf"(?P<year>{CHINESE_YEAR_PATTERN}的?)?(?<![\d.月-])(?P<a>{SMALL_NUMBER_PATTERN})\s*(?:-|–|—|~|至|到)\s*(?P<b>{SMALL_NUMBER_PATTERN})月(?:份|之间|期间)?"
_SINCE_PATTERN = (
    rf"\bsince (?:the (?:start|beginning) of )?({DATE_PATTERN})|[自从]?({DATE_PATTERN})(?:以来|至今|到现在|起至今|到今天)"
    rf"|[自从]({DATE_PATTERN})(?:起|开始)|\bfrom ({DATE_PATTERN}) (?:on|onwards?)\b"
)
_AFTER_PATTERN = rf"\bafter ({DATE_PATTERN})|({DATE_PATTERN})(?:以后|之后)"
_BEFORE_PATTERN = rf"\b(?:before|until|up to|prior to) ({DATE_PATTERN})|({DATE_PATTERN})(?:以前|之前)"
_AMOUNT_PREFIX_PATTERN = r"(?:than|over|above|below|under|least|most|top|exceed\w*|超过|大于|高于|多于|小于|低于|少于|不足|至少|至多|前|[<>=$€£¥])\s*$"
_AMOUNT_SUFFIX_PATTERN = r"\s*(?:元|美元|块|个|次|件|首|张|条|人|以上|以下|dollars?|usd|units?|%|万|亿)"
_YEAR_COMPARISON_PATTERN = r"\bvs\b|\bversus\b|compare|相比|对比|比较|增长|变化|growth|change|比"
_TREND_PATTERN = r"\b(?:trends?|over time)\b|趋势|走势"
_SINGLE_DATE_PATTERN = rf"(?:\b(?:in|during|for|on|of) (?:the )?)?(?P<d>{DATE_PATTERN})"

_CONSUMED_CHARACTER = chr(0)
"""Replaces the characters that a rule has parsed, so that no other rule parses them."""

_CHINESE_YEAR_DIGITS = re.compile(r"[零〇一二三四五六七八九]{4}(?=年)")
_DIGITS_BY_CHARACTER = str.maketrans("零〇一二三四五六七八九", "00123456789")


@dataclass(slots=True)
class QuestionTime:
    """The time of a question, and what the rules have concluded about it so far.

    `spans` are the characters of the question that it was parsed from; they are blank in `text`.
    """

    text: str
    today: datetime.date
    time: TimeIntent | None = None
    spans: list[Span] = field(default_factory=list)
    ambiguities: list[LocalizedText] = field(default_factory=list)
    assumptions: list[LocalizedText] = field(default_factory=list)
    periods: list[Period] = field(default_factory=list)
    is_to_date: bool = False
    grain: Grain | None = None
    comparison: ComparisonKind = None

    def consume_pattern(self, pattern: str) -> "re.Match[str] | None":
        """Return the first match of `pattern` and blank it out."""
        match = re.search(pattern, self.text, re.ASCII)
        if match is not None:
            self.consume_span(*match.span())
        return match

    def consume_span(self, start: int, end: int) -> None:
        """Blank out some characters."""
        self.spans.append((start, end))
        self.text = self.text[:start] + _CONSUMED_CHARACTER * (end - start) + self.text[end:]

    def add_period(self, match: "re.Match[str]", start: datetime.date | None, end: datetime.date | None) -> None:
        """Add the period that `match` names and blank the match out."""
        self.consume_span(*match.span())
        self.periods.append(Period(start, end))


def find_time(question: str, today: datetime.date) -> QuestionTime:
    """Find the time that an English or Chinese question asks about; `time` is None where it names none.

    Relative times, such as "last month", count from `today`.
    """
    text = _CHINESE_YEAR_DIGITS.sub(
        lambda match: match[0].translate(_DIGITS_BY_CHARACTER), lowercase_halfwidth(question)
    )
    state = QuestionTime(text, today)
    rules = (
        _parse_comparison,
        _parse_to_date,
        _parse_rolling_period,
        _parse_range,
        _parse_open_period,
        _parse_single_dates,
        _parse_grain,
        _conclude_time,
    )
    for rule in rules:
        rule(state)
    return state


def _parse_comparison(state: QuestionTime) -> None:
    for pattern, kind in _COMPARISON_PATTERNS:
        if state.consume_pattern(pattern):
            state.comparison = state.comparison or kind


def _parse_to_date(state: QuestionTime) -> None:
    state.is_to_date = state.consume_pattern(_YTD_PATTERN) is not None
    units: tuple[tuple[str, Grain], ...] = ((_MTD_PATTERN, "month"), (_QTD_PATTERN, "quarter"))
    for pattern, unit in units:
        if state.consume_pattern(pattern):
            state.periods.append(Period(get_unit(unit, state.today).start, state.today))


def _parse_rolling_period(state: QuestionTime) -> None:
    """Parse the last N days, weeks, months, quarters or years, to today."""
    while match := state.consume_pattern(_ENGLISH_ROLLING_PATTERN) or state.consume_pattern(_CHINESE_ROLLING_PATTERN):
        amount, word = (group for group in match.groups() if group)
        unit, count = _GRAIN_BY_WORD[word], parse_number(amount)
        if amount == "半" and unit == "year":
            unit, count = "month", 6
        if isinstance(count, int) and 0 < count < 1_000:
            first = shift_day(state.today, unit, -count) + datetime.timedelta(days=1)
            state.periods.append(Period(first, state.today))
            state.assumptions.append(describe_rolling_period(match[0].strip(), state.today))


def _parse_range(state: QuestionTime) -> None:
    """Parse the first range of dates; a start without a year gets the year of the end."""
    for match in re.finditer(_MONTH_RANGE_PATTERN, state.text, re.ASCII):
        year = match["year"] or ""
        first, last = (parse_date_period(f"{year}{match[month]}月", state.today) for month in ("a", "b"))
        if first and last and first.start and last.end and first.start < last.end:
            state.add_period(match, first.start, last.end)
            return
    for match in re.finditer(_DATE_RANGE_PATTERN, state.text, re.ASCII):
        if match["joint"].strip() == "and" and not match["open"]:
            continue
        last = parse_date_period(match["b"], state.today)
        first = parse_date_period(match["a"], state.today, last.end.year if last and last.end else None)
        if first and last and first.start and last.end and first.start <= last.end:
            state.add_period(match, first.start, last.end)
            return


def _parse_open_period(state: QuestionTime) -> None:
    """Parse periods since, after and before a date."""
    for pattern, kind in ((_SINCE_PATTERN, "since"), (_AFTER_PATTERN, "after"), (_BEFORE_PATTERN, "before")):
        match = re.search(pattern, state.text, re.ASCII)
        period = parse_date_period(next(group for group in match.groups() if group), state.today) if match else None
        if match is None or period is None:
            continue
        if kind == "since":
            state.add_period(match, period.start, max(state.today, period.start or state.today))
        elif kind == "after":
            state.add_period(match, _get_next_day(period.end), None)
        else:
            state.add_period(match, None, period.start - datetime.timedelta(days=1) if period.start else None)


def _get_next_day(day: datetime.date | None) -> datetime.date | None:
    return day + datetime.timedelta(days=1) if day else None


def _parse_single_dates(state: QuestionTime) -> None:
    for match in list(re.finditer(_SINGLE_DATE_PATTERN, state.text, re.ASCII)):
        period = parse_date_period(match["d"], state.today)
        if period is not None and not _is_amount(state.text, *match.span("d")):
            state.add_period(match, period.start, period.end)


def _is_amount(text: str, start: int, end: int) -> bool:
    """Return whether four digits are an amount, as in "more than 2000"."""
    if not re.fullmatch(r"\d{4}", text[start:end]):
        return False
    has_prefix = re.search(_AMOUNT_PREFIX_PATTERN, text[:start]) is not None
    return has_prefix or re.match(_AMOUNT_SUFFIX_PATTERN, text[end:]) is not None


def _parse_grain(state: QuestionTime) -> None:
    for pattern in _GRAIN_PATTERNS:
        match = state.consume_pattern(pattern)
        if match is not None and state.grain is None:
            state.grain = _GRAIN_BY_WORD[next(group for group in match.groups() if group)]
    if state.consume_pattern(_TREND_PATTERN) and state.grain is None:
        state.grain = "month"
        state.assumptions.append(MONTHLY_TREND)


def _conclude_time(state: QuestionTime) -> None:
    """Build the time from the periods, the comparison and the grain."""
    state.spans.sort()
    periods = list(dict.fromkeys(state.periods))
    if len(periods) == 2:
        periods = _merge_period_pair(periods, state)
    if len(periods) > 1:
        state.ambiguities.append(SEVERAL_PERIODS)
    period = periods[0] if periods else None
    if state.is_to_date and state.comparison is not None:
        end = period.end if period and period.end else state.today
        period = Period(datetime.date(end.year, 1, 1), end)
    comparison = _resolve_comparison(state.comparison, period, state.grain)
    if state.is_to_date and comparison is None:
        period, comparison = period or get_unit("year", state.today), "ytd"
    if period is not None or comparison is not None or state.grain is not None:
        fields = _describe_period(period) if period else {}
        if comparison == "ytd" and period and period.end:
            fields.setdefault("year", period.end.year)
        state.time = TimeIntent(comparison=comparison, grain=state.grain, **fields)


def _describe_period(period: Period) -> dict[str, Any]:
    """Return the fields of a calendar year, quarter or month by its name, and of any other period by its days."""
    granularity = get_granularity(period)
    if period.start is None or granularity not in ("year", "quarter", "month"):
        return {"granularity": granularity, "start": period.start, "end": period.end}
    fields = {"granularity": granularity, "year": period.start.year}
    if granularity == "quarter":
        return fields | {"quarter": (period.start.month + 2) // 3}
    return fields | {"month": period.start.month} if granularity == "month" else fields


def _merge_period_pair(periods: list[Period], state: QuestionTime) -> list[Period]:
    """Merge two adjacent periods of one length into one.

    Years that the question compares become the second year with a comparison. Other pairs become one period with a
    row for each part.
    """
    first, second = sorted(periods, key=lambda period: period.start or datetime.date.min)
    granularity = get_granularity(first)
    is_adjacent = _get_next_day(first.end) == second.start
    if granularity is None or granularity != get_granularity(second) or not is_adjacent:
        return periods
    if granularity == "year" and re.search(_YEAR_COMPARISON_PATTERN, state.text, re.ASCII):
        state.comparison = "yoy"
        return [second]
    state.grain = state.grain or granularity
    return [Period(first.start, second.end)]


def _resolve_comparison(kind: ComparisonKind, period: Period | None, grain: Grain | None) -> Comparison | None:
    """Resolve "the period before" by the grain or by the period."""
    if kind != "before":
        return kind
    if grain == "year":
        return "yoy"
    return "qoq" if (grain or get_granularity(period)) in ("year", "quarter") else "mom"
