"""One date, month, quarter, half or year as people write it, and the days it means."""

import calendar
import datetime
import re

from opposable.ask.intent.number_parsing import chinese
from opposable.ask.intent.periods import Period, add_months, month_of, quarter_of, year_of

_MONTHS = {name.lower(): i for i, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name.lower(): i for i, name in enumerate(calendar.month_abbr) if name} | {"sept": 9}
_MONTH = rf"(?:{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b"
_ALONE = "|".join(name for name in _MONTHS if len(name) > 3 and name != "march")
_YEAR = r"(?<!\d)(?:19|20)\d{2}(?!\d)"
NUM = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
ZH_YEAR = rf"(?:{_YEAR}年?|今年|本年度?|去年|上一?年度?|前年|明年)"
_EN_YEAR = rf"(?:(?:of |in )?(?:{_YEAR}|this year|last year|the (?:current|previous|last) year))"
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}
_ORDINAL = "|".join(_ORDINALS)
_FORMS = (
    r"(?P<iso>(?<!\d)(?:19|20)\d{2}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d))",
    rf"(?P<zh_day>(?:{ZH_YEAR}的?)?{NUM}月{NUM}[日号])",
    rf"(?P<mdy>\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? {_YEAR})",
    rf"(?P<dmy>\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH},? {_YEAR})",
    r"(?P<iso_month>(?<!\d)(?:19|20)\d{2}[-/](?:0?[1-9]|1[0-2])(?![\d/-]))",
    rf"(?P<zh_quarter>(?:{ZH_YEAR}的?)?(?:第[一二三四1-4]季度?|[一二三四]季度)|{_YEAR}年?[ -]?q[1-4])",
    rf"(?P<zh_half>(?:{ZH_YEAR}的?)?[上下]半年)",
    rf"(?P<zh_month>(?:{ZH_YEAR}的?)?(?<![个近去\d一二三四五六七八九十]){NUM}月份?)",
    rf"(?P<en_quarter>\bq[1-4] ?-?{_EN_YEAR}|\b(?:the )?(?:{_ORDINAL}) quarter(?: {_EN_YEAR})?|\bq[1-4]\b)",
    rf"(?P<en_half>\b(?:the )?(?:first|second) half(?: {_EN_YEAR})?|\bh[12] {_EN_YEAR})",
    rf"(?P<en_month>\b{_MONTH},? {_EN_YEAR}|\b(?:{_ALONE})\b|(?<=in )(?:may|march)\b)",
    r"(?P<day>\btoday\b|\bthe day before yesterday\b|\byesterday\b|今天|今日|昨天|昨日|前天)",
    r"(?P<relative>\b(?:this|current|the current|last|previous|the previous|the last) (?:week|month|quarter|year)\b"
    r"|(?:这个?|本|当前?|上一?个?)(?:周|星期|月|季度|季|年度|年)|今年|去年|前年|上上个?月)",
    rf"(?P<year>{_YEAR}年?)",
)
DATE = re.sub(r"\(\?P<\w+>", "(?:", "(?:" + "|".join(_FORMS) + ")")
"""A regular expression (without groups) of a date in a text in lower case."""
_YEARS_BACK = (
    (r"前年", 2),
    (r"去年|上一?年|last year|previous year", 1),
    (r"今年|本年|this year|current year", 0),
    (r"明年", -1),
)


def date_period(text: str, today: datetime.date, year: int | None = None) -> Period | None:
    """The days that `text`, which fits `DATE`, means; `year` is that of a month or quarter without one.

    None when there is no such day (2024-02-30).
    """
    of = year or today.year
    text = text.strip()
    for form in _FORMS:
        found = re.fullmatch(form, text, re.ASCII) or re.fullmatch(form.replace("(?<=in )", ""), text, re.ASCII)
        if found is not None and found.lastgroup is not None:
            try:
                return _READERS[found.lastgroup](text, today, of)
            except (ValueError, IndexError, StopIteration):
                return None
    return None


def _day(text: str, today: datetime.date, year: int) -> Period:
    first, month, number = (int(part) for part in re.split(r"[-/.]", text)[:3])
    day = datetime.date(first, month, number)
    return Period(day, day)


def _chinese_day(text: str, today: datetime.date, year: int) -> Period:
    month, number = re.findall(rf"({NUM})(?=[月日号])", text)[-2:]
    day = datetime.date(_year(text, today, year), _int(month), _int(number))
    return Period(day, day)


def _english_day(text: str, today: datetime.date, year: int) -> Period:
    words = re.findall(r"[a-z]+|\d+", text)
    month = next(_MONTHS[word] for word in words if word in _MONTHS)
    digits = [int(word) for word in words if word.isdigit()]
    day = datetime.date(max(digits), month, min(digits))
    return Period(day, day)


def _iso_month(text: str, today: datetime.date, year: int) -> Period:
    first, month = re.split(r"[-/]", text)
    return month_of(int(first), int(month))


def _quarter(text: str, today: datetime.date, year: int) -> Period:
    short = re.search(r"q([1-4])", text) or re.search(r"第?([一二三四1-4])季", text)
    if short:
        return quarter_of(_year(text, today, year), _int(short[1]))
    word = next(word for word in re.findall(r"\w+", text) if word in _ORDINALS)
    return quarter_of(_year(text, today, year), _ORDINALS[word])


def _half(text: str, today: datetime.date, year: int) -> Period:
    of = _year(text, today, year)
    second = bool(re.search(r"下半年|second|h2", text))
    return Period(datetime.date(of, 7 if second else 1, 1), month_of(of, 12 if second else 6).end)


def _chinese_month(text: str, today: datetime.date, year: int) -> Period:
    return month_of(_year(text, today, year), _int(re.findall(rf"({NUM})月", text)[-1]))


def _english_month(text: str, today: datetime.date, year: int) -> Period:
    month = next(_MONTHS[word] for word in re.findall(r"[a-z]+", text) if word in _MONTHS)
    return month_of(_year(text, today, year), month)


def _near_day(text: str, today: datetime.date, year: int) -> Period:
    before = 2 if text in ("the day before yesterday", "前天") else 0 if text in ("today", "今天", "今日") else 1
    day = today - datetime.timedelta(days=before)
    return Period(day, day)


def _relative(text: str, today: datetime.date, year: int) -> Period:
    back = 2 if re.match(r"前|上上", text) else 1 if re.match(r"(?:the )?(?:last|previous)|上|去", text) else 0
    if re.search(r"week|周|星期", text):
        monday = today - datetime.timedelta(days=today.weekday() + 7 * back)
        return Period(monday, monday + datetime.timedelta(days=6))
    if re.search(r"month|月", text):
        day = add_months(today, -back)
        return month_of(day.year, day.month)
    if re.search(r"quarter|季", text):
        day = add_months(today, -3 * back)
        return quarter_of(day.year, (day.month + 2) // 3)
    return year_of(today.year - back)


def _whole_year(text: str, today: datetime.date, year: int) -> Period:
    return year_of(int(text[:4]))


def _year(text: str, today: datetime.date, default: int) -> int:
    found = re.search(_YEAR, text)
    if found:
        return int(found[0])
    return next((today.year - back for pattern, back in _YEARS_BACK if re.search(pattern, text)), default)


def _int(text: str) -> int:
    value = int(text) if text.isascii() else chinese(text)
    if value is None:
        raise ValueError(text)
    return value


_READERS = {
    "iso": _day,
    "zh_day": _chinese_day,
    "mdy": _english_day,
    "dmy": _english_day,
    "iso_month": _iso_month,
    "zh_quarter": _quarter,
    "zh_half": _half,
    "zh_month": _chinese_month,
    "en_quarter": _quarter,
    "en_half": _half,
    "en_month": _english_month,
    "day": _near_day,
    "relative": _relative,
    "year": _whole_year,
}
