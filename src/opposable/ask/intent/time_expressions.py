"""Finds the time in a question, in English and Chinese: periods, one row a period, comparisons."""

import datetime
import re
from dataclasses import dataclass, field
from typing import Literal

from opposable.ask.intent.assumption_messages import describe_monthly_trend, describe_until_today
from opposable.ask.intent.date_parsing import (
    CHINESE_YEAR_PATTERN,
    DATE_PATTERN,
    SMALL_NUMBER_PATTERN,
    parse_date_period,
)
from opposable.ask.intent.intent import Comparison, Grain, TimeIntent
from opposable.ask.intent.number_parsing import NUMBER_PATTERN, parse_number
from opposable.ask.intent.periods import Period, add_months, get_granularity, get_quarter_period
from opposable.domain.language import Language, detect_language

Span = tuple[int, int]
ComparisonKind = Comparison | Literal["before"] | None

# Every pattern is searched with re.ASCII: otherwise there is no word boundary between "q1" and a Chinese character.
_CONSUMED_CHARACTER = chr(0)
"""Stands where a word was read, so that no rule reads it twice."""


@dataclass(frozen=True, slots=True)
class TimeParseResult:
    """The time in a question. `spans` are the characters it was read from; `unsure` says what could not be settled."""

    time: TimeIntent | None
    spans: tuple[Span, ...] = ()
    ambiguities: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()


@dataclass(slots=True)
class _TimeParseState:
    text: str
    today: datetime.date
    language: Language
    spans: list[Span] = field(default_factory=list)
    periods: list[Period] = field(default_factory=list)
    is_to_date: bool = False
    grain: Grain | None = None
    comparison: ComparisonKind = None
    assumptions: list[str] = field(default_factory=list)

    def consume_pattern(self, pattern: str) -> "re.Match[str] | None":
        """The first match of `pattern`, blanked out."""
        found = re.search(pattern, self.text, re.ASCII)
        if found is not None:
            self.consume_span(*found.span())
        return found

    def consume_span(self, start: int, end: int) -> None:
        """Blanks these characters out."""
        self.spans.append((start, end))
        self.text = self.text[:start] + _CONSUMED_CHARACTER * (end - start) + self.text[end:]


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


def find_time(question: str, today: datetime.date) -> TimeParseResult:
    """The time that `question` speaks of, reckoned from `today`; `time` is None when it speaks of none."""
    reading = _TimeParseState(lowercase_halfwidth(question), today, detect_language(question))
    for rule in (
        _parse_comparison,
        _parse_to_date,
        _parse_rolling_period,
        _parse_range,
        _parse_open_period,
        _parse_single_dates,
        _parse_grain,
    ):
        rule(reading)
    return _build_result(reading)


def lowercase_halfwidth(text: str) -> str:
    """`text` in lower case with full-width signs made plain, each character in its place."""
    return "".join(_normalize_character(char) for char in text)


def build_time_intent(
    period: Period | None, comparison: Comparison | None = None, grain: Grain | None = None
) -> TimeIntent:
    """A period as an intent writes it: by year, quarter or month where it is one, else by its days."""
    size = get_granularity(period) if period else None
    if period is None or period.start is None or size not in ("year", "quarter", "month"):
        start, end = (period.start, period.end) if period else (None, None)
        return TimeIntent(granularity=size, start=start, end=end, comparison=comparison, grain=grain)
    return TimeIntent(
        granularity=size,
        year=period.start.year,
        quarter=(period.start.month + 2) // 3 if size == "quarter" else None,
        month=period.start.month if size == "month" else None,
        comparison=comparison,
        grain=grain,
    )


def _normalize_character(char: str) -> str:
    if "！" <= char <= "～":
        return chr(ord(char) - 0xFEE0).lower()
    low = char.lower()
    return low if len(low) == 1 else char


def _parse_comparison(reading: _TimeParseState) -> None:
    for pattern, kind in _COMPARISON_PATTERNS:
        if reading.consume_pattern(pattern):
            reading.comparison = reading.comparison or kind


def _parse_to_date(reading: _TimeParseState) -> None:
    today = reading.today
    if reading.consume_pattern(_YTD_PATTERN):
        reading.is_to_date = True
        reading.periods.append(Period(datetime.date(today.year, 1, 1), today))
    if reading.consume_pattern(_MTD_PATTERN):
        reading.periods.append(Period(today.replace(day=1), today))
    if reading.consume_pattern(_QTD_PATTERN):
        reading.periods.append(Period(get_quarter_period(today.year, (today.month + 2) // 3).start, today))


def _parse_rolling_period(reading: _TimeParseState) -> None:
    """The last N days, weeks, months … up to and with today."""
    while found := reading.consume_pattern(_ENGLISH_ROLLING_PATTERN) or reading.consume_pattern(
        _CHINESE_ROLLING_PATTERN
    ):
        amount, word = (group for group in found.groups() if group)
        half_year = amount == "半" and word == "年"
        unit, count = ("month", 6) if half_year else (_GRAIN_BY_WORD[word], parse_number(amount))
        if not isinstance(count, int) or not 0 < count < 1_000:
            continue
        reading.periods.append(_build_trailing_period(count, unit, reading.today))
        reading.assumptions.append(describe_until_today(found[0].strip(), reading.today, reading.language))


def _build_trailing_period(count: int, unit: str, today: datetime.date) -> Period:
    if unit in ("day", "week"):
        return Period(today - datetime.timedelta(days=count * (7 if unit == "week" else 1) - 1), today)
    months = count * {"month": 1, "quarter": 3, "year": 12}[unit]
    return Period(add_months(today, -months) + datetime.timedelta(days=1), today)


def _parse_range(reading: _TimeParseState) -> None:
    """From one date to another; a first one without a year has the second one's."""
    for found in re.finditer(_MONTH_RANGE_PATTERN, reading.text, re.ASCII):
        first, last = (parse_date_period(f"{found['year'] or ''}{found[part]}月", reading.today) for part in ("a", "b"))
        if first and last and first.start and last.end and first.start < last.end:
            reading.consume_span(*found.span())
            reading.periods.append(Period(first.start, last.end))
            return
    for found in re.finditer(_DATE_RANGE_PATTERN, reading.text, re.ASCII):
        if found["joint"].strip() == "and" and not found["open"]:
            continue
        last = parse_date_period(found["b"], reading.today)
        first = parse_date_period(found["a"], reading.today, last.end.year if last and last.end else None)
        if not first or not last or not first.start or not last.end or first.start > last.end:
            continue
        reading.consume_span(*found.span())
        reading.periods.append(Period(first.start, last.end))
        return


def _parse_open_period(reading: _TimeParseState) -> None:
    """Since, after, before a date."""
    for pattern, kind in ((_SINCE_PATTERN, "since"), (_AFTER_PATTERN, "after"), (_BEFORE_PATTERN, "before")):
        found = re.search(pattern, reading.text, re.ASCII)
        period = parse_date_period(next(g for g in found.groups() if g), reading.today) if found else None
        if found is None or period is None:
            continue
        reading.consume_span(*found.span())
        match kind:
            case "since":
                reading.periods.append(Period(period.start, max(reading.today, period.start or reading.today)))
            case "after":
                reading.periods.append(Period(_get_next_day(period.end), None))
            case _:
                reading.periods.append(
                    Period(None, period.start - datetime.timedelta(days=1) if period.start else None)
                )


def _get_next_day(day: datetime.date | None) -> datetime.date | None:
    return day + datetime.timedelta(days=1) if day else None


def _parse_single_dates(reading: _TimeParseState) -> None:
    for found in list(
        re.finditer(rf"(?:\b(?:in|during|for|on|of) (?:the )?)?(?P<d>{DATE_PATTERN})", reading.text, re.ASCII)
    ):
        period = parse_date_period(found["d"], reading.today)
        if period is not None and not _is_amount(reading.text, *found.span("d")):
            reading.consume_span(*found.span())
            reading.periods.append(period)


def _is_amount(text: str, start: int, end: int) -> bool:
    """Whether four digits are an amount: "more than 2000", "top 2000", "2000 dollars"."""
    if not re.fullmatch(r"\d{4}", text[start:end]):
        return False
    return (
        re.search(_AMOUNT_PREFIX_PATTERN, text[:start]) is not None
        or re.match(_AMOUNT_SUFFIX_PATTERN, text[end:]) is not None
    )


def _parse_grain(reading: _TimeParseState) -> None:
    for pattern in _GRAIN_PATTERNS:
        found = reading.consume_pattern(pattern)
        if found is not None and reading.grain is None:
            reading.grain = _GRAIN_BY_WORD[next(group for group in found.groups() if group)]
    if reading.consume_pattern(r"\b(?:trends?|over time)\b|趋势|走势") and reading.grain is None:
        reading.grain = "month"
        reading.assumptions.append(describe_monthly_trend(reading.language))


def _build_result(reading: _TimeParseState) -> TimeParseResult:
    periods = list(dict.fromkeys(reading.periods))
    if len(periods) == 2:
        periods = _merge_period_pair(periods, reading)
    period = periods[0] if periods else None
    against = _resolve_comparison(reading.comparison, period, reading.grain)
    unsure = ("the question names several periods",) if len(periods) > 1 else ()
    time: TimeIntent | None = None
    if reading.is_to_date and against is None:
        time = TimeIntent(granularity="year", year=reading.today.year, comparison="ytd", grain=reading.grain)
    elif period is not None or against is not None or reading.grain is not None:
        time = build_time_intent(period, against, reading.grain)
    return TimeParseResult(time, tuple(sorted(reading.spans)), unsure, tuple(reading.assumptions))


def _merge_period_pair(periods: list[Period], reading: _TimeParseState) -> list[Period]:
    """Two periods that follow one another are one, shown apart; two that are compared are one and the one before."""
    one, other = sorted(periods, key=lambda period: period.start or datetime.date.min)
    size = get_granularity(one)
    if size is None or size != get_granularity(other) or _get_next_day(one.end) != other.start:
        return periods
    if size == "year" and re.search(_YEAR_COMPARISON_PATTERN, reading.text, re.ASCII):
        reading.comparison = "yoy"
        return [other]
    reading.grain = reading.grain or size
    return [Period(one.start, other.end)]


def _resolve_comparison(kind: ComparisonKind, period: Period | None, grain: Grain | None) -> Comparison | None:
    if kind != "before":
        return kind
    size = get_granularity(period) if period else None
    steps: dict[str | None, Comparison] = {"year": "yoy", "quarter": "qoq"}
    return steps.get(grain or size, "mom") if grain or size != "year" else "qoq"
