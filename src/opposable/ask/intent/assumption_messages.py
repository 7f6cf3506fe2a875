"""What is told of an intent that was taken for granted, in English and Chinese."""

import datetime
from collections.abc import Sequence

from opposable.domain.language import Language


def describe_until_today(words: str, today: datetime.date, language: Language) -> str:
    """That the last so many days, weeks or months end with today."""
    return f"“{words}”截止到 {today}" if language == "zh" else f"{words} ends with {today}"


def describe_monthly_trend(language: Language) -> str:
    """That a trend without a step of its own has one row a month."""
    return "趋势按月显示" if language == "zh" else "the trend is shown by month"


def describe_value_choice(words: str, chosen: str, others: Sequence[str], language: Language) -> str:
    """Which dimension a value that stands in several was taken for."""
    if language == "zh":
        return f"“{words}”理解为 {chosen}，而不是 {'、'.join(others)}"
    return f"{words} is taken as {chosen}, not {', '.join(others)}"


def describe_default_year(year: int, language: Language) -> str:
    """That a comparison without a period is made for this year."""
    if language == "zh":
        return f"没有指明时间范围：对比的是 {year} 年"
    return f"no period was named: the year {year} is compared"


def describe_partial_period(today: datetime.date, language: Language) -> str:
    """That a period which is not over is compared by its days so far."""
    if language == "zh":
        return f"该时间段尚未结束：截至 {today} 的日期与之前相同的日期对比"
    return f"the period is not over: its days up to {today} are compared with the same days before"
