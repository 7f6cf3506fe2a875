"""Finds the time of a question: its period, grain and comparison."""

import datetime
import re
from dataclasses import dataclass, field

from opposable.ask.intent.date_parsing import parse_date_period
from opposable.ask.intent.intent import Comparison, Grain, TimeIntent
from opposable.ask.intent.messages import MONTHLY_TREND, SEVERAL_PERIODS, describe_rolling_period
from opposable.ask.intent.number_parsing import parse_number
from opposable.ask.intent.periods import Period, add_months, get_granularity, get_quarter_period, get_year_period
from opposable.ask.intent.time_patterns import (
    AFTER_PATTERN,
    AMOUNT_PREFIX_PATTERN,
    AMOUNT_SUFFIX_PATTERN,
    BEFORE_PATTERN,
    CHINESE_ROLLING_PATTERN,
    COMPARISON_PATTERNS,
    DATE_RANGE_PATTERN,
    ENGLISH_ROLLING_PATTERN,
    GRAIN_BY_WORD,
    GRAIN_PATTERNS,
    MONTH_RANGE_PATTERN,
    MTD_PATTERN,
    QTD_PATTERN,
    SINCE_PATTERN,
    SINGLE_DATE_PATTERN,
    TREND_PATTERN,
    YEAR_COMPARISON_PATTERN,
    YTD_PATTERN,
    ComparisonKind,
)
from opposable.domain.localized_text import LocalizedText
from opposable.domain.text_normalization import lowercase_halfwidth

Span = tuple[int, int]
"""Start and end (exclusive) of some characters of the question."""

_CONSUMED_CHARACTER = chr(0)
"""Replaces the characters that a rule has parsed, so that no other rule parses them."""

_CHINESE_YEAR_DIGITS = re.compile(r"[零〇一二三四五六七八九]{4}(?=年)")
_DIGITS_BY_CHARACTER = str.maketrans("零〇一二三四五六七八九", "00123456789")


@dataclass(frozen=True, slots=True)
class TimeParseResult:
    """The time of a question, and the characters it was parsed from."""

    time: TimeIntent | None
    spans: tuple[Span, ...] = ()
    ambiguities: tuple[LocalizedText, ...] = ()
    assumptions: tuple[LocalizedText, ...] = ()


@dataclass(slots=True)
class _TimeParseState:
    text: str
    today: datetime.date
    spans: list[Span] = field(default_factory=list)
    periods: list[Period] = field(default_factory=list)
    is_to_date: bool = False
    grain: Grain | None = None
    comparison: ComparisonKind = None
    assumptions: list[LocalizedText] = field(default_factory=list)

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


def find_time(question: str, today: datetime.date) -> TimeParseResult:
    """Find the time that a question asks about.

    Args:
        question: The question, in English or Chinese.
        today: The day that relative times, such as "last month", count from.

    Returns:
        The result, whose `time` is None where the question names no time.
    """
    text = _CHINESE_YEAR_DIGITS.sub(
        lambda match: match[0].translate(_DIGITS_BY_CHARACTER), lowercase_halfwidth(question)
    )
    state = _TimeParseState(text, today)
    rules = (
        _parse_comparison,
        _parse_to_date,
        _parse_rolling_period,
        _parse_range,
        _parse_open_period,
        _parse_single_dates,
        _parse_grain,
    )
    for rule in rules:
        rule(state)
    return _build_result(state)


def build_time_intent(
    period: Period | None, comparison: Comparison | None = None, grain: Grain | None = None
) -> TimeIntent:
    """Build the time of an intent.

    A calendar year, quarter or month is named as one, any other period by its days.
    """
    granularity = get_granularity(period) if period else None
    if period is None or period.start is None or granularity not in ("year", "quarter", "month"):
        start, end = (period.start, period.end) if period else (None, None)
        return TimeIntent(granularity=granularity, start=start, end=end, comparison=comparison, grain=grain)
    return TimeIntent(
        granularity=granularity,
        year=period.start.year,
        quarter=(period.start.month + 2) // 3 if granularity == "quarter" else None,
        month=period.start.month if granularity == "month" else None,
        comparison=comparison,
        grain=grain,
    )


def _parse_comparison(state: _TimeParseState) -> None:
    for pattern, kind in COMPARISON_PATTERNS:
        if state.consume_pattern(pattern):
            state.comparison = state.comparison or kind


def _parse_to_date(state: _TimeParseState) -> None:
    today = state.today
    state.is_to_date = state.consume_pattern(YTD_PATTERN) is not None
    if state.consume_pattern(MTD_PATTERN):
        state.periods.append(Period(today.replace(day=1), today))
    if state.consume_pattern(QTD_PATTERN):
        state.periods.append(Period(get_quarter_period(today.year, (today.month + 2) // 3).start, today))


def _parse_rolling_period(state: _TimeParseState) -> None:
    """Parse the last N days, weeks, months, quarters or years, to today."""
    while match := state.consume_pattern(ENGLISH_ROLLING_PATTERN) or state.consume_pattern(CHINESE_ROLLING_PATTERN):
        amount, word = (group for group in match.groups() if group)
        is_half_year = amount == "半" and word == "年"
        unit, count = ("month", 6) if is_half_year else (GRAIN_BY_WORD[word], parse_number(amount))
        if not isinstance(count, int) or not 0 < count < 1_000:
            continue
        state.periods.append(_build_trailing_period(count, unit, state.today))
        state.assumptions.append(describe_rolling_period(match[0].strip(), state.today))


def _build_trailing_period(count: int, unit: str, today: datetime.date) -> Period:
    if unit in ("day", "week"):
        return Period(today - datetime.timedelta(days=count * (7 if unit == "week" else 1) - 1), today)
    months = count * {"month": 1, "quarter": 3, "year": 12}[unit]
    return Period(add_months(today, -months) + datetime.timedelta(days=1), today)


def _parse_range(state: _TimeParseState) -> None:
    """Parse the first range of dates; a start without a year gets the year of the end."""
    for match in re.finditer(MONTH_RANGE_PATTERN, state.text, re.ASCII):
        year = match["year"] or ""
        first, last = (parse_date_period(f"{year}{match[month]}月", state.today) for month in ("a", "b"))
        if first and last and first.start and last.end and first.start < last.end:
            state.add_period(match, first.start, last.end)
            return
    for match in re.finditer(DATE_RANGE_PATTERN, state.text, re.ASCII):
        if match["joint"].strip() == "and" and not match["open"]:
            continue
        last = parse_date_period(match["b"], state.today)
        first = parse_date_period(match["a"], state.today, last.end.year if last and last.end else None)
        if first and last and first.start and last.end and first.start <= last.end:
            state.add_period(match, first.start, last.end)
            return


def _parse_open_period(state: _TimeParseState) -> None:
    """Parse periods since, after and before a date."""
    for pattern, kind in ((SINCE_PATTERN, "since"), (AFTER_PATTERN, "after"), (BEFORE_PATTERN, "before")):
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


def _parse_single_dates(state: _TimeParseState) -> None:
    for match in list(re.finditer(SINGLE_DATE_PATTERN, state.text, re.ASCII)):
        period = parse_date_period(match["d"], state.today)
        if period is not None and not _is_amount(state.text, *match.span("d")):
            state.add_period(match, period.start, period.end)


def _is_amount(text: str, start: int, end: int) -> bool:
    """Return whether four digits are an amount, as in "more than 2000"."""
    if not re.fullmatch(r"\d{4}", text[start:end]):
        return False
    has_prefix = re.search(AMOUNT_PREFIX_PATTERN, text[:start]) is not None
    return has_prefix or re.match(AMOUNT_SUFFIX_PATTERN, text[end:]) is not None


def _parse_grain(state: _TimeParseState) -> None:
    for pattern in GRAIN_PATTERNS:
        match = state.consume_pattern(pattern)
        if match is not None and state.grain is None:
            state.grain = GRAIN_BY_WORD[next(group for group in match.groups() if group)]
    if state.consume_pattern(TREND_PATTERN) and state.grain is None:
        state.grain = "month"
        state.assumptions.append(MONTHLY_TREND)


def _build_result(state: _TimeParseState) -> TimeParseResult:
    periods = list(dict.fromkeys(state.periods))
    if len(periods) == 2:
        periods = _merge_period_pair(periods, state)
    period = periods[0] if periods else None
    if state.is_to_date and state.comparison is not None:
        end = period.end if period and period.end else state.today
        period = Period(datetime.date(end.year, 1, 1), end)
    comparison = _resolve_comparison(state.comparison, period, state.grain)
    ambiguities = (SEVERAL_PERIODS,) if len(periods) > 1 else ()
    time: TimeIntent | None = None
    if state.is_to_date and comparison is None:
        time = _build_year_to_date(period or get_year_period(state.today.year), state.grain)
    elif period is not None or comparison is not None or state.grain is not None:
        time = build_time_intent(period, comparison, state.grain)
    return TimeParseResult(time, tuple(sorted(state.spans)), ambiguities, tuple(state.assumptions))


def _build_year_to_date(period: Period, grain: Grain | None) -> TimeIntent:
    """Build the days from the first day of a year to the end of a period."""
    time = build_time_intent(period, "ytd", grain)
    return time if time.year or period.end is None else time.model_copy(update={"year": period.end.year})


def _merge_period_pair(periods: list[Period], state: _TimeParseState) -> list[Period]:
    """Merge two adjacent periods of one length into one.

    Years that the question compares become the second year with a comparison. Other pairs become one period with a
    row for each part.
    """
    first, second = sorted(periods, key=lambda period: period.start or datetime.date.min)
    granularity = get_granularity(first)
    is_adjacent = _get_next_day(first.end) == second.start
    if granularity is None or granularity != get_granularity(second) or not is_adjacent:
        return periods
    if granularity == "year" and re.search(YEAR_COMPARISON_PATTERN, state.text, re.ASCII):
        state.comparison = "yoy"
        return [second]
    state.grain = state.grain or granularity
    return [Period(first.start, second.end)]


def _resolve_comparison(kind: ComparisonKind, period: Period | None, grain: Grain | None) -> Comparison | None:
    """Resolve "the period before" by the grain or by the period."""
    if kind != "before":
        return kind
    granularity = get_granularity(period) if period else None
    comparisons: dict[str | None, Comparison] = {"year": "yoy", "quarter": "qoq"}
    return comparisons.get(grain or granularity, "mom") if grain or granularity != "year" else "qoq"
