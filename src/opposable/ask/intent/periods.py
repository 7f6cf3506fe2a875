"""Periods of time as days, and the periods before them."""

import calendar
import datetime
from dataclasses import dataclass

from opposable.ask.intent.intent import Comparison, Grain, TimeIntent


@dataclass(frozen=True, slots=True)
class Period:
    """The days from `start` to `end`, both included; None for an open end."""

    start: datetime.date | None
    end: datetime.date | None


def resolve_period(time: TimeIntent, today: datetime.date) -> Period | None:
    """Return the days of `time`, or None if it names no period.

    A quarter or month without a year is of the current year.
    """
    period = _resolve_named_period(time, today)
    if time.comparison != "ytd":
        return period
    year = time.year or today.year
    last = period.end if period and period.end else datetime.date(year, 12, 31)
    if year == today.year and not (time.quarter or time.month or time.end):
        last = today
    return Period(datetime.date(year, 1, 1), last)


def _resolve_named_period(time: TimeIntent, today: datetime.date) -> Period | None:
    if time.start or time.end:
        return Period(time.start, time.end)
    if time.month:
        return get_month_period(time.year or today.year, time.month)
    if time.quarter:
        return get_quarter_period(time.year or today.year, time.quarter)
    if time.year:
        return get_year_period(time.year)
    return None


def get_year_period(year: int) -> Period:
    """Return a calendar year."""
    return Period(datetime.date(year, 1, 1), datetime.date(year, 12, 31))


def get_quarter_period(year: int, quarter: int) -> Period:
    """Return a calendar quarter, 1 to 4."""
    return Period(datetime.date(year, 3 * quarter - 2, 1), _get_last_day(year, 3 * quarter))


def get_month_period(year: int, month: int) -> Period:
    """Return a calendar month, 1 to 12."""
    return Period(datetime.date(year, month, 1), _get_last_day(year, month))


def get_previous_period(period: Period, comparison: Comparison) -> Period:
    """Return the period before; whole months stay whole months."""
    months = {"yoy": 12, "qoq": 3, "mom": 1}.get(comparison, 12)
    start = add_months(period.start, -months) if period.start else None
    if period.end is None:
        return Period(start, None)
    end = add_months(period.end, -months)
    if period.end.day == calendar.monthrange(period.end.year, period.end.month)[1]:
        end = _get_last_day(end.year, end.month)
    return Period(start, end)


def add_months(day: datetime.date, months: int) -> datetime.date:
    """Return the day `months` later, or the last day of a shorter month.

    The result is within the years 1 to 9999.
    """
    index = min(max(day.year * 12 + day.month - 1 + months, 12), 9999 * 12 + 11)
    year, month = divmod(index, 12)
    return datetime.date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def get_granularity(period: Period) -> Grain | None:
    """Return the granularity of a period that is one calendar unit, else None."""
    start, end = period.start, period.end
    if start is None or end is None:
        return None
    if start == end:
        return "day"
    whole = start.day == 1 and end == _get_last_day(end.year, end.month)
    months = (end.year - start.year) * 12 + end.month - start.month + 1
    if whole and months == 12 and start.month == 1:
        return "year"
    if whole and months == 3 and start.month in (1, 4, 7, 10):
        return "quarter"
    if whole and months == 1:
        return "month"
    return "week" if start.weekday() == 0 and (end - start).days == 6 else None


def _get_last_day(year: int, month: int) -> datetime.date:
    return datetime.date(year, month, calendar.monthrange(year, month)[1])
