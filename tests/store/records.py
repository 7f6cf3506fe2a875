"""Records that the tests of the store share."""

from datetime import UTC, datetime, timedelta

from opposable.domain.messages import assistant_message, system_message, tool_message, user_message
from opposable.domain.records import Execution
from opposable.domain.specs import (
    AuthConfig,
    EndpointConfig,
    FunctionToolSpec,
    HttpToolSpec,
    McpServerSpec,
    RateLimit,
    ResponseTransform,
    SkillSpec,
)
from opposable.domain.tools import ToolCall

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
WEATHER = HttpToolSpec(
    tool_id="weather",
    display_name="天气",
    description="Tomorrow's weather",
    endpoint=EndpointConfig(
        url_template="https://example.com/{city}", auth=AuthConfig(type="bearer", token="env:WEATHER_TOKEN")
    ),
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    response_transform=ResponseTransform(extract="days[0]"),
    rate_limit=RateLimit(calls=5, seconds=1),
    tags=("web", "天气"),
    mode="streamable",
    priority=3,
    metadata={"a": [1, None, {"b": "中"}]},
)
SPECS = [
    WEATHER,
    FunctionToolSpec(tool_id="sum", module_path="math", function_name="fsum", idempotent=True, cache_seconds=5),
    McpServerSpec(tool_id="计算.server", command="server", args=("--x",), env={"A": "env:A"}),
    SkillSpec(tool_id="skill", path="skills/one"),
]
MESSAGES = (
    system_message("Be short."),
    user_message("巴黎的天气？'; --"),
    assistant_message(
        "",
        (ToolCall.from_json("c1", "weather", '{"city": "巴黎"', dialect="hermes", repairs=("brace",), truncated=True),),
        thinking="嗯",
    ),
    tool_message("c1", "weather", "晴 🎉"),
    assistant_message("晴"),
)


def seconds_after_start(seconds: int) -> datetime:
    """Return the time this many seconds after `START`."""
    return START + timedelta(seconds=seconds)


def make_execution(number: int, **changes) -> Execution:
    """Return the execution with this number."""
    fields = {
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
    return Execution(**(fields | changes))
