"""Days that a request names by weekday, counted from the day the conversation says is today: small models miscount."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Any

from opposable.models.python_protocol.dates import DATE_PATTERN, parse_unambiguous_date

_ENGLISH_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
_CHINESE_WEEKDAYS = "一二三四五六日"
_WEEKDAY_NAME = rf"(?:{'|'.join(_ENGLISH_WEEKDAYS)}|(?:星期|周|礼拜)[{_CHINESE_WEEKDAYS}天])"
_WEEKDAY_PATTERN = re.compile(
    rf"\b(next |last |past )?({'|'.join(_ENGLISH_WEEKDAYS)})\b|(下个?|上个?)?(?:星期|周|礼拜)([{_CHINESE_WEEKDAYS}天])",
    re.IGNORECASE,
)
_TODAY_PATTERN = re.compile(
    rf"(?:\btoday(?:'s date)?(?: is)?|\bcurrent date(?: is)?|今天是?|今日是?|当前日期是?)[\s,，:：]*(?:{_WEEKDAY_NAME})?[\s,，]*(?P<date>{DATE_PATTERN})"
    rf"(?:[\s,，(（]*{_WEEKDAY_NAME}(?=\s*(?:[.。,，;；)）]|$)))?",
    re.IGNORECASE,
)
"""What says that a date is today, with its weekday before or behind it."""
_DAY_PATTERN = re.compile(r"(\d{4}-\d{2}-\d{2})(?!\d)(.*)", re.DOTALL)
_DAYS_PER_WEEK = 7


def find_requested_days(conversation: str, request: str) -> tuple[date, ...]:
    """The days that the one weekday in `asked`, the user's last words, may mean, the likeliest first.

    There are none where `said`, all the text of the conversation, does not tell today's date, or where the request names
    no weekday, several, or a date.
    """
    found = _TODAY_PATTERN.search(conversation) if _WEEKDAY_PATTERN.search(request) else None
    today = parse_unambiguous_date(found["date"]) if found else None
    if found is None or today is None:
        return ()
    rest = request.replace(found[0], " ")
    named = list(_iter_weekdays(rest))
    if len(named) != 1 or re.search(DATE_PATTERN, rest, re.IGNORECASE):
        return ()
    told = [day for _, day in _iter_weekdays(found[0])]
    now = told[0] if told else today.weekday()
    which, day = named[0]
    if which in ("last", "past", "上", "上个"):
        return ()
    coming = today + timedelta((day - now) % _DAYS_PER_WEEK or _DAYS_PER_WEEK)
    next_week = today + timedelta(_DAYS_PER_WEEK - now + day)
    return (next_week, coming) if which in ("next", "下", "下个") else (coming,)


def replace_ungrounded_days(
    arguments: dict[str, Any], requested_days: Sequence[date], conversation: str, repairs: list[str]
) -> dict[str, Any]:
    """The arguments with each made-up date as `days`, those that are meant, have it; one that was said stays."""
    made = (
        {name: _replace_ungrounded_day(value, requested_days, conversation) for name, value in arguments.items()}
        if requested_days
        else arguments
    )
    if made != arguments:
        repairs.append("day counted from today")
    return made


def _replace_ungrounded_day(value: Any, requested_days: Sequence[date], conversation: str) -> Any:
    match = _DAY_PATTERN.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[1] in conversation or match[1] in [day.isoformat() for day in requested_days]:
        return value
    return requested_days[0].isoformat() + match[2]


def _iter_weekdays(text: str) -> Iterator[tuple[str, int]]:
    """The weekdays that a text names, each once, and what stands before each."""
    seen: set[int] = set()
    for english_which, english, chinese_which, chinese in _WEEKDAY_PATTERN.findall(text):
        day = (
            _ENGLISH_WEEKDAYS.index(english.lower())
            if english
            else _CHINESE_WEEKDAYS.index(chinese.replace("天", "日"))
        )
        if day not in seen:
            seen.add(day)
            yield (english_which or chinese_which).strip().lower(), day
