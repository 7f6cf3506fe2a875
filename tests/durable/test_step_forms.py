"""Replies and results survive being recorded as JSON."""

import json
from dataclasses import replace

from opposable.domain.content import ImagePart
from opposable.domain.events import Reply, Token
from opposable.domain.messages import assistant_message
from opposable.domain.tools import ToolCall, ToolResult
from opposable.domain.usage import Usage
from opposable.durable.step_forms import (
    MAX_DATA_BYTES,
    reply_from_json,
    reply_to_json,
    tool_result_from_json,
    tool_result_to_json,
)


def as_recorded(form):
    return json.loads(json.dumps(form))


def test_a_reply_is_the_same_after_recording():
    call = ToolCall.from_json("c1", "add", '{"a": 1, "text": "中\\n"}', repairs=("case",))
    malformed = ToolCall.from_json("c2", "add", '{"a": ', truncated=True)
    reply = Reply(
        assistant_message("text", (call, malformed), thinking="hm"),
        "tool_calls",
        Usage(3, 2, 1),
        (Token("a", (("b", -1.5),)),),
    )
    assert reply_from_json(as_recorded(reply_to_json(reply))) == reply


def test_a_result_is_the_same_after_recording():
    media = (ImagePart(data=b"\x89PNG", media_type="image/png"),)
    result = ToolResult("c1", "add", "3", data={"sum": 3}, seconds=0.5, repairs=("case",), attempts=2, handle="h")
    result = replace(result, media=media)
    assert tool_result_from_json(as_recorded(tool_result_to_json(result))) == result


def test_data_that_is_large_or_not_json_is_left_out():
    for data in (object(), "x" * MAX_DATA_BYTES):
        form = as_recorded(tool_result_to_json(ToolResult("c1", "add", "3", data=data)))
        assert tool_result_from_json(form) == ToolResult("c1", "add", "3")
