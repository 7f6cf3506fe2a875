"""Periods of time as days, and the periods before them."""

import calendar
import datetime
from dataclasses import dataclass
from typing import get_args

from opposable.ask.intent.intent import Comparison, Grain, TimeIntent

COMPARED_UNITS: dict[Comparison, Grain] = {"yoy": "year", "qoq": "quarter", "mom": "month"}
"""The unit of time between a period and the one that it is compared with."""
_MONTHS_BY_UNIT: dict[Grain, int] = {"year": 12, "quarter": 3, "month": 1}


@dataclass(frozen=True, slots=True)
class Period:
    """The days from `start` to `end`, both included; an open end is the first or the last date there is."""

    start: datetime.date = datetime.date.min
    end: datetime.date = datetime.date.max


def resolve_period(time: TimeIntent, today: datetime.date) -> Period | None:
    """Return the days of `time`, if it names a period. A quarter or month without a year is of the current year."""
    year = time.year or today.year
    period = get_months(year, 1, 12) if time.year else None
    if time.start or time.end:
        period = Period(time.start or datetime.date.min, time.end or datetime.date.max)
    elif time.month:
        period = get_months(year, time.month, 1)
    elif time.quarter:
        period = get_months(year, 3 * time.quarter - 2, 3)
    if time.comparison != "ytd":
        return period
    is_unfinished = year == today.year and not (time.quarter or time.month or time.end)
    last = min(period.end if period else datetime.date.max, datetime.date(year, 12, 31))
    return Period(datetime.date(year, 1, 1), today if is_unfinished else last)


def get_months(year: int, first_month: int, count: int) -> Period:
    """Return the days of some months of a year; raise ValueError if the first does not exist."""
    return Period(datetime.date(year, first_month, 1), _get_last_day(year, first_month + count - 1))


def get_unit(unit: Grain, day: datetime.date) -> Period:
    """Return the year, quarter, month, week or day that contains `day`."""
    if unit == "day":
        return Period(day, day)
    if unit == "week":
        monday = day - datetime.timedelta(days=day.weekday())
        return Period(monday, monday + datetime.timedelta(days=6))
    count = _MONTHS_BY_UNIT[unit]
    return get_months(day.year, (day.month - 1) // count * count + 1, count)


def get_granularity(period: Period | None) -> Grain | None:
    """Return the granularity of a period that is one calendar unit, else None."""
    return next((unit for unit in get_args(Grain) if period and get_unit(unit, period.start) == period), None)


def get_previous_period(period: Period, comparison: Comparison) -> Period:
    """Return the period before; whole months stay whole months."""
    unit = COMPARED_UNITS[comparison]
    start, end = shift_day(period.start, unit, -1), shift_day(period.end, unit, -1)
    if period.end == _get_last_day(period.end.year, period.end.month):
        end = _get_last_day(end.year, end.month)
    return Period(start, end if period.end < datetime.date.max else period.end)


def shift_day(day: datetime.date, unit: Grain, count: int) -> datetime.date:
    """Return the day some units later, or the last day of a shorter month. Months are within the years 1 to 9999."""
    if unit in ("day", "week"):
        return day + datetime.timedelta(days=count * (7 if unit == "week" else 1))
    index = min(max(day.year * 12 + day.month - 1 + count * _MONTHS_BY_UNIT[unit], 12), 9999 * 12 + 11)
    year, month = divmod(index, 12)
    return datetime.date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _get_last_day(year: int, month: int) -> datetime.date:
    return datetime.date(year, month, calendar.monthrange(year, month)[1])
