"""The header of the model's own turn is not shown at the beginning of a reply."""

import pytest
from tests.parsers.splits import parse_in_every_split

from opposable.parsers.markers import ROLE_HEADERS

TOOLS = [{"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}]


@pytest.mark.parametrize("header", ROLE_HEADERS)
def test_a_role_header_is_dropped(header):
    assert parse_in_every_split(f"{header}\nHello.", TOOLS).text == "Hello."
    assert parse_in_every_split(f"{header}Hello.", []).text == "Hello."
    (call,) = parse_in_every_split(f'{header}{{"name": "add", "arguments": {{"a": 2}}}}', TOOLS).calls
    assert call.arguments == {"a": 2}


def test_a_role_within_a_reply_is_shown():
    assert parse_in_every_split("Hi<|im_end|>\n<|im_start|>assistant\nHo", TOOLS).text == "Hi\nassistant\nHo"


@pytest.mark.parametrize(
    "text",
    [
        "Llama puts user text between [INST] and [/INST]. I save that now.",
        "<|im_start|>user … <|im_end|> is ChatML. Checking.",
        "| token | meaning |\n| [INST] | user |\n| [/INST] | end |\n",
        "模板是 <start_of_turn>user…<end_of_turn>。现在执行。",
    ],
)
def test_a_call_after_a_text_about_role_tokens_is_made(text):
    (call,) = parse_in_every_split(
        f'{text}\n<tool_call>{{"name": "add", "arguments": {{"a": 2}}}}</tool_call>', TOOLS
    ).calls
    assert call.arguments == {"a": 2}
