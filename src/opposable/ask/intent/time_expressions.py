"""Finds the time of a question: its period, grain and comparison.

The patterns are searched with `re.ASCII`: without it there is no word boundary between "q1" and a Chinese character.
"""

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from opposable.ask.intent.date_parsing import (
    CHINESE_YEAR_PATTERN,
    DATE_PATTERN,
    SMALL_NUMBER_PATTERN,
    WEEK_PATTERN,
    find_unit,
    parse_date_period,
)
from opposable.ask.intent.intent import Comparison, Grain, TimeIntent
from opposable.ask.intent.messages import ASSUMED_YEAR, FUTURE_PERIOD, MISSING_BASELINE, ROLLING_PERIOD, SEVERAL_PERIODS
from opposable.ask.intent.number_parsing import CHINESE_DIGITS, NUMBER_PATTERN, parse_number
from opposable.ask.intent.periods import COMPARED_UNITS, Period, get_granularity, get_unit, shift_day
from opposable.domain.localized_text import LocalizedText
from opposable.domain.text_normalization import lowercase_halfwidth

ComparisonKind = Comparison | Literal["before"] | None
"""A comparison; "before" is one with the period before, whose length is not known yet."""

_PREVIOUS_PATTERN = r"(?:previous|preceding|prior|last|past)"
_COMPARED_WITH_PATTERN = r"\b(?:compared? (?:to|with|against)|versus|vs\.?|relative to) (?:the )?"


def _build_comparison_pattern(unit: str, chinese: str) -> str:
    """Build the pattern of a comparison with a unit before: 比去年 and 与去年相比; 和去年 alone is "and last year"."""
    english = rf"\b{unit}[- ]o(?:ver|n)[- ]{unit}\b|\b{unit[0]}o{unit[0]}\b"
    before = rf"(?:same (\w+) (?:of )?(?:the )?)?(?:({unit}) before|{_PREVIOUS_PATTERN} ({unit}))"
    compared = rf"[较比]({chinese})(?:相比|比较|对比)?|[与和跟]({chinese})(?:相比|比较|对比)"
    return rf"{english}|{_COMPARED_WITH_PATTERN}{before}|{compared}"


_COMPARISON_PATTERNS: tuple[tuple[str, ComparisonKind], ...] = (
    (_build_comparison_pattern("year", "(?:(?:去年|上年)?同期|去年|上年|上一年|前一年)"), "yoy"),
    (r"同比|(?:去年|上年)?同期(?:相比|对比)", "yoy"),
    (_build_comparison_pattern("quarter", "上(?:个|一)?季度"), "qoq"),
    (_build_comparison_pattern("month", "上(?:个|一)?月"), "mom"),
    (rf"环比|{_COMPARED_WITH_PATTERN}{_PREVIOUS_PATTERN} period", "before"),
)
_GRAIN_PATTERNS = (
    r"\b(?:by|per|each|every|for each|for every|which|what|across the) (?:calendar )?"
    r"(year|quarter|month|week|day)s?\b(?! (?:of|before|ago|over))",
    r"\bwhich (year|quarter|month|week|day)s?\b",
    r"(?<=\band )(year|quarter|month|week|day)\b(?=\W*$)",
    r"\b(year|quarter|month|week)ly\b|\b(dai)ly\b|\b(annual)(?:ly)?\b",
    r"\b(year|quarter|month|week|day) by (?:year|quarter|month|week|day)\b",
    rf"(?:按|每一?个?|各个?|逐|哪一?个?|分)(年|季|月|{WEEK_PATTERN}|天|日)(?:度|份|期)?(?:份)?",
    r"(年|季|月)度(?=变化|统计|汇总|报表|明细|[销收营订数])",
    r"(?<=的)(年|季|月)(?:份|度)(?=$|[,，。?？、\s是有])",
)
_YTD_PATTERN = (
    r"\bytd\b|\b(?:this )?year[- ]to[- ]date\b|(?:今年|本年|年初)(?:至今|到现在|以来|到今天|迄今)|(?:本|今)?年累计"
)
_ROLLING_PATTERN = (
    rf"\b(?:the )?(?:last|past|previous|recent|trailing|latest) ({NUMBER_PATTERN}) (day|week|month|quarter|year)s?\b"
    rf"|(?:最近|过去|近|过往)的?({NUMBER_PATTERN}|半)个?(天|日|周|星期|月|季度|年)(?:以来|之?内|里|来|间)?"
)
_RANGE_SEPARATOR_PATTERN = r"\s*(?:to|through|until|till|and|-|–|—|~|至|到)\s*"
_DATE_RANGE_PATTERN = rf"(?P<open>\bbetween |\bfrom |从|自|在)?(?P<a>{DATE_PATTERN})(?P<joint>{_RANGE_SEPARATOR_PATTERN})(?P<b>{DATE_PATTERN})(?:之间|期间)?"
_MONTH_RANGE_PATTERN = rf"(?P<year>{CHINESE_YEAR_PATTERN}的?)?(?<![\d.月-])(?P<a>{SMALL_NUMBER_PATTERN})\s*(?:-|–|—|~|至|到)\s*(?P<b>{SMALL_NUMBER_PATTERN})月(?:份|之间|期间)?"
_SINCE_PATTERN = (
    rf"\bsince (?:the (?:start|beginning) of )?({DATE_PATTERN})|[自从]?({DATE_PATTERN})(?:以来|至今|到现在|起至今|到今天)"
    rf"|[自从]({DATE_PATTERN})(?:起|开始)|\bfrom ({DATE_PATTERN}) (?:on|onwards?)\b"
)
_AFTER_PATTERN = rf"(?<!or )\bafter ({DATE_PATTERN})|({DATE_PATTERN})(?:以后|之后)"
_BEFORE_PATTERN = rf"(?<!or )\b(?:before|prior to) ({DATE_PATTERN})|({DATE_PATTERN})(?:以前|之前)"
_AMOUNT_PREFIX_PATTERN = r"(?:than|over|above|below|under|least|most|top|exceed\w*|超过|大于|高于|多于|小于|低于|少于|不足|至少|至多|前|[<>=$€£¥])\s*$"
_AMOUNT_SUFFIX_PATTERN = r"\s*(?:元|美元|块|个|次|件|首|张|条|人|以上|以下|dollars?|usd|units?|%|万|亿)"
_SINGLE_DATE_PATTERN = rf"(?:\b(?:in|during|for|on|of) (?:the )?)?(?P<d>{DATE_PATTERN})"

CONSUMED_CHARACTER = chr(0)
"""Replaces the characters that a rule has parsed, so that no other rule parses them."""

_CHINESE_YEAR = re.compile(r"[零〇一二三四五六七八九]{4}(?=年)")
_DAY = datetime.timedelta(days=1)


@dataclass(slots=True)
class QuestionTime:
    """The time of a question, and what the rules have concluded about it so far.

    The characters that it was parsed from are blank in `text`, which is as long as the question.
    """

    text: str
    today: datetime.date
    time: TimeIntent | None = None
    ambiguities: list[LocalizedText] = field(default_factory=list)
    assumptions: list[LocalizedText] = field(default_factory=list)
    periods: list[Period] = field(default_factory=list)
    is_year_to_date: bool = False
    grain: Grain | None = None
    is_each_period: bool = False
    comparison: ComparisonKind = None
    compared_text: str = ""
    is_rolling: bool = False

    def add_period(self, *dates: Period | None) -> bool:
        """Add the days from the first date to the last; reject a date that does not exist and a wrong order."""
        days = [date for date in dates if date is not None]
        if len(days) < len(dates) or days[0].start > days[-1].end:
            return False
        self.periods.append(Period(days[0].start, days[-1].end))
        return True

    def find_year(self, text: str) -> int | None:
        """Return the year of a date that names one."""
        date = parse_date_period(text, self.today)
        return date.start.year if date and date == parse_date_period(text, self.today, 4) else None

    def parse_date(self, text: str, default_year: int | None = None) -> Period | None:
        """Parse a date; a month or quarter without a year is of this year: an assumption, or unclear in the future."""
        date = parse_date_period(text, self.today, default_year)
        if date is not None and default_year is None and self.find_year(text) is None:
            self.assumptions.append(ASSUMED_YEAR.format(phrase=text.strip(), year=date.start.year))
            self.ambiguities += [FUTURE_PERIOD.format(phrase=text.strip())] if date.start > self.today else []
        return date


TimeRule = Callable[[QuestionTime, "re.Match[str]"], bool]
"""Extends the time by a match; returns False if it rejects the match, which then stays in the text."""


def find_time(question: str, today: datetime.date) -> QuestionTime:
    """Find the time that an English or Chinese question asks about; `time` is None where it names none.

    Relative times, such as "last month", count from `today`.
    """
    text = lowercase_halfwidth(question).replace(CONSUMED_CHARACTER, " ")
    text = _CHINESE_YEAR.sub(lambda match: "".join(str(CHINESE_DIGITS[char]) for char in match[0]), text)
    state = QuestionTime(text, today)
    for pattern, rule in _TIME_RULES:
        for match in re.finditer(pattern, state.text, re.ASCII):
            if rule(state, match):
                start, end = match.span()
                state.text = state.text[:start] + CONSUMED_CHARACTER * (end - start) + state.text[end:]
    _conclude_time(state)
    return state


def _set_comparison(kind: ComparisonKind, state: QuestionTime, match: "re.Match[str]") -> bool:
    """Set the comparison, and the text that names its period, such as "vs last month"; reject one of another kind."""
    state.comparison = state.comparison or kind
    state.compared_text += match[0] if any(match.groups()) else ""
    return state.comparison == kind


def _set_year_to_date(state: QuestionTime, _: "re.Match[str]") -> bool:
    """Add the days of a year until today; the other dates decide which year is meant."""
    state.is_year_to_date = True
    return True


def _add_rolling_period(state: QuestionTime, match: "re.Match[str]") -> bool:
    """Add the last N days, weeks, months, quarters or years, to today."""
    amount, word = filter(None, match.groups())
    unit, count = find_unit(word), parse_number(amount)
    if amount == "半" and unit == "year":
        unit, count = "month", 6
    if not isinstance(count, int) or not 0 < count < 1_000:
        return False
    state.is_rolling = True
    state.assumptions.append(ROLLING_PERIOD.format(phrase=match[0].strip(), today=state.today))
    return state.add_period(Period(shift_day(state.today, unit, -count) + _DAY, state.today))


def _add_date_range(state: QuestionTime, match: "re.Match[str]") -> bool:
    """Add a range of dates; a date without a year gets the year of the other. "Between 1900 and 2000" may be amounts."""
    is_between = re.search("between|之间", match[0]) and match["a"].isdecimal() and match["b"].isdecimal()
    is_amount = _is_amount(state.text, *match.span("a")) or _is_amount(state.text, *match.span("b"))
    if is_between or is_amount or (match["joint"].strip() == "and" and not match["open"]):
        return False
    first, last = (state.parse_date(match[own], state.find_year(match[other])) for own, other in ("ab", "ba"))
    return state.add_period(first, last)


def _add_open_period(
    extend: Callable[[Period, datetime.date], Period], state: QuestionTime, match: "re.Match[str]"
) -> bool:
    """Add a period that begins or ends with a date; `extend` takes the date and today."""
    date = state.parse_date(next(filter(None, match.groups())))
    return date is not None and state.add_period(extend(date, state.today))


def _add_date(state: QuestionTime, match: "re.Match[str]") -> bool:
    """Add a date; reject an amount, and "from" a date, which may be that date or all since then."""
    is_start = re.search(r"(?:\bfrom|[从自])\s*$", state.text[: match.start()])
    if is_start or _is_amount(state.text, *match.span("d")):
        return False
    if "the last" in match[0]:  # the calendar year before, or the 365 days until today?
        state.ambiguities.append(SEVERAL_PERIODS)
    return state.add_period(state.parse_date(match["d"]))


def _is_amount(text: str, start: int, end: int) -> bool:
    """Return whether four digits are an amount, as in "more than 2000"."""
    is_year = re.fullmatch(r"\d{4}", text[start:end]) is not None
    has_sign = re.search(_AMOUNT_PREFIX_PATTERN, text[:start]) or re.match(_AMOUNT_SUFFIX_PATTERN, text[end:])
    return is_year and has_sign is not None


def _set_grain(state: QuestionTime, match: "re.Match[str]") -> bool:
    """Set the grain; reject a second grain."""
    grain = find_unit(next(filter(None, match.groups())))
    state.grain = state.grain or grain
    state.is_each_period |= bool(re.match(r"by|per|each|every|for|across|(which|what) \w+s\b|[按每各逐分]", match[0]))
    return state.grain == grain


_TIME_RULES: tuple[tuple[str, TimeRule], ...] = (
    *((pattern, partial(_set_comparison, kind)) for pattern, kind in _COMPARISON_PATTERNS),
    (_YTD_PATTERN, _set_year_to_date),
    (_ROLLING_PATTERN, _add_rolling_period),
    (
        _MONTH_RANGE_PATTERN,
        lambda state, match: state.add_period(*(state.parse_date(f"{match['year'] or ''}{match[i]}月") for i in "ab")),
    ),
    (_DATE_RANGE_PATTERN, _add_date_range),
    (_SINCE_PATTERN, partial(_add_open_period, lambda date, today: Period(date.start, max(today, date.start)))),
    (_AFTER_PATTERN, partial(_add_open_period, lambda date, _: Period(date.end + _DAY))),
    (_BEFORE_PATTERN, partial(_add_open_period, lambda date, _: Period(end=date.start - _DAY))),
    (_SINGLE_DATE_PATTERN, _add_date),
    *((pattern, _set_grain) for pattern in _GRAIN_PATTERNS),
)
"""The rules in the order in which they are applied."""


def _conclude_time(state: QuestionTime) -> None:
    """Build the time from the periods, the comparison and the grain."""
    period = state.periods[0] if state.periods else None
    is_until_today = period and (period.end == state.today or get_granularity(period) == "year")
    is_other_to_date = state.is_year_to_date and is_until_today and period != get_unit("year", state.today)
    row = get_unit(state.grain, period.start) if period and state.grain else None
    is_cut = period and row and row.start < period.start and state.is_rolling  # six months until today are seven rows
    is_within_row = period and row and row != period and period.end <= row.end
    if len(state.periods) > 1 or is_other_to_date or is_within_row or is_cut:
        state.ambiguities.append(SEVERAL_PERIODS)
    if _lacks_baseline(state, period):
        state.ambiguities.append(MISSING_BASELINE)
    end = period.end if period and period.end < datetime.date.max else None
    if state.is_year_to_date and state.comparison is not None:
        end = end or state.today
        period = Period(datetime.date(end.year, 1, 1), end)
    comparison = state.comparison
    if comparison == "before":
        unit = state.grain or get_granularity(period)
        state.ambiguities += [MISSING_BASELINE] if period and unit in (None, "week", "day") else []
        comparison = "yoy" if state.grain == "year" else "qoq" if unit in ("year", "quarter") else "mom"
    if state.is_year_to_date and comparison is None:
        period, comparison = period or get_unit("year", state.today), "ytd"
    if period is not None or comparison is not None or state.grain is not None:
        fields = _describe_period(period) if period else {}
        if comparison == "ytd" and end:
            fields.setdefault("year", end.year)
        state.time = TimeIntent(comparison=comparison, grain=state.grain, **fields)


def _lacks_baseline(state: QuestionTime, period: Period | None) -> bool:
    """Return whether "last month" may not be the month before the period, and for a week, which one is a year before."""
    units = (state.grain, get_granularity(period))
    step: Grain = next((unit for kind, unit in COMPARED_UNITS.items() if kind == state.comparison), "year")
    is_present = period is None or get_unit(step, period.start) == get_unit(step, state.today)
    is_last = re.search(r"\b[lp]ast|去|上(?!一?年)", state.compared_text) is not None
    is_other_unit = bool(state.compared_text) and find_unit(state.compared_text) not in ("year", *units)
    return is_other_unit or (is_last and not is_present) or (state.comparison == "yoy" and "week" in units)


def _describe_period(period: Period) -> dict[str, Any]:
    """Return the fields of a calendar year, quarter or month by its name, and of any other period by its days."""
    granularity, start, end = get_granularity(period), period.start, period.end
    numbers = {"year": start.year, "quarter": (start.month + 2) // 3, "month": start.month}
    if granularity in numbers:
        return {"granularity": granularity, "year": start.year, granularity: numbers[granularity]}
    days = {"start": start if start > datetime.date.min else None, "end": end if end < datetime.date.max else None}
    return {"granularity": granularity, **days}
