"""Records to test with."""

from datetime import UTC, datetime, timedelta

from opposable.domain.records import Execution

START = datetime(2026, 11, 20, 8, 30, 0, 123456, tzinfo=UTC)
HOSTILE_TEXTS = [
    "'; DROP TABLE tools; --",
    'a"b\\c%s%(x)s:name?1$1{}',
    "中文，emoji 🎉",
    "nul\x00byte \\u0000",
    "half \ud800 pair",
    "line\nbreak\ttab\u2028",
    " ",
]


def seconds_after_start(number: int) -> datetime:
    """So many seconds after `AT`."""
    return START + timedelta(seconds=number)


def make_execution(number: int, **changes) -> Execution:
    """The call of that number."""
    told = {
        "execution_id": f"e{number:06}",
        "run_id": "run",
        "call_id": f"call_{number}",
        "tool_id": "tool",
        "name": "tool",
        "arguments": {"n": number},
        "result": "好",
        "at": seconds_after_start(number),
        "seconds": 0.25,
        "repairs": ("quotes",),
    }
    return Execution(**(told | changes))
