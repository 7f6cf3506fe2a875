"""Dates in the format that a parameter description asks for."""

import re
from datetime import date, datetime

_FORMAT_PART = r"(y{4}|m{2}|d{2}|year|month|day)"
_FORMAT_PATTERN = re.compile(rf"(?<![a-z]){_FORMAT_PART}([-/.]){_FORMAT_PART}\2{_FORMAT_PART}(?![a-z])", re.IGNORECASE)
_YEAR_FIRST_PATTERN = re.compile(
    r"([12]\d{3})[-/.](\d{1,2})[-/.](\d{1,2})|([12]\d{3}) ?年 ?(\d{1,2}) ?月 ?(\d{1,2}) ?[日号]"
)
MONTH_ABBREVIATIONS = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
"""The first letters of the months."""
_MONTH_PATTERN = rf"(?:{'|'.join(MONTH_ABBREVIATIONS)})[a-z]*"
DATE_PATTERN = (
    r"[12]\d{3}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d)|[12]\d{3} ?年 ?\d{1,2} ?月 ?\d{1,2} ?[日号]|"
    rf"\b{_MONTH_PATTERN}\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}\b|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH_PATTERN},? \d{{4}}\b"
)
"""An unambiguous date: with the year first, or with the name of the month."""
_MONTH_NAME_FORMATS = ("%B %d %Y", "%b %d %Y", "%d %B %Y", "%d %b %Y")
_SECONDS_FORMAT_PATTERN = re.compile(r"y{4}-m{2}-d{2}[ t]h{2}:m{2}:s{2}", re.IGNORECASE)
_MINUTE_TIME_PATTERN = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}")
_STRFTIME_CODES = {"y": "%Y", "m": "%m", "d": "%d"}


def parse_unambiguous_date(text: str) -> date | None:
    """Return the date in a text with the year first or the name of the month.

    None for any other.
    """
    try:
        if match := _YEAR_FIRST_PATTERN.fullmatch(text):
            year, month, day = (int(part) for part in match.groups() if part)
            return date(year, month, day)
    except ValueError:
        return None
    spelt = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b|,|\bof\b", " ", text)
    for form in _MONTH_NAME_FORMATS if any(char.isalpha() for char in spelt) else ():
        try:
            return datetime.strptime(" ".join(spelt.split()), form).date()  # noqa: DTZ007 - a day has no zone
        except ValueError:
            continue
    return None


def format_as_described(value: str, description: str) -> str:
    """Return the date in the only format that the description names, else the value as it is.

    A time of day without seconds gets them if the format has them.
    """
    if _MINUTE_TIME_PATTERN.fullmatch(value) and _SECONDS_FORMAT_PATTERN.search(description):
        return f"{value}:00"
    formats = {
        match[2].join(_STRFTIME_CODES[part[0].lower()] for part in (match[1], match[3], match[4]))
        for match in _FORMAT_PATTERN.finditer(description)
    }
    wanted = formats.pop() if len(formats) == 1 else ""
    meant = parse_unambiguous_date(value.strip()) if all(code in wanted for code in _STRFTIME_CODES.values()) else None
    return value if meant is None else meant.strftime(wanted)
