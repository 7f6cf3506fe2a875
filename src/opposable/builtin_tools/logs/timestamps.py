"""Parsing of log timestamps."""

import re
from datetime import UTC, datetime

ISO_PATTERN = (
    r"(?:\d{4}[-/.]\d{2}[-/.]\d{2}[T ]\d{2}:\d{2}(?::\d{2})?(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"
    r"|\d{4}年\d{1,2}月\d{1,2}日 ?\d{1,2}:\d{2}:\d{2}|\d{2}/\d{2}/\d{2} \d{2}:\d{2}:\d{2})"
)
CLOCK_PATTERN = r"\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?"
SYSLOG_PATTERN = r"[A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2}"
ACCESS_LOG_PATTERN = r"\d{2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4}"
APACHE_PATTERN = r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2}(?:\.\d+)? \d{4}"
"""Patterns of the timestamps that `parse_timestamp` accepts, without groups."""

UNDATED_YEAR = 1900
"""Year of a timestamp whose log has only the time of day."""

_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH_NUMBERS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_CHINESE_PATTERN = re.compile(r"(\d{4})年(\d{1,2})月(\d{1,2})日 ?(\d{1,2}):(\d{2}):(\d{2})")
_KLOG_PATTERN = re.compile(r"(\d{2})(\d{2}) (\d{2}):(\d{2}):(\d{2})")
_EPOCH_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (0, 1))  # nanoseconds, microseconds, milliseconds, seconds


def parse_timestamp(text: str, modified_at: float) -> datetime | None:
    """Parse a log timestamp. The result has a time zone only if the log has one.

    Args:
        text: The timestamp.
        modified_at: Unix time of the file's last change. A timestamp without a year is the last such time before it.

    Returns:
        The time, or None when the text is not a timestamp.
    """
    try:
        return _parse_text(text, modified_at)
    except (ValueError, LookupError, OverflowError, OSError):
        return None


def _parse_text(text: str, modified_at: float) -> datetime:
    if text[0].isdigit():
        return _parse_numeric(text, modified_at)
    if len(text) == 15:  # Nov  2 10:15:00
        return _infer_year(_MONTH_NUMBERS[text[:3]], int(text[4:6]), text[7:], modified_at)
    parts = text.split()  # Mon Nov  2 10:15:00.123 2026
    return datetime.fromisoformat(f"{parts[4]}-{_MONTH_NUMBERS[parts[1]]:02}-{int(parts[2]):02}T{parts[3]}")


def _parse_numeric(text: str, modified_at: float) -> datetime:
    if text[2] == ":":
        return datetime.fromisoformat(f"{UNDATED_YEAR}-01-01T{text}")
    if text[2] == "/" and len(text) == 17:  # 26/11/02 10:15:00
        return datetime.fromisoformat(f"20{text.replace('/', '-')}")
    if text[2] == "/":  # 02/Nov/2026:10:15:00 +0800
        return datetime.fromisoformat(
            f"{text[7:11]}-{_MONTH_NUMBERS[text[3:6]]:02}-{text[:2]}T{text[12:20]}{text[21:]}"
        )
    if match := _KLOG_PATTERN.match(text):
        month, day, *clock = match.groups()
        return _infer_year(int(month), int(day), ":".join(clock), modified_at)
    if match := _CHINESE_PATTERN.match(text):
        year, month, day, hour, minute, second = (int(part) for part in match.groups())
        return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - the log gives no zone
    day_text = text[:10].replace("/", "-").replace(".", "-")
    clock_text = text[11:].replace(" ", "").replace("UTC", "Z").replace("GMT", "Z")
    return datetime.fromisoformat(f"{day_text}T{clock_text}")


def _infer_year(month: int, day: int, clock_text: str, modified_at: float) -> datetime:
    # One day later, because the time zone is unknown.
    last = datetime.fromtimestamp(modified_at + 86400, UTC).replace(tzinfo=None)
    for year in range(last.year, last.year - 8, -1):
        try:
            moment = datetime.fromisoformat(f"{year}-{month:02}-{day:02}T{clock_text}")
        except ValueError:
            if (month, day) == (2, 29):
                continue
            raise
        if moment <= last:
            return moment
    raise ValueError(clock_text)


def parse_json_timestamp(value: object, modified_at: float) -> datetime | None:
    """Parse a JSON timestamp: text, or Unix time in seconds, milli-, micro- or nanoseconds."""
    if isinstance(value, str) and re.fullmatch(r"\d{9,19}(\.\d+)?", value):
        value = float(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        unit = next(unit for least, unit in _EPOCH_UNITS if abs(value) >= least)
        try:
            return datetime.fromtimestamp(value / unit, UTC)
        except (ValueError, OverflowError, OSError):
            return None
    return parse_timestamp(value.strip(), modified_at) if isinstance(value, str) and len(value) > 7 else None
