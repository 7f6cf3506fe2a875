"""What a log comes to, counted entry by entry in bounded memory."""

import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from opposable.builtin_tools.logs.line_parser import ERRORS, Entry
from opposable.builtin_tools.logs.timestamps import UNDATED
from opposable.safety.filesystem.text_decoding import clipped

_MOST_GROUPS = 5000  # different messages kept; what comes after that is counted together
_MOST_LEVELS = 20
_MOST_BUCKETS = 20_000
_MOST_SHOWN = 24
_MESSAGE = 200
_LEVELS = ("FATAL", "CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG", "TRACE")

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
_STATUS = re.compile(r"^(\d{3} )")
_EXCEPTION = re.compile(
    r"^(?:Exception in thread \S+ )?((?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Fault)\b.*)"
)
_TRACE = re.compile(
    r"^(?:Traceback \(most recent|Caused by: |\.\.\. \d+ more|During handling of|The above exception was|goroutine \d+|"
    r"panic: |Stack trace|---|[}\])]|at |[^\s(]+\(.*\)$)"
)
_UNITS = ("minute", "10 minutes", "hour", "day", "month", "year")


def masked(message: str) -> str:
    """A message with what differs from entry to entry (numbers, ids, times, addresses, paths) replaced by marks."""
    text = clipped(message, 400)
    status = match[1] if (match := _STATUS.match(text)) else ""  # a web server's answer keeps its status
    text = text[len(status) :]
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return clipped(status + text, _MESSAGE)


@dataclass(slots=True)
class _Group:
    count: int
    example: str
    line: int


class Histogram:
    """Entries and errors over time; the unit grows with the time span, so that memory stays bounded."""

    def __init__(self) -> None:
        self._unit = 0
        self._counts: Counter[datetime] = Counter()
        self._errors: Counter[datetime] = Counter()

    def add(self, moment: datetime, error: bool) -> None:
        """Count an entry at its log's own wall-clock time."""
        bucket = _floor(moment, self._unit)
        self._counts[bucket] += 1
        if error:
            self._errors[bucket] += 1
        if len(self._counts) > _MOST_BUCKETS:
            self._widen()

    def _widen(self) -> None:
        self._unit += 1
        self._counts = _rolled_up(self._counts, self._unit)
        self._errors = _rolled_up(self._errors, self._unit)

    def result(self) -> dict[str, Any]:
        """Counts in at most 24 buckets; {} when all falls into one minute."""
        if len(self._counts) < 2:
            return {}
        while self._span() > _MOST_SHOWN and self._unit < len(_UNITS) - 1:
            self._widen()
        shown = sorted(self._counts)[-_MOST_SHOWN:]
        result: dict[str, Any] = {"per": _UNITS[self._unit]}
        result["entries"] = {_label(bucket, self._unit): self._counts[bucket] for bucket in shown}
        if errors := {_label(bucket, self._unit): self._errors[bucket] for bucket in shown if self._errors[bucket]}:
            result["errors"] = errors
        return result

    def _span(self) -> int:
        """Buckets from the first to the last, the empty ones too, so that a gap does not hide in fine units."""
        first, last = min(self._counts), max(self._counts)
        steps = (timedelta(minutes=1), timedelta(minutes=10), timedelta(hours=1), timedelta(days=1))
        return (last - first) // steps[self._unit] + 1 if self._unit < len(steps) else len(self._counts)


class LogSummary:
    """Counts of one log."""

    def __init__(self) -> None:
        self._entries = self._attached = self._unparsed = self._guessed = 0
        self._levels: Counter[str] = Counter()
        self._styles: Counter[str] = Counter()
        self._statuses: Counter[int] = Counter()
        self._groups: dict[str, dict[str, _Group]] = {"errors": {}, "warnings": {}}
        self._histogram = Histogram()
        self._span: tuple[tuple[datetime, datetime], tuple[datetime, datetime]] | None = None
        self._open: tuple[Entry, int, str] | None = None  # the entry that lines may still belong to, its trace's error
        self._in_trace = False

    def add(self, entry: Entry, line: int) -> None:
        """Count an entry that begins at `line`."""
        self.close()
        self._open = (entry, line, "")
        self._in_trace = False
        self._entries += 1
        self._styles[entry.style] += 1
        level = entry.level or "NONE"
        self._levels[level if level in self._levels or len(self._levels) < _MOST_LEVELS else "OTHER"] += 1
        self._guessed += entry.guessed
        if entry.status is not None:
            self._statuses[entry.status] += 1
        if entry.moment is not None:
            self._at(entry.moment, entry.level in ERRORS)

    def add_other(self, line: str) -> None:
        """Count a line that begins no entry: part of the entry before (a stack trace, an indented line), or unparsed."""
        if not line.strip():
            self._attached += self._open is not None
            return
        exception = _EXCEPTION.match(line)
        trace = bool(exception) or line[0].isspace() or bool(_TRACE.match(line))
        if self._open is None or not trace:
            self._unparsed += 1
            return
        self._attached += 1
        entry, start, known = self._open
        if exception and (self._in_trace or not known):  # Python tells the error last, Java first
            self._open = (entry, start, exception[1])
        self._in_trace = self._in_trace or line.startswith("Traceback")

    def close(self) -> None:
        """Count the message of the entry that was open, now that its trace is known."""
        if self._open is None:
            return
        entry, line, exception = self._open
        self._open = None
        if entry.level not in ERRORS and entry.level != "WARNING":
            return
        groups = self._groups["errors" if entry.level in ERRORS else "warnings"]
        message = entry.message.strip() or "(no message)"
        if exception and exception not in message:
            message = f"{message} | {exception}"
        key = masked(message)
        if key not in groups and len(groups) >= _MOST_GROUPS:
            key = "(other messages)"
        group = groups.setdefault(key, _Group(0, message, line))
        group.count += 1

    def result(self, limit: int) -> dict[str, Any]:
        """The summary as JSON, with at most `limit` messages."""
        self.close()
        known = self._entries + self._unparsed
        result: dict[str, Any] = {
            "format": self._format(),
            "entries": self._entries,
            "levels": {level: self._levels[level] for level in sorted(self._levels, key=_rank)},
            "errors_and_worse": sum(self._levels[level] for level in ERRORS),
            "top_errors": _top(self._groups["errors"], limit),
        }
        if not result["errors_and_worse"] and self._groups["warnings"]:
            result["top_warnings"] = _top(self._groups["warnings"], limit)
        if self._statuses:
            result["status"] = {str(status): self._statuses[status] for status in sorted(self._statuses)}
        if self._span is not None:
            result["time_range"] = {"first": _shown(self._span[0][1]), "last": _shown(self._span[1][1])}
        if histogram := self._histogram.result():
            result["histogram"] = histogram
        result["parsed_share"] = round(self._entries / known, 3) if known else 0.0
        counts = {"attached_lines": self._attached, "unparsed_lines": self._unparsed, "levels_guessed": self._guessed}
        return result | {name: count for name, count in counts.items() if count}

    def _format(self) -> str:
        if not self._entries:
            return "unknown"
        common = [style for style, count in self._styles.most_common() if count * 20 >= self._entries]
        return common[0] if len(common) == 1 else f"mixed: {', '.join(common)}"

    def _at(self, moment: datetime, error: bool) -> None:
        """Count a moment; the first and last are compared in UTC, one without an offset as if it were UTC."""
        wall = moment.replace(tzinfo=None) if moment.tzinfo else moment
        self._histogram.add(wall, error)
        offset = moment.utcoffset()
        at = (wall - offset if offset else wall, moment)
        if self._span is None:
            self._span = (at, at)
        elif at[0] < self._span[0][0]:
            self._span = (at, self._span[1])
        elif at[0] > self._span[1][0]:
            self._span = (self._span[0], at)


def _top(groups: dict[str, _Group], limit: int) -> list[dict[str, Any]]:
    ordered = sorted(groups.items(), key=lambda item: (-item[1].count, item[1].line))[:limit]
    return [_told(message, group) for message, group in ordered]


def _told(message: str, group: _Group) -> dict[str, Any]:
    told: dict[str, Any] = {"count": group.count, "message": message, "first_line": group.line}
    if group.count == 1:
        return told | {"message": clipped(group.example, _MESSAGE)}
    return told if message == group.example else told | {"example": clipped(group.example, _MESSAGE)}


def _rank(level: str) -> tuple[int, str]:
    return (_LEVELS.index(level) if level in _LEVELS else len(_LEVELS), level)


def _floor(moment: datetime, unit: int) -> datetime:
    match _UNITS[unit]:
        case "minute":
            return moment.replace(second=0, microsecond=0)
        case "10 minutes":
            return moment.replace(minute=moment.minute // 10 * 10, second=0, microsecond=0)
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        case "day":
            return moment.replace(hour=0, minute=0, second=0, microsecond=0)
        case "month":
            return moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        case _:
            return moment.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0)


def _rolled_up(counts: Counter[datetime], unit: int) -> Counter[datetime]:
    rolled: Counter[datetime] = Counter()
    for bucket, count in counts.items():
        rolled[_floor(bucket, unit)] += count
    return rolled


def _label(bucket: datetime, unit: int) -> str:
    text = bucket.isoformat(sep=" ", timespec="minutes")
    if bucket.year == UNDATED:
        return text[11:]
    return text[: {"day": 10, "month": 7, "year": 4}.get(_UNITS[unit], 16)]


def _shown(moment: datetime) -> str:
    return moment.strftime("%H:%M:%S") if moment.year == UNDATED else moment.isoformat(timespec="seconds")
