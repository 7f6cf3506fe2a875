from dataclasses import replace

import pytest

from opposable.domain.messages import Message, encode_messages, user_message
from opposable.domain.tools import ToolCall, ToolDefinition


@pytest.mark.parametrize(
    ("raw", "arguments", "is_valid"),
    [
        ('{"a": 1}', {"a": 1}, True),
        (" { } ", {}, True),
        ('{"n": 12345678901234567890123}', {"n": 12345678901234567890123}, True),
        ("", {}, False),
        ("[1]", {}, False),
        ('{"a": ,}', {}, False),
        ('{"a": NaN, "n": 12345678901234567}', {}, False),
    ],
)
def test_arguments_are_parsed_strictly_and_their_text_is_stored(raw, arguments, is_valid):
    call = ToolCall.from_json("c", "f", raw)
    assert (call.arguments, call.has_valid_arguments, call.arguments_json) == (arguments, is_valid, raw)


def test_a_call_without_text_serializes_its_arguments():
    call = ToolCall("c", "f", {"a": 1, "city": "Zürich", "broken": "\ud800", "n": 2**70})
    assert call.has_valid_arguments
    assert call.arguments_json == '{"a": 1, "city": "Zürich", "broken": "?", "n": 1180591620717411303424}'
    assert ToolCall("c", "f", {"a": 1}).arguments_json == '{"a":1}'


def test_a_wire_form_is_encoded_once_and_never_copied():
    encoded: list[str] = []

    def encode(value: object) -> bytes:
        encoded.append(repr(value))
        return repr(value).encode()

    def encode_message(message: Message) -> bytes:
        return encode_messages([message], "chat", encode)[0]

    def encode_tool(tool: ToolDefinition) -> bytes:
        return tool.encode_once("chat", encode)

    for encode_one, original, changed in (
        (encode_message, message := user_message("one"), replace(message, content="two")),
        (encode_tool, tool := ToolDefinition("f", "one", {}), replace(tool, description="two")),
    ):
        assert encode_one(original) is encode_one(original)
        assert b"two" in encode_one(changed)
        assert "cache" not in repr(original)
    assert len(encoded) == 4
