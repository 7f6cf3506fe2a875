"""One line of a log, read: its moment, level and message, in whichever of the usual formats it is written."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson

from opposable.builtin_tools.logs.timestamps import APACHE, CLOCK, ISO, SYSLOG, WEB, moment_of, moment_of_json

ERRORS = frozenset({"ERROR", "CRITICAL", "FATAL"})
"""The levels that count as errors."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry's first line. `level` is "" where the line tells none; `status` is that of a web server's answer."""

    style: str
    moment: datetime | None
    level: str
    message: str
    status: int | None = None
    guessed: bool = False


_LEVELS = {
    "TRACE": "trace finest finer verbose vrb trc",
    "DEBUG": "debug dbg fine d 调试",
    "INFO": "info information inf notice success config log i 信息",
    "WARNING": "warn warning wrn w 警告",
    "ERROR": "error err severe eror e 错误",
    "CRITICAL": "critical crit alert emerg emergency 严重",
    "FATAL": "fatal panic dpanic ftl f 致命",
}
_LEVEL_OF = {other: level for level, others in _LEVELS.items() for other in others.split()}
_SYSLOG_LEVELS = ("CRITICAL", "CRITICAL", "CRITICAL", "ERROR", "WARNING", "INFO", "INFO", "DEBUG")
_JSON_LEVELS = ((60, "FATAL"), (50, "ERROR"), (40, "WARNING"), (30, "INFO"), (20, "DEBUG"), (0, "TRACE"))

_WORDS = (
    "TRACE|FINEST|FINER|VERBOSE|DEBUG|FINE|INFO|INFORMATION|NOTICE|SUCCESS|WARN|WARNING|ERROR|ERR|SEVERE|CRITICAL|CRIT|"
    "ALERT|EMERG|EMERGENCY|FATAL|PANIC|DPANIC|调试|信息|警告|错误|严重|致命"
)
_SHORT = f"{_WORDS}|TRC|VRB|DBG|INF|WRN|FTL|LOG|CONFIG"
_ANY = f"(?i:{_SHORT})"
_STAMP = rf"(?P<time>{ISO}|{CLOCK})"
_REST = r"(?P<message>.*)$"

_LEVEL_INSIDE = re.compile(
    rf"(?:^[\s:|\-]*|[\[<(|]\s*)(?P<near>{_ANY})(?=\s*[\]>)|:\s]|$)"
    rf"|[\s:|\-](?P<word>{_WORDS}|LOG(?=:))(?=[\s\]>)|:,]|$)"
)
_LEAD = re.compile(
    r"[\s\]>)|:,\-]*(?:\d+ --- )?(?:\[[^\]]{0,200}\]\s*)*"
    r"(?:in [\w.]+:\s+|\S+\.\w{1,4}:\d+\S*[\s|\-]+|[\w$\-]+(?:\.[\w$\-]+)+(?::\d+|:[\w<>]+:\d+)?\s*(?:-|:|\|)\s+|[\w.$\-]+ - )?"
    r"[\s:|\-]*"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_CARRIER = re.compile(rf"^(?P<time>{ISO}) (?:stdout|stderr) [FP] (?P<inner>.*)$|^[\w.\-]+\s+\| (?P<plain>.*)$")
_PAIR = re.compile(r'(?<![\w.])([A-Za-z_][\w.]{0,60})=("(?:[^"\\]|\\.)*"|\S*)')
_BAD = re.compile(
    r"(?i:\b(?:error|exception|fatal|panic|critical|failed|failure|segfault)\b)|错误|失败|异常|崩溃", re.ASCII
)
_WARN = re.compile(r"(?i:\b(?:warn|warning|denied|refused)\b)|警告|告警|拒绝", re.ASCII)

_STYLES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (style, re.compile(pattern))
    for style, pattern in (
        ("syslog (RFC 5424)", rf"^<(?P<pri>\d{{1,3}})>1 (?P<time>\S+) \S+ \S+ \S+ \S+ (?:-|(?:\[[^\]]*\])+) ?{_REST}"),
        (
            "syslog (RFC 3164)",
            rf"^(?:<(?P<pri>\d{{1,3}})>)?(?P<time>{SYSLOG}) \S+ [^\s:\[]+(?:\[\d+\])?: ?{_REST}",
        ),
        (
            "access log",
            rf'^\S+ (?:\S+ )?\S+ [^\[]{{1,200}}?\[(?P<time>{WEB})\] "(?P<message>(?:[^"\\]|\\.)*)" (?P<status>\d{{3}}) (?:\d+|-)',
        ),
        (
            "nginx error log",
            r"^(?P<time>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) \[(?P<level>\w+)\] \d+#\d+: (?:\*\d+ )?(?P<message>.*?)(?:, client: .*)?$",
        ),
        (
            "apache error log",
            rf"^\[(?P<time>{APACHE})\] \[(?:\w+:)?(?P<level>\w+)\] (?:\[pid [^\]]*\] )?(?:\[client [^\]]*\] )?{_REST}",
        ),
        ("klog", rf"^(?P<level>[IWEF])(?P<time>\d{{4}} \d\d:\d\d:\d\d)\.\d+\s+\d+ \S+:\d+\] {_REST}"),
        ("loguru", rf"^(?P<time>{ISO}) \| (?P<level>{_ANY})\s*\| \S+ - {_REST}"),
        ("python logging", rf"^(?P<time>{ISO}) - \S+ - (?P<level>{_ANY}) - {_REST}"),
        ("spring boot", rf"^(?P<time>{ISO})\s+(?P<level>{_ANY}) \d+ --- (?:\[[^\]]*\] )*\S+\s*: {_REST}"),
        ("log4j/logback", rf"^\[?{_STAMP}\]? +\[[^\]]*\] +(?P<level>{_WORDS}) +\S+(?: \[[^\]]*\])?(?: +-|:) {_REST}"),
        ("log4j/logback", rf"^{_STAMP} +(?P<level>{_WORDS}) +\[[^\]]*\] +[\w.$]+(?::\d+)?(?: +-|:) {_REST}"),
        ("log4j/logback", rf"^{_STAMP} +(?P<level>{_WORDS}) +[\w$]+(?:\.[\w$]+)+(?::\d+)?(?: +-|:) {_REST}"),
        ("zap", rf"^(?P<time>{ISO})\t(?P<level>{_ANY})\t(?:[\w.\-]+\t)?(?:\S+:\d+\t)?(?P<message>[^\t]*)"),
        ("python logging", rf"^(?P<level>{_WORDS}):[\w.]+:{_REST}"),
        ("syslog (ISO time)", rf"^(?P<time>{ISO}) (?!(?:{_SHORT})\b)[\w.\-]+ [^\s:\[]+\[\d+\]: {_REST}"),
    )
)
_STAMPED = re.compile(rf"^[\[(]?{_STAMP}[\])]?(?P<rest>.*)$")
_LEVEL_FIRST = re.compile(
    rf"^(?:[\[<(](?P<boxed>{_ANY})[\]>)]|(?P<word>{_WORDS})(?=[\s:|\-])|(?P<small>error|warning|info|debug)(?=:\s))"
    rf"[\s:|\-]*(?:[\[(]?(?P<time>{ISO})[\])]?[\s:|\-]*)?{_REST}"
)


class LineReader:
    """Reads lines of one log; the format of the line before is tried first.

    `changed` is when the file last changed, for timestamps without a year.
    """

    def __init__(self, changed: float) -> None:
        self._changed = changed
        self._styles = list(_STYLES)
        self._depth = 0

    def read(self, line: str) -> Entry | None:
        """The entry a line begins, None where it begins none."""
        if "\x1b" in line:
            line = _COLOUR.sub("", line)
        if not line or line[0].isspace():
            return None
        for read in (self._json, self._logfmt, self._known, self._carried, self._stamped, self._level_first):
            if entry := read(line):
                return entry
        return None

    def _within(self, line: str) -> Entry | None:
        """The entry inside what a container runtime or shipper put around it, two such layers deep at most."""
        if self._depth == 2:
            return None
        self._depth += 1
        entry = self.read(line)
        self._depth -= 1
        return entry

    def _json(self, line: str) -> Entry | None:
        if not line.startswith("{"):
            return None
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            return None
        if not isinstance(record, dict) or not record:
            return None
        return self._of_record("JSON lines", record)

    def _logfmt(self, line: str) -> Entry | None:
        if "level=" not in line and "lvl=" not in line:
            return None
        pairs = {key: value[1:-1] if value[:1] == '"' else value for key, value in _PAIR.findall(line)}
        if not line.startswith(next(iter(pairs), "=") + "="):
            return None
        return self._of_record("logfmt", pairs)

    def _of_record(self, style: str, record: dict[str, Any]) -> Entry:
        flat = {key.lower().lstrip("@"): value for key, value in record.items()}
        log = flat.get("log")
        nested = log if isinstance(log, dict) else {}
        level = _level_of_json(
            _first(flat, "level severity levelname lvl loglevel log.level severity_text l") or nested.get("level")
        )
        moment = moment_of_json(_first(flat, "timestamp time ts datetime date asctime t"), self._changed)
        message = _first(flat, "message msg event text log error err exception m body")
        if isinstance(message, dict):
            message = message.get("message") or message.get("msg") or orjson.dumps(message).decode()
        text = orjson.dumps(record, default=str).decode() if message is None else str(message).strip()
        if not level and isinstance(message, str) and (inner := self._within(text)) and inner.level:
            return Entry(style, moment or inner.moment, inner.level, inner.message, guessed=inner.guessed)
        return _entry(style, moment, level, text)

    def _known(self, line: str) -> Entry | None:
        for at, (style, pattern) in enumerate(self._styles):
            if match := pattern.match(line):
                if at:
                    self._styles.insert(0, self._styles.pop(at))
                return self._of_match(style, match.groupdict())
        return None

    def _of_match(self, style: str, found: dict[str, str | None]) -> Entry:
        moment = self._moment(found.get("time"))
        message = found["message"] or ""
        if status := found.get("status"):
            return _answer(style, moment, message, int(status))
        level = _LEVEL_OF.get((found.get("level") or "").lower(), "")
        if priority := found.get("pri"):
            level = _SYSLOG_LEVELS[int(priority) % 8]
        return _entry(style, moment, level, message)

    def _stamped(self, line: str) -> Entry | None:
        match = _STAMPED.match(line)
        if match is None:
            return None
        moment, rest = self._moment(match["time"]), match["rest"]
        level = _LEVEL_INSIDE.search(rest[:100])
        if level is None:
            return _entry("timestamp only", moment, "", _LEAD.sub("", rest, count=1) or rest.strip())
        word = (level["near"] or level["word"]).lower()
        message = rest[level.end() :]
        lead = _LEAD.match(message)
        return _entry(
            "timestamp and level", moment, _LEVEL_OF[word], message[lead.end() if lead else 0 :] or rest.strip()
        )

    def _level_first(self, line: str) -> Entry | None:
        match = _LEVEL_FIRST.match(line)
        if match is None:
            return None
        word = match["boxed"] or match["word"] or match["small"]
        return _entry("level first", self._moment(match["time"]), _LEVEL_OF[word.lower()], match["message"])

    def _carried(self, line: str) -> Entry | None:
        """A line behind what a container runtime puts in front of it."""
        match = _CARRIER.match(line)
        if match is None:
            return None
        inner = match["inner"] or match["plain"] or ""
        entry = self._within(inner)
        if entry is None:
            return _entry("container log", self._moment(match["time"]), "", inner) if match["time"] else None
        return replace(entry, moment=entry.moment or self._moment(match["time"]))

    def _moment(self, text: str | None) -> datetime | None:
        return moment_of(text, self._changed) if text else None


def _first(record: dict[str, Any], names: str) -> Any:
    return next((record[name] for name in names.split() if record.get(name) not in (None, "")), None)


def _level_of_json(value: Any) -> str:
    """A level as programs put it into JSON: a word, or a number of the pino and bunyan kind (30 info, 50 error)."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= 3:
        value = int(value)
    if isinstance(value, int):
        return next((level for least, level in _JSON_LEVELS if value >= least), "")
    return _LEVEL_OF.get(value.lower(), value.upper()[:20]) if isinstance(value, str) else ""


def _entry(style: str, moment: datetime | None, level: str, message: str) -> Entry:
    if level:
        return Entry(style, moment, level, message)
    guess = "ERROR" if _BAD.search(message) else "WARNING" if _WARN.search(message) else ""
    return Entry(style, moment, guess, message, guessed=bool(guess))


def _answer(style: str, moment: datetime | None, request: str, status: int) -> Entry:
    parts = request.split(" ")
    path = parts[1].split("?", 1)[0] if len(parts) > 1 else request
    level = "ERROR" if status >= 500 else "WARNING" if status >= 400 else "INFO"
    return Entry(style, moment, level, f"{status} {parts[0]} {path}", status)
