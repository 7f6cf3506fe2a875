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
