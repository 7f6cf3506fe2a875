"""Parser of one English or Chinese date, month, quarter, half-year or year."""

import calendar
import datetime
import re

from opposable.ask.intent.number_parsing import parse_chinese_number
from opposable.ask.intent.periods import Period, add_months, get_month_period, get_quarter_period, get_year_period

_MONTH_NUMBERS = {name.lower(): i for i, name in enumerate(calendar.month_name) if name}
_MONTH_NUMBERS |= {name.lower(): i for i, name in enumerate(calendar.month_abbr) if name} | {"sept": 9}
_MONTH_PATTERN = rf"(?:{'|'.join(sorted(_MONTH_NUMBERS, key=len, reverse=True))})\b"
_STANDALONE_MONTH_PATTERN = "|".join(name for name in _MONTH_NUMBERS if len(name) > 3 and name != "march")
_YEAR_PATTERN = r"(?<!\d)(?:19|20)\d{2}(?!\d)"
SMALL_NUMBER_PATTERN = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
CHINESE_YEAR_PATTERN = rf"(?:{_YEAR_PATTERN}年?|今年|本年度?|去年|上一?年度?|前年|明年)"
_ENGLISH_YEAR_PATTERN = rf"(?:(?:of |in )?(?:{_YEAR_PATTERN}|this year|last year|the (?:current|previous|last) year))"
_ORDINAL_NUMBERS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}
_ORDINAL_PATTERN = "|".join(_ORDINAL_NUMBERS)
_DATE_FORM_PATTERNS = (
    r"(?P<iso>(?<!\d)(?:19|20)\d{2}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d))",
    rf"(?P<zh_day>(?:{CHINESE_YEAR_PATTERN}的?)?{SMALL_NUMBER_PATTERN}月{SMALL_NUMBER_PATTERN}[日号])",
    rf"(?P<mdy>\b{_MONTH_PATTERN} \d{{1,2}}(?:st|nd|rd|th)?,? {_YEAR_PATTERN})",
    rf"(?P<dmy>\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH_PATTERN},? {_YEAR_PATTERN})",
    r"(?P<iso_month>(?<!\d)(?:19|20)\d{2}[-/](?:0?[1-9]|1[0-2])(?![\d/-]))",
    rf"(?P<zh_quarter>(?:{CHINESE_YEAR_PATTERN}的?)?(?:第[一二三四1-4]季度?|[一二三四]季度)|{_YEAR_PATTERN}年?[ -]?q[1-4])",
    rf"(?P<zh_half>(?:{CHINESE_YEAR_PATTERN}的?)?[上下]半年)",
    rf"(?P<zh_month>(?:{CHINESE_YEAR_PATTERN}的?)?(?<![个近去\d一二三四五六七八九十]){SMALL_NUMBER_PATTERN}月份?)",
    rf"(?P<en_quarter>\bq[1-4] ?-?{_ENGLISH_YEAR_PATTERN}|\b(?:the )?(?:{_ORDINAL_PATTERN}) quarter(?: {_ENGLISH_YEAR_PATTERN})?|\bq[1-4]\b)",
    rf"(?P<en_half>\b(?:the )?(?:first|second) half(?: {_ENGLISH_YEAR_PATTERN})?|\bh[12] {_ENGLISH_YEAR_PATTERN})",
    rf"(?P<en_month>\b{_MONTH_PATTERN},? {_ENGLISH_YEAR_PATTERN}|\b(?:{_STANDALONE_MONTH_PATTERN})\b|(?<=in )(?:may|march)\b)",
    r"(?P<day>\btoday\b|\bthe day before yesterday\b|\byesterday\b|今天|今日|昨天|昨日|前天)",
    r"(?P<relative>\b(?:this|current|the current|last|previous|the previous|the last) (?:week|month|quarter|year)\b"
    r"|(?:这个?|本|当前?|上一?个?)(?:周|星期|月|季度|季|年度|年)|今年|去年|前年|上上个?月)",
    rf"(?P<year>{_YEAR_PATTERN}年?)",
)
DATE_PATTERN = re.sub(r"\(\?P<\w+>", "(?:", "(?:" + "|".join(_DATE_FORM_PATTERNS) + ")")
"""A regular expression (without groups) of a date in lowercase text."""
_YEAR_OFFSET_PATTERNS = (
    (r"前年", 2),
    (r"去年|上一?年|last year|previous year", 1),
    (r"今年|本年|this year|current year", 0),
    (r"明年", -1),
)


def parse_date_period(text: str, today: datetime.date, default_year: int | None = None) -> Period | None:
    """Parse a text that matches `DATE_PATTERN`.

    Args:
        text: The lowercase text.
        today: The day that relative dates, such as "last month", count from.
        default_year: The year of a month or quarter without a year; None for the current year.

    Returns:
        The days of the date, or None if it does not exist (2024-02-30).
    """
    year = default_year or today.year
    text = text.strip()
    for form in _DATE_FORM_PATTERNS:
        match = re.fullmatch(form, text, re.ASCII) or re.fullmatch(form.replace("(?<=in )", ""), text, re.ASCII)
        if match is not None and match.lastgroup is not None:
            try:
                return _PARSERS_BY_FORM[match.lastgroup](text, today, year)
            except (ValueError, IndexError, StopIteration):
                return None
    return None


def _parse_numeric_day(text: str, today: datetime.date, year: int) -> Period:
    year, month, day_number = (int(part) for part in re.split(r"[-/.]", text)[:3])
    day = datetime.date(year, month, day_number)
    return Period(day, day)


def _parse_chinese_day(text: str, today: datetime.date, year: int) -> Period:
    month, day_number = re.findall(rf"({SMALL_NUMBER_PATTERN})(?=[月日号])", text)[-2:]
    day = datetime.date(_find_year(text, today, year), _parse_int(month), _parse_int(day_number))
    return Period(day, day)


def _parse_english_day(text: str, today: datetime.date, year: int) -> Period:
    words = re.findall(r"[a-z]+|\d+", text)
    month = next(_MONTH_NUMBERS[word] for word in words if word in _MONTH_NUMBERS)
    digits = [int(word) for word in words if word.isdigit()]
    day = datetime.date(max(digits), month, min(digits))
    return Period(day, day)


def _parse_iso_month(text: str, today: datetime.date, year: int) -> Period:
    year_digits, month_digits = re.split(r"[-/]", text)
    return get_month_period(int(year_digits), int(month_digits))


def _parse_quarter(text: str, today: datetime.date, year: int) -> Period:
    match = re.search(r"q([1-4])", text) or re.search(r"第?([一二三四1-4])季", text)
    if match:
        return get_quarter_period(_find_year(text, today, year), _parse_int(match[1]))
    word = next(word for word in re.findall(r"\w+", text) if word in _ORDINAL_NUMBERS)
    return get_quarter_period(_find_year(text, today, year), _ORDINAL_NUMBERS[word])


def _parse_half_year(text: str, today: datetime.date, year: int) -> Period:
    year = _find_year(text, today, year)
    is_second = bool(re.search(r"下半年|second|h2", text))
    return Period(datetime.date(year, 7 if is_second else 1, 1), get_month_period(year, 12 if is_second else 6).end)


def _parse_chinese_month(text: str, today: datetime.date, year: int) -> Period:
    month = _parse_int(re.findall(rf"({SMALL_NUMBER_PATTERN})月", text)[-1])
    return get_month_period(_find_year(text, today, year), month)


def _parse_english_month(text: str, today: datetime.date, year: int) -> Period:
    month = next(_MONTH_NUMBERS[word] for word in re.findall(r"[a-z]+", text) if word in _MONTH_NUMBERS)
    return get_month_period(_find_year(text, today, year), month)


def _parse_relative_day(text: str, today: datetime.date, year: int) -> Period:
    days_back = 2 if text in ("the day before yesterday", "前天") else 0 if text in ("today", "今天", "今日") else 1
    day = today - datetime.timedelta(days=days_back)
    return Period(day, day)


def _parse_relative_period(text: str, today: datetime.date, year: int) -> Period:
    periods_back = 2 if re.match(r"前|上上", text) else 1 if re.match(r"(?:the )?(?:last|previous)|上|去", text) else 0
    if re.search(r"week|周|星期", text):
        monday = today - datetime.timedelta(days=today.weekday() + 7 * periods_back)
        return Period(monday, monday + datetime.timedelta(days=6))
    if re.search(r"month|月", text):
        day = add_months(today, -periods_back)
        return get_month_period(day.year, day.month)
    if re.search(r"quarter|季", text):
        day = add_months(today, -3 * periods_back)
        return get_quarter_period(day.year, (day.month + 2) // 3)
    return get_year_period(today.year - periods_back)


def _parse_whole_year(text: str, today: datetime.date, year: int) -> Period:
    return get_year_period(int(text[:4]))


def _find_year(text: str, today: datetime.date, default: int) -> int:
    match = re.search(_YEAR_PATTERN, text)
    if match:
        return int(match[0])
    offsets = (years_back for pattern, years_back in _YEAR_OFFSET_PATTERNS if re.search(pattern, text))
    return next((today.year - years_back for years_back in offsets), default)


def _parse_int(text: str) -> int:
    value = int(text) if text.isascii() else parse_chinese_number(text)
    if value is None:
        raise ValueError(text)
    return value


_PARSERS_BY_FORM = {
    "iso": _parse_numeric_day,
    "zh_day": _parse_chinese_day,
    "mdy": _parse_english_day,
    "dmy": _parse_english_day,
    "iso_month": _parse_iso_month,
    "zh_quarter": _parse_quarter,
    "zh_half": _parse_half_year,
    "zh_month": _parse_chinese_month,
    "en_quarter": _parse_quarter,
    "en_half": _parse_half_year,
    "en_month": _parse_english_month,
    "day": _parse_relative_day,
    "relative": _parse_relative_period,
    "year": _parse_whole_year,
}
