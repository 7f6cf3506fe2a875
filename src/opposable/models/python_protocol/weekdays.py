"""Weekdays in a request, computed from the current date in the conversation."""

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
"""A statement of the current date, with or without its weekday."""
_DAY_PATTERN = re.compile(r"(\d{4}-\d{2}-\d{2})(?!\d)(.*)", re.DOTALL)
_DAYS_PER_WEEK = 7


def find_requested_days(conversation: str, request: str) -> tuple[date, ...]:
    """Return the days that the only weekday in the request can mean, the likeliest first.

    There are none if the conversation does not state the current date, or the request names several weekdays or a date.
    """
    found = _TODAY_PATTERN.search(conversation) if _WEEKDAY_PATTERN.search(request) else None
    today = parse_unambiguous_date(found["date"]) if found else None
    if found is None or today is None:
        return ()
    request_text = request.replace(found[0], " ")
    weekdays = list(_iter_weekdays(request_text))
    if len(weekdays) != 1 or re.search(DATE_PATTERN, request_text, re.IGNORECASE):
        return ()
    stated_weekdays = [day for _, day in _iter_weekdays(found[0])]
    current_weekday = stated_weekdays[0] if stated_weekdays else today.weekday()
    which, day = weekdays[0]
    if which in ("last", "past", "上", "上个"):
        return ()
    coming = today + timedelta((day - current_weekday) % _DAYS_PER_WEEK or _DAYS_PER_WEEK)
    next_week = today + timedelta(_DAYS_PER_WEEK - current_weekday + day)
    return (next_week, coming) if which in ("next", "下", "下个") else (coming,)


def replace_ungrounded_days(
    arguments: dict[str, Any], requested_days: Sequence[date], conversation: str, repairs: list[str]
) -> dict[str, Any]:
    """Return the arguments with ungrounded dates replaced by the requested days."""
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
    """Yield the weekdays of a text, each once, with the word before it."""
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
