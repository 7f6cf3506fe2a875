"""Parser of log lines in common formats: timestamp, level and message."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson

from opposable.builtin_tools.logs.timestamps import (
    ACCESS_LOG_PATTERN,
    APACHE_PATTERN,
    CLOCK_PATTERN,
    ISO_PATTERN,
    SYSLOG_PATTERN,
    parse_json_timestamp,
    parse_timestamp,
)

ERROR_LEVELS = frozenset({"ERROR", "CRITICAL", "FATAL"})
"""Levels that count as errors."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """The first line of a log entry.

    Attributes:
        format_name: The log format.
        timestamp: The time of the entry, None when the line has none.
        level: The level, "" when the line has none.
        message: The text after timestamp and level.
        status: The HTTP status of an access log.
        is_level_guessed: Whether the level is inferred from words of the message.
    """

    format_name: str
    timestamp: datetime | None
    level: str
    message: str
    status: int | None = None
    is_level_guessed: bool = False


_LEVEL_NAMES = {
    "TRACE": "trace finest finer verbose vrb trc",
    "DEBUG": "debug dbg fine d 调试",
    "INFO": "info information inf notice success config log i 信息",
    "WARNING": "warn warning wrn w 警告",
    "ERROR": "error err severe eror e 错误",
    "CRITICAL": "critical crit alert emerg emergency 严重",
    "FATAL": "fatal panic dpanic ftl f 致命",
}
_LEVEL_BY_NAME = {other: level for level, others in _LEVEL_NAMES.items() for other in others.split()}
_SYSLOG_LEVELS = ("CRITICAL", "CRITICAL", "CRITICAL", "ERROR", "WARNING", "INFO", "INFO", "DEBUG")
_JSON_LEVELS = ((60, "FATAL"), (50, "ERROR"), (40, "WARNING"), (30, "INFO"), (20, "DEBUG"), (0, "TRACE"))

_LEVEL_WORDS = (
    "TRACE|FINEST|FINER|VERBOSE|DEBUG|FINE|INFO|INFORMATION|NOTICE|SUCCESS|WARN|WARNING|ERROR|ERR|SEVERE|CRITICAL|CRIT|"
    "ALERT|EMERG|EMERGENCY|FATAL|PANIC|DPANIC|调试|信息|警告|错误|严重|致命"
)
_LEVEL_WORDS_AND_SHORT_FORMS = f"{_LEVEL_WORDS}|TRC|VRB|DBG|INF|WRN|FTL|LOG|CONFIG"
_ANY_LEVEL_PATTERN = f"(?i:{_LEVEL_WORDS_AND_SHORT_FORMS})"
_TIMESTAMP_PATTERN = rf"(?P<time>{ISO_PATTERN}|{CLOCK_PATTERN})"
_MESSAGE_PATTERN = r"(?P<message>.*)$"

_LEVEL_INSIDE_PATTERN = re.compile(
    rf"(?:^[\s:|\-]*|[\[<(|]\s*)(?P<near>{_ANY_LEVEL_PATTERN})(?=\s*[\]>)|:\s]|$)"
    rf"|[\s:|\-](?P<word>{_LEVEL_WORDS}|LOG(?=:))(?=[\s\]>)|:,]|$)"
)
_LOGGER_PREFIX_PATTERN = re.compile(
    r"[\s\]>)|:,\-]*(?:\d+ --- )?(?:\[[^\]]{0,200}\]\s*)*"
    r"(?:in [\w.]+:\s+|\S{1,300}\.\w{1,4}:\d{1,9}\S{0,100}[\s|\-]+|[\w$\-]+(?:\.[\w$\-]+)+(?::\d+|:[\w<>]+:\d+)?\s*(?:-|:|\|)\s+|[\w.$\-]+ - )?"
    r"[\s:|\-]*"
)
_ANSI_COLOR_PATTERN = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_CONTAINER_LINE_PATTERN = re.compile(
    rf"^(?P<time>{ISO_PATTERN}) (?:stdout|stderr) [FP] (?P<inner>.*)$|^[\w.\-]+\s+\| (?P<plain>.*)$"
)
_LOGFMT_PAIR_PATTERN = re.compile(r'(?<![\w.])([A-Za-z_][\w.]{0,60})=("(?:[^"\\]|\\.)*"|\S*)')
_ERROR_WORDS_PATTERN = re.compile(
    r"(?i:\b(?:error|exception|fatal|panic|critical|failed|failure|segfault)\b)|错误|失败|异常|崩溃", re.ASCII
)
_WARNING_WORDS_PATTERN = re.compile(r"(?i:\b(?:warn|warning|denied|refused)\b)|警告|告警|拒绝", re.ASCII)

_FORMATS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (style, re.compile(pattern))
    for style, pattern in (
        (
            "syslog (RFC 5424)",
            rf"^<(?P<pri>\d{{1,3}})>1 (?P<time>\S+) \S+ \S+ \S+ \S+ (?:-|(?:\[[^\]]*\])+) ?{_MESSAGE_PATTERN}",
        ),
        (
            "syslog (RFC 3164)",
            rf"^(?:<(?P<pri>\d{{1,3}})>)?(?P<time>{SYSLOG_PATTERN}) \S+ [^\s:\[]+(?:\[\d+\])?: ?{_MESSAGE_PATTERN}",
        ),
        (
            "access log",
            rf'^\S+ (?:\S+ )?\S+ [^\[]{{1,200}}?\[(?P<time>{ACCESS_LOG_PATTERN})\] "(?P<message>(?:[^"\\]|\\.)*)" (?P<status>\d{{3}}) (?:\d+|-)',
        ),
        (
            "nginx error log",
            r"^(?P<time>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) \[(?P<level>\w+)\] \d+#\d+: (?:\*\d+ )?(?P<message>.*?)(?:, client: .*)?$",
        ),
        (
            "apache error log",
            rf"^\[(?P<time>{APACHE_PATTERN})\] \[(?:\w+:)?(?P<level>\w+)\] (?:\[pid [^\]]*\] )?(?:\[client [^\]]*\] )?{_MESSAGE_PATTERN}",
        ),
        ("klog", rf"^(?P<level>[IWEF])(?P<time>\d{{4}} \d\d:\d\d:\d\d)\.\d+\s+\d+ \S+:\d+\] {_MESSAGE_PATTERN}"),
        ("loguru", rf"^(?P<time>{ISO_PATTERN}) \| (?P<level>{_ANY_LEVEL_PATTERN})\s*\| \S+ - {_MESSAGE_PATTERN}"),
        ("python logging", rf"^(?P<time>{ISO_PATTERN}) - \S+ - (?P<level>{_ANY_LEVEL_PATTERN}) - {_MESSAGE_PATTERN}"),
        (
            "spring boot",
            rf"^(?P<time>{ISO_PATTERN})\s+(?P<level>{_ANY_LEVEL_PATTERN}) \d+ --- (?:\[[^\]]*\] )*\S+\s*: {_MESSAGE_PATTERN}",
        ),
        (
            "log4j/logback",
            rf"^\[?{_TIMESTAMP_PATTERN}\]? +\[[^\]]*\] +(?P<level>{_LEVEL_WORDS}) +\S+(?: \[[^\]]*\])?(?: +-|:) {_MESSAGE_PATTERN}",
        ),
        (
            "log4j/logback",
            rf"^{_TIMESTAMP_PATTERN} +(?P<level>{_LEVEL_WORDS}) +\[[^\]]*\] +[\w.$]+(?::\d+)?(?: +-|:) {_MESSAGE_PATTERN}",
        ),
        (
            "log4j/logback",
            rf"^{_TIMESTAMP_PATTERN} +(?P<level>{_LEVEL_WORDS}) +[\w$]+(?:\.[\w$]+)+(?::\d+)?(?: +-|:) {_MESSAGE_PATTERN}",
        ),
        (
            "zap",
            rf"^(?P<time>{ISO_PATTERN})\t(?P<level>{_ANY_LEVEL_PATTERN})\t(?:[\w.\-]+\t)?(?:\S+:\d+\t)?(?P<message>[^\t]*)",
        ),
        ("python logging", rf"^(?P<level>{_LEVEL_WORDS}):[\w.]+:{_MESSAGE_PATTERN}"),
        (
            "syslog (ISO time)",
            rf"^(?P<time>{ISO_PATTERN}) (?!(?:{_LEVEL_WORDS_AND_SHORT_FORMS})\b)[\w.\-]+ [^\s:\[]+\[\d+\]: {_MESSAGE_PATTERN}",
        ),
    )
)
_TIMESTAMPED_LINE_PATTERN = re.compile(rf"^[\[(]?{_TIMESTAMP_PATTERN}[\])]?(?P<rest>.*)$")
_LEVEL_FIRST_LINE_PATTERN = re.compile(
    rf"^(?:[\[<(](?P<boxed>{_ANY_LEVEL_PATTERN})[\]>)]|(?P<word>{_LEVEL_WORDS})(?=[\s:|\-])|(?P<small>error|warning|info|debug)(?=:\s))"
    rf"[\s:|\-]*(?:[\[(]?(?P<time>{ISO_PATTERN})[\])]?[\s:|\-]*)?{_MESSAGE_PATTERN}"
)


class LogLineParser:
    """Parser of the lines of one log. It tries the format of the previous line first.

    Args:
        modified_at: Unix time of the file's last change, for timestamps without a year.
    """

    def __init__(self, modified_at: float) -> None:
        self._modified_at = modified_at
        self._formats = list(_FORMATS)
        self._nesting_depth = 0

    def parse(self, line: str) -> LogEntry | None:
        """Return the entry that starts at a line, None for a continuation line."""
        if "\x1b" in line:
            line = _ANSI_COLOR_PATTERN.sub("", line)
        if not line or line[0].isspace():
            return None
        for parse_format in (
            self._parse_json,
            self._parse_logfmt,
            self._parse_known_format,
            self._parse_container_line,
            self._parse_timestamped,
            self._parse_level_first,
        ):
            if entry := parse_format(line):
                return entry
        return None

    def _parse_inner(self, line: str) -> LogEntry | None:
        """Parse a line inside a container or shipper record, at most two levels deep."""
        if self._nesting_depth == 2:
            return None
        self._nesting_depth += 1
        entry = self.parse(line)
        self._nesting_depth -= 1
        return entry

    def _parse_json(self, line: str) -> LogEntry | None:
        if not line.startswith("{"):
            return None
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            return None
        if not isinstance(record, dict) or not record:
            return None
        return self._entry_from_record("JSON lines", record)

    def _parse_logfmt(self, line: str) -> LogEntry | None:
        if "level=" not in line and "lvl=" not in line:
            return None
        pairs = {key: value[1:-1] if value[:1] == '"' else value for key, value in _LOGFMT_PAIR_PATTERN.findall(line)}
        if not line.startswith(next(iter(pairs), "=") + "="):
            return None
        return self._entry_from_record("logfmt", pairs)

    def _entry_from_record(self, format_name: str, record: dict[str, Any]) -> LogEntry:
        fields = {key.lower().lstrip("@"): value for key, value in record.items()}
        log_field = fields.get("log")
        nested_log = log_field if isinstance(log_field, dict) else {}
        level = _parse_json_level(
            _get_first_value(fields, "level severity levelname lvl loglevel log.level severity_text l")
            or nested_log.get("level")
        )
        timestamp = parse_json_timestamp(
            _get_first_value(fields, "timestamp time ts datetime date asctime t"), self._modified_at
        )
        message = _get_first_value(fields, "message msg event text log error err exception m body")
        if isinstance(message, dict):
            message = message.get("message") or message.get("msg") or orjson.dumps(message).decode()
        text = orjson.dumps(record, default=str).decode() if message is None else str(message).strip()
        if not level and isinstance(message, str) and (inner_entry := self._parse_inner(text)) and inner_entry.level:
            return LogEntry(
                format_name,
                timestamp or inner_entry.timestamp,
                inner_entry.level,
                inner_entry.message,
                is_level_guessed=inner_entry.is_level_guessed,
            )
        return _make_entry(format_name, timestamp, level, text)

    def _parse_known_format(self, line: str) -> LogEntry | None:
        for index, (style, pattern) in enumerate(self._formats):
            if match := pattern.match(line):
                if index:
                    self._formats.insert(0, self._formats.pop(index))
                return self._entry_from_match(style, match.groupdict())
        return None

    def _entry_from_match(self, format_name: str, match_groups: dict[str, str | None]) -> LogEntry:
        timestamp = self._parse_timestamp(match_groups.get("time"))
        message = match_groups["message"] or ""
        if status := match_groups.get("status"):
            return _make_access_entry(format_name, timestamp, message, int(status))
        level = _LEVEL_BY_NAME.get((match_groups.get("level") or "").lower(), "")
        if priority := match_groups.get("pri"):
            level = _SYSLOG_LEVELS[int(priority) % 8]
        return _make_entry(format_name, timestamp, level, message)

    def _parse_timestamped(self, line: str) -> LogEntry | None:
        match = _TIMESTAMPED_LINE_PATTERN.match(line)
        if match is None:
            return None
        moment, rest = self._parse_timestamp(match["time"]), match["rest"]
        level = _LEVEL_INSIDE_PATTERN.search(rest[:100])
        if level is None:
            return _make_entry(
                "timestamp only", moment, "", _LOGGER_PREFIX_PATTERN.sub("", rest, count=1) or rest.strip()
            )
        word = (level["near"] or level["word"]).lower()
        message = rest[level.end() :]
        lead = _LOGGER_PREFIX_PATTERN.match(message)
        return _make_entry(
            "timestamp and level", moment, _LEVEL_BY_NAME[word], message[lead.end() if lead else 0 :] or rest.strip()
        )

    def _parse_level_first(self, line: str) -> LogEntry | None:
        match = _LEVEL_FIRST_LINE_PATTERN.match(line)
        if match is None:
            return None
        word = match["boxed"] or match["word"] or match["small"]
        return _make_entry(
            "level first", self._parse_timestamp(match["time"]), _LEVEL_BY_NAME[word.lower()], match["message"]
        )

    def _parse_container_line(self, line: str) -> LogEntry | None:
        """Parse a line with the prefix of a container runtime."""
        match = _CONTAINER_LINE_PATTERN.match(line)
        if match is None:
            return None
        inner = match["inner"] or match["plain"] or ""
        entry = self._parse_inner(inner)
        if entry is None:
            return (
                _make_entry("container log", self._parse_timestamp(match["time"]), "", inner) if match["time"] else None
            )
        return replace(entry, timestamp=entry.timestamp or self._parse_timestamp(match["time"]))

    def _parse_timestamp(self, text: str | None) -> datetime | None:
        return parse_timestamp(text, self._modified_at) if text else None


def _get_first_value(record: dict[str, Any], names: str) -> Any:
    return next((record[name] for name in names.split() if record.get(name) not in (None, "")), None)


def _parse_json_level(value: Any) -> str:
    """Parse the level of a JSON log: a word, or a number of pino and bunyan (30 info, 50 error)."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= 3:
        value = int(value)
    if isinstance(value, int):
        return next((level for least, level in _JSON_LEVELS if value >= least), "")
    return _LEVEL_BY_NAME.get(value.lower(), value.upper()[:20]) if isinstance(value, str) else ""


def _make_entry(format_name: str, timestamp: datetime | None, level: str, message: str) -> LogEntry:
    if level:
        return LogEntry(format_name, timestamp, level, message)
    guess = (
        "ERROR" if _ERROR_WORDS_PATTERN.search(message) else "WARNING" if _WARNING_WORDS_PATTERN.search(message) else ""
    )
    return LogEntry(format_name, timestamp, guess, message, is_level_guessed=bool(guess))


def _make_access_entry(format_name: str, timestamp: datetime | None, request: str, status: int) -> LogEntry:
    parts = request.split(" ")
    path = parts[1].split("?", 1)[0] if len(parts) > 1 else request
    level = "ERROR" if status >= 500 else "WARNING" if status >= 400 else "INFO"
    return LogEntry(format_name, timestamp, level, f"{status} {parts[0]} {path}", status)
