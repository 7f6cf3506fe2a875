"""Summary of a log: counts of levels, messages and times, in bounded memory."""

import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from opposable.builtin_tools.logs.line_parser import ERROR_LEVELS, LogEntry
from opposable.builtin_tools.logs.timestamps import UNDATED_YEAR
from opposable.safety.filesystem.text_decoding import truncate_line

_MAX_GROUPS = 5000  # distinct messages that are stored; further messages are counted together
_MAX_LEVELS = 20
_MAX_BUCKETS = 20_000
_MAX_SHOWN_BUCKETS = 24
_MAX_MESSAGE_CHARACTERS = 200
_LEVELS_BY_SEVERITY = ("FATAL", "CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG", "TRACE")

_MASKS = tuple(
    (re.compile(pattern), mask)
    for pattern, mask in (
        (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "<uuid>"),
        (r"\b(?:https?|wss?|ftp|jdbc:\w+|redis|amqp|postgres(?:ql)?)://[^\s\"'<>)\],;]+", "<url>"),
        (r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+\b", "<email>"),
        (r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?", "<time>"),
        (r"\b\d{2}:\d{2}:\d{2}(?:[.,]\d+)?\b", "<time>"),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b", "<ip>"),
        (r"\b(?:[0-9a-fA-F]{1,4}:){4,7}[0-9a-fA-F]{1,4}\b", "<ip>"),
        (r"(?<![\w.<])(?:/[\w.@%+~-]+){2,}/?|\b[A-Za-z]:\\[^\s\"']+", "<path>"),
        (r"\b0x[0-9a-fA-F]+\b", "<hex>"),
        (r"\b(?=[0-9a-fA-F]*\d)(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,}\b", "<hex>"),
        (r"\d+(?:[.,]\d+)*", "<n>"),
    )
)
_STATUS_PATTERN = re.compile(r"^(\d{3} )")
_EXCEPTION_PATTERN = re.compile(
    r"^(?:Exception in thread \S+ )?((?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Fault)\b.*)"
)
_TRACE_PATTERN = re.compile(
    r"^(?:Traceback \(most recent|Caused by: |\.\.\. \d+ more|During handling of|The above exception was|goroutine \d+|"
    r"panic: |Stack trace|---|[}\])]|at |[^\s(]+\(.*\)$)"
)
_TIME_UNITS = ("minute", "10 minutes", "hour", "day", "month", "year")


def mask_message(message: str) -> str:
    """Replace the variable parts of a message (numbers, ids, times, addresses, paths) by placeholders."""
    text = truncate_line(message, 400)
    status = match[1] if (match := _STATUS_PATTERN.match(text)) else ""  # the status of an access log stays
    text = text[len(status) :]
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return truncate_line(status + text, _MAX_MESSAGE_CHARACTERS)


@dataclass(slots=True)
class _MessageGroup:
    count: int
    example: str
    first_line: int


class Histogram:
    """Numbers of entries and errors over time. The unit grows with the time span, which bounds memory."""

    def __init__(self) -> None:
        self._unit_index = 0
        self._entry_counts: Counter[datetime] = Counter()
        self._error_counts: Counter[datetime] = Counter()

    def add(self, timestamp: datetime, is_error: bool) -> None:
        """Count an entry at the wall-clock time of its log."""
        bucket = _truncate_to_unit(timestamp, self._unit_index)
        self._entry_counts[bucket] += 1
        if is_error:
            self._error_counts[bucket] += 1
        if len(self._entry_counts) > _MAX_BUCKETS:
            self._widen()

    def _widen(self) -> None:
        self._unit_index += 1
        self._entry_counts = _merge_buckets(self._entry_counts, self._unit_index)
        self._error_counts = _merge_buckets(self._error_counts, self._unit_index)

    def to_result(self) -> dict[str, Any]:
        """Return the counts in at most 24 buckets, {} when all entries are in one bucket."""
        if len(self._entry_counts) < 2:
            return {}
        while self._count_bucket_span() > _MAX_SHOWN_BUCKETS and self._unit_index < len(_TIME_UNITS) - 1:
            self._widen()
        shown = sorted(self._entry_counts)[-_MAX_SHOWN_BUCKETS:]
        result: dict[str, Any] = {"per": _TIME_UNITS[self._unit_index]}
        result["entries"] = {_format_bucket(bucket, self._unit_index): self._entry_counts[bucket] for bucket in shown}
        errors = {_format_bucket(bucket, self._unit_index): self._error_counts[bucket] for bucket in shown}
        if any(errors.values()):
            result["errors"] = {name: count for name, count in errors.items() if count}
        return result

    def _count_bucket_span(self) -> int:
        """Return the number of buckets from first to last, including empty ones."""
        first, last = min(self._entry_counts), max(self._entry_counts)
        steps = (timedelta(minutes=1), timedelta(minutes=10), timedelta(hours=1), timedelta(days=1))
        if self._unit_index >= len(steps):  # months and years differ in length
            return len(self._entry_counts)
        return (last - first) // steps[self._unit_index] + 1


class LogSummary:
    """Counts of one log."""

    def __init__(self) -> None:
        self._entry_count = self._continuation_lines = self._unparsed_lines = self._guessed_levels = 0
        self._level_counts: Counter[str] = Counter()
        self._format_counts: Counter[str] = Counter()
        self._status_counts: Counter[int] = Counter()
        self._groups: dict[str, dict[str, _MessageGroup]] = {"errors": {}, "warnings": {}}
        self._histogram = Histogram()
        self._time_range: tuple[tuple[datetime, datetime], tuple[datetime, datetime]] | None = None
        # The entry that further lines may belong to, the number of its line, and the error of its trace.
        self._open_entry: tuple[LogEntry, int, str] | None = None
        self._in_trace = False

    def add(self, entry: LogEntry, line_number: int) -> None:
        """Count an entry that starts at `line_number`."""
        self.close_entry()
        self._open_entry = (entry, line_number, "")
        self._in_trace = False
        self._entry_count += 1
        self._format_counts[entry.format_name] += 1
        level = entry.level or "NONE"
        is_counted = level in self._level_counts or len(self._level_counts) < _MAX_LEVELS
        self._level_counts[level if is_counted else "OTHER"] += 1
        self._guessed_levels += entry.is_level_guessed
        if entry.status is not None:
            self._status_counts[entry.status] += 1
        if entry.timestamp is not None:
            self._add_timestamp(entry.timestamp, entry.level in ERROR_LEVELS)

    def add_other_line(self, line: str) -> None:
        """Count a line that starts no entry: part of the previous entry (a stack trace), or unparsed."""
        if not line.strip():
            self._continuation_lines += self._open_entry is not None
            return
        exception = _EXCEPTION_PATTERN.match(line)
        trace = bool(exception) or line[0].isspace() or bool(_TRACE_PATTERN.match(line))
        if self._open_entry is None or not trace:
            self._unparsed_lines += 1
            return
        self._continuation_lines += 1
        entry, start, trace_error = self._open_entry
        if exception and (self._in_trace or not trace_error):  # Python prints the error last, Java first
            self._open_entry = (entry, start, exception[1])
        self._in_trace = self._in_trace or line.startswith("Traceback")

    def close_entry(self) -> None:
        """Count the message of the open entry, now that its stack trace is complete."""
        if self._open_entry is None:
            return
        entry, line, exception = self._open_entry
        self._open_entry = None
        if entry.level not in ERROR_LEVELS and entry.level != "WARNING":
            return
        groups = self._groups["errors" if entry.level in ERROR_LEVELS else "warnings"]
        message = entry.message.strip() or "(no message)"
        if exception and exception not in message:
            message = f"{message} | {exception}"
        key = mask_message(message)
        if key not in groups and len(groups) >= _MAX_GROUPS:
            key = "(other messages)"
        group = groups.setdefault(key, _MessageGroup(0, message, line))
        group.count += 1

    def to_result(self, limit: int) -> dict[str, Any]:
        """Return the summary as JSON, with at most `limit` messages."""
        self.close_entry()
        line_count = self._entry_count + self._unparsed_lines
        result: dict[str, Any] = {
            "format": self._describe_format(),
            "entries": self._entry_count,
            "levels": {level: self._level_counts[level] for level in sorted(self._level_counts, key=_rank_level)},
            "top_errors": _list_top_groups(self._groups["errors"], limit),
        }
        if not any(self._level_counts[level] for level in ERROR_LEVELS) and self._groups["warnings"]:
            result["top_warnings"] = _list_top_groups(self._groups["warnings"], limit)
        if self._status_counts:
            result["status"] = {str(status): self._status_counts[status] for status in sorted(self._status_counts)}
        if self._time_range is not None:
            result["time_range"] = {
                "first": _format_timestamp(self._time_range[0][1]),
                "last": _format_timestamp(self._time_range[1][1]),
            }
        if histogram := self._histogram.to_result():
            result["histogram"] = histogram
        result["parsed_share"] = round(self._entry_count / line_count, 3) if line_count else 0.0
        counts = {
            "attached_lines": self._continuation_lines,
            "unparsed_lines": self._unparsed_lines,
            "levels_guessed": self._guessed_levels,
        }
        return result | {name: count for name, count in counts.items() if count}

    def _describe_format(self) -> str:
        if not self._entry_count:
            return "unknown"
        common = [style for style, count in self._format_counts.most_common() if count * 20 >= self._entry_count]
        return common[0] if len(common) == 1 else f"mixed: {', '.join(common)}"

    def _add_timestamp(self, timestamp: datetime, is_error: bool) -> None:
        """Count a timestamp. First and last are compared in UTC, without an offset as if in UTC."""
        wall_time = timestamp.replace(tzinfo=None) if timestamp.tzinfo else timestamp
        self._histogram.add(wall_time, is_error)
        offset = timestamp.utcoffset()
        moment = (wall_time - offset if offset else wall_time, timestamp)
        first, last = self._time_range or (moment, moment)
        self._time_range = (min(first, moment, key=itemgetter(0)), max(last, moment, key=itemgetter(0)))


def _list_top_groups(groups: dict[str, _MessageGroup], limit: int) -> list[dict[str, Any]]:
    ordered = sorted(groups.items(), key=lambda item: (-item[1].count, item[1].first_line))[:limit]
    return [_group_to_result(message, group) for message, group in ordered]


def _group_to_result(message: str, group: _MessageGroup) -> dict[str, Any]:
    result: dict[str, Any] = {"count": group.count, "message": message, "first_line": group.first_line}
    if message == group.example:
        return result
    key = "message" if group.count == 1 else "example"
    return result | {key: truncate_line(group.example, _MAX_MESSAGE_CHARACTERS)}


def _rank_level(level: str) -> tuple[int, str]:
    return (_LEVELS_BY_SEVERITY.index(level) if level in _LEVELS_BY_SEVERITY else len(_LEVELS_BY_SEVERITY), level)


def _truncate_to_unit(timestamp: datetime, unit_index: int) -> datetime:
    match _TIME_UNITS[unit_index]:
        case "minute":
            return timestamp.replace(second=0, microsecond=0)
        case "10 minutes":
            return timestamp.replace(minute=timestamp.minute // 10 * 10, second=0, microsecond=0)
        case "hour":
            return timestamp.replace(minute=0, second=0, microsecond=0)
        case "day":
            return timestamp.replace(hour=0, minute=0, second=0, microsecond=0)
        case "month":
            return timestamp.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        case _:
            return timestamp.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0)


def _merge_buckets(counts: Counter[datetime], unit_index: int) -> Counter[datetime]:
    merged: Counter[datetime] = Counter()
    for bucket, count in counts.items():
        merged[_truncate_to_unit(bucket, unit_index)] += count
    return merged


def _format_bucket(bucket: datetime, unit_index: int) -> str:
    text = bucket.isoformat(sep=" ", timespec="minutes")
    if bucket.year == UNDATED_YEAR:
        return text[11:]
    return text[: {"day": 10, "month": 7, "year": 4}.get(_TIME_UNITS[unit_index], 16)]


def _format_timestamp(timestamp: datetime) -> str:
    return timestamp.strftime("%H:%M:%S") if timestamp.year == UNDATED_YEAR else timestamp.isoformat(timespec="seconds")
