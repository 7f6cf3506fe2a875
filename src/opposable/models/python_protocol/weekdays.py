"""Days that a request names by weekday, counted from the day the conversation says is today: small models miscount."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Any

from opposable.models.python_protocol.dates import DATE, date_of

_ENGLISH = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
_CHINESE = "一二三四五六日"
_NAME = rf"(?:{'|'.join(_ENGLISH)}|(?:星期|周|礼拜)[{_CHINESE}天])"
_WEEKDAY = re.compile(
    rf"\b(next |last |past )?({'|'.join(_ENGLISH)})\b|(下个?|上个?)?(?:星期|周|礼拜)([{_CHINESE}天])", re.IGNORECASE
)
_TODAY = re.compile(
    rf"(?:\btoday(?:'s date)?(?: is)?|\bcurrent date(?: is)?|今天是?|今日是?|当前日期是?)[\s,，:：]*(?:{_NAME})?[\s,，]*(?P<date>{DATE})"
    rf"(?:[\s,，(（]*{_NAME}(?=\s*(?:[.。,，;；)）]|$)))?",
    re.IGNORECASE,
)
"""What says that a date is today, with its weekday before or behind it."""
_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})(?!\d)(.*)", re.DOTALL)
_WEEK = 7


def days_meant(said: str, asked: str) -> tuple[date, ...]:
    """The days that the one weekday in `asked`, the user's last words, may mean, the likeliest first.

    There are none where `said`, all the text of the conversation, does not tell today's date, or where the request names
    no weekday, several, or a date.
    """
    found = _TODAY.search(said) if _WEEKDAY.search(asked) else None
    today = date_of(found["date"]) if found else None
    if found is None or today is None:
        return ()
    rest = asked.replace(found[0], " ")
    named = list(_weekdays(rest))
    if len(named) != 1 or re.search(DATE, rest, re.IGNORECASE):
        return ()
    told = [day for _, day in _weekdays(found[0])]
    now = told[0] if told else today.weekday()
    which, day = named[0]
    if which in ("last", "past", "上", "上个"):
        return ()
    coming = today + timedelta((day - now) % _WEEK or _WEEK)
    next_week = today + timedelta(_WEEK - now + day)
    return (next_week, coming) if which in ("next", "下", "下个") else (coming,)


def with_days_counted(given: dict[str, Any], days: Sequence[date], said: str, repairs: list[str]) -> dict[str, Any]:
    """The arguments with each made-up date as `days`, those that are meant, have it; one that was said stays."""
    made = {name: _counted(value, days, said) for name, value in given.items()} if days else given
    if made != given:
        repairs.append("day counted from today")
    return made


def _counted(value: Any, days: Sequence[date], said: str) -> Any:
    match = _DAY.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[1] in said or match[1] in [day.isoformat() for day in days]:
        return value
    return days[0].isoformat() + match[2]


def _weekdays(text: str) -> Iterator[tuple[str, int]]:
    """The weekdays that a text names, each once, and what stands before each."""
    seen: set[int] = set()
    for english_which, english, chinese_which, chinese in _WEEKDAY.findall(text):
        day = _ENGLISH.index(english.lower()) if english else _CHINESE.index(chinese.replace("天", "日"))
        if day not in seen:
            seen.add(day)
            yield (english_which or chinese_which).strip().lower(), day
