"""Parser of one English or Chinese date, month, quarter, half-year or year."""

import calendar
import datetime
import re
from contextlib import suppress

from opposable.ask.intent.intent import Grain
from opposable.ask.intent.number_parsing import parse_chinese_number
from opposable.ask.intent.periods import Period, get_months, get_unit, shift_day

_MONTH_NAMES = (calendar.month_name, calendar.month_abbr)
_MONTH_NUMBERS = {name.lower(): i for names in _MONTH_NAMES for i, name in enumerate(names) if name} | {"sept": 9}
_ORDINAL_NUMBERS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}
_NUMBERS = _MONTH_NUMBERS | _ORDINAL_NUMBERS | {"上": 1, "下": 2}

_MONTH = rf"(?:{'|'.join(sorted(_MONTH_NUMBERS, key=len, reverse=True))})\b"
_STANDALONE_MONTH = "|".join(name for name in _MONTH_NUMBERS if len(name) > 3 and name != "march")
_ORDINAL = "|".join(_ORDINAL_NUMBERS)
_YEAR = r"(?<![\da-gi-pr-z])(?:19|20)\d{2}(?!\d|\.\d|[a-gi-pr-z])"
SMALL_NUMBER_PATTERN = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
WEEK_PATTERN = "(?:周|星期)(?![几一二三四五六日天1-7])"
"""A regular expression of a week; 周三 is a Wednesday."""
CHINESE_YEAR_PATTERN = rf"(?:{_YEAR}年?|今年|本年度?|去年|上一?年度?|前年|明年)"
_ENGLISH_YEAR = rf"(?:(?:of |in )?(?:{_YEAR}|this year|last year|the (?:current|previous|last) year))"
_OF_CHINESE_YEAR = rf"(?:(?P<y>{CHINESE_YEAR_PATTERN})的?)?"
_DAY_NUMBER = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_DATE_FORMS = (
    r"(?<!\d)(?P<y>(?:19|20)\d{2})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)",
    rf"{_OF_CHINESE_YEAR}(?P<m>{SMALL_NUMBER_PATTERN})月(?P<d>{SMALL_NUMBER_PATTERN})[日号]",
    rf"\b(?P<m>{_MONTH}) {_DAY_NUMBER},? (?P<y>{_YEAR})",
    rf"\b{_DAY_NUMBER} (?:of )?(?P<m>{_MONTH}),? (?P<y>{_YEAR})",
    rf"(?P<y>{_YEAR})[-/](?P<m>0?[1-9]|1[0-2])(?![\d/-])",
    rf"{_OF_CHINESE_YEAR}(?:第(?P<q>[一二三四1-4])季度?|(?<![一二三四])(?P<q2>[一二三四])季度)|(?P<y2>{_YEAR})年?[ -]?q(?P<q3>[1-4])",
    rf"{_OF_CHINESE_YEAR}(?P<h>[上下])半年|(?P<y2>{_YEAR})年?[ -]?h(?P<h2>[12])",
    rf"{_OF_CHINESE_YEAR}(?<![个近去\d一二三四五六七八九十])(?P<m>{SMALL_NUMBER_PATTERN})月份?",
    rf"\bq(?P<q>[1-4]) ?-?(?P<y>{_ENGLISH_YEAR})|\b(?:the )?(?P<q2>{_ORDINAL}) quarter(?: (?P<y2>{_ENGLISH_YEAR}))?"
    r"|\bq(?P<q3>[1-4])\b",
    rf"\b(?:the )?(?P<h>first|second) half(?: (?P<y>{_ENGLISH_YEAR}))?|\bh(?P<h2>[12]) (?P<y2>{_ENGLISH_YEAR})",
    rf"\b(?P<m>{_MONTH}),? (?P<y>{_ENGLISH_YEAR})|\b(?P<m2>{_STANDALONE_MONTH})\b|(?<=in )(?P<m3>may|march)\b",
    r"(?P<relative>\b(?:today|(?:the day before )?yesterday)\b|今天|今日|昨天|昨日|前天|今年|去年|前年"
    r"|\b(?:this|(?:the )?(?:current|last|previous)) (?:week|month|quarter|year)\b"
    rf"|(?:这个?|本|当前?|上一?个?|上上个?)(?:{WEEK_PATTERN}|月|季度|季|年度|年)(?!末))",
    rf"(?P<y>{_YEAR})年?",
)
"""Forms of dates; `y`, `q`, `h`, `m` and `d` are the year, quarter, half-year, month and day."""

DATE_PATTERN = re.sub(r"\(\?P<\w+>", "(?:", "(?:" + "|".join(_DATE_FORMS) + ")")
"""A regular expression (without groups) of a date in lowercase text."""
_UNIT_PATTERNS: tuple[tuple[str, Grain], ...] = (
    ("week|周|星期", "week"),
    ("month|月", "month"),
    ("quarter|季", "quarter"),
    ("day|dai|天|日", "day"),
    ("year|annual|年", "year"),
)
_OFFSET_PATTERNS = ((r"day before|(?<!当)前|上上", 2), ("last|previous|yesterday|上|去|昨", 1), ("明", -1))
"""How many units before today a relative date is."""


def parse_date_period(text: str, today: datetime.date, default_year: int | None = None) -> Period | None:
    """Parse a text that matches `DATE_PATTERN`.

    Args:
        text: The lowercase text.
        today: The day that relative dates, such as "last month", count from.
        default_year: The year of a month or quarter without a year; None for the current year.

    Returns:
        The days of the date, or None if it does not exist (2024-02-30).
    """
    text = text.strip()
    matches = (re.fullmatch(form.replace("(?<=in )", ""), text, re.ASCII) for form in _DATE_FORMS)
    match = next(filter(None, matches), None)
    parts = {name.rstrip("23"): part for name, part in match.groupdict().items() if part} if match else {}
    with suppress(ValueError):
        return _build_period(parts, today, default_year or today.year) if parts else None
    return None


def _build_period(parts: dict[str, str], today: datetime.date, default_year: int) -> Period:
    """Build the days of a date from its parts; raise ValueError if it does not exist."""
    if "relative" in parts:
        unit = find_unit(parts["relative"])
        return get_unit(unit, shift_day(today, unit, -_get_offset(parts["relative"])))
    year = default_year
    if "y" in parts:
        digits = re.search(_YEAR, parts["y"])
        year = int(digits[0]) if digits else today.year - _get_offset(parts["y"])
    numbers = {name: _parse_int(parts[name]) for name in "qhmd" if name in parts}
    if "d" in numbers:
        return get_unit("day", datetime.date(year, numbers["m"], numbers["d"]))
    for name, month_count in (("m", 1), ("q", 3), ("h", 6)):
        if name in numbers:
            return get_months(year, month_count * (numbers[name] - 1) + 1, month_count)
    return get_months(year, 1, 12)


def find_unit(text: str) -> Grain:
    """Return the unit of time that a text names, such as that of "last month" or 季度."""
    return next(unit for pattern, unit in _UNIT_PATTERNS if re.search(pattern, text))


def _get_offset(text: str) -> int:
    return next((offset for pattern, offset in _OFFSET_PATTERNS if re.search(pattern, text)), 0)


def _parse_int(text: str) -> int:
    """Parse digits, an English month or ordinal, or a Chinese number; 0, which no date has, for anything else."""
    return int(text) if text.isdecimal() and text.isascii() else _NUMBERS.get(text) or parse_chinese_number(text) or 0
