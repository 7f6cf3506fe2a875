"""Markup without a call is not an answer, and calls in tags that no template has are parsed."""

import pytest
from tests.parsers.splits import parse_in_every_split

from opposable.domain.events import Reply
from opposable.domain.messages import assistant_message
from opposable.domain.tools import ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.marker_calls import add_marked_calls

TOOLS = (
    ToolDefinition(
        "add",
        "Add.",
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "note": {"type": "string"}},
            "required": ["a", "b"],
        },
    ),
)
ARGUMENTS = '{"a": 2, "b": 3}'
CALL = f'{{"name": "add", "arguments": {ARGUMENTS}}}'


@pytest.mark.parametrize(
    "text", ["<tool_call></tool_call>", "<tool_call>\n", '{"action": "tool_call", "tool_calls": []}', "</s>"]
)
def test_a_reply_of_markup_only_is_empty(text):
    result = parse_in_every_split(text, TOOLS)
    assert (result.text, result.calls, result.rejected) == ("", (), ())


SHOWN = {
    "Hello.</s>": "Hello.",
    "Hello.</s>\n": "Hello.",
    "It was <s>9 euros</s>": "It was <s>9 euros</s>",
    "The token </s> ends a text.": "The token </s> ends a text.",
    "推理写在<think>和</think>之间。": "推理写在<think>和</think>之间。",
    "Wrap it in <think>…</think> tags.": "Wrap it in <think>…</think> tags.",
    "The token <|im_end|> ends a turn.": "The token <|im_end|> ends a turn.",
    "It is 5. <|im_end|>": "It is 5.",
    "It is 5. <|im_end|> <|im_end|>": "It is 5.",
    "It is 5. <|im_end|>\n<|im_start|>": "It is 5.",
    "The pair <tool_call></tool_call> is empty.": "The pair <tool_call></tool_call> is empty.",
    "<tool_call></tool_call> is empty.": "<tool_call></tool_call> is empty.",
    'The tag <tool_call name="x"> is new.': 'The tag <tool_call name="x"> is new.',
    "<tool_call><name>x</name> is XML.": "<tool_call><name>x</name> is XML.",
    f"<name>add</name><arguments>{ARGUMENTS}</arguments>": f"<name>add</name><arguments>{ARGUMENTS}</arguments>",
}


@pytest.mark.parametrize(("text", "shown"), SHOWN.items())
def test_markup_in_a_text_is_shown(text, shown):
    result = parse_in_every_split(text, TOOLS)
    assert (result.text, result.calls) == (shown, ())


UNKNOWN_TEMPLATES = {
    "name and arguments in tags": f"<tool_call>\n<name>add</name>\n<arguments>{ARGUMENTS}</arguments>\n</tool_call>",
    "parameters": f"<function_call><name>add</name><parameters>{ARGUMENTS}</parameters></function_call>",
    "name as an attribute": f'<tool_call name="add">\n{ARGUMENTS}\n</tool_call>',
    "attribute of a function call": f'<function_call name="add">{ARGUMENTS}</function_call>',
}


@pytest.mark.parametrize("text", UNKNOWN_TEMPLATES.values(), ids=UNKNOWN_TEMPLATES)
def test_a_call_in_tags_of_no_template_is_parsed(text):
    result = parse_in_every_split(f"Let me add.\n{text}\n{text}", TOOLS)
    assert [(call.name, call.arguments) for call in result.calls] == [("add", {"a": 2, "b": 3})] * 2
    assert (result.text, result.rejected) == ("Let me add.", ())


TEXT_OF_UNKNOWN_SERVERS = {
    **UNKNOWN_TEMPLATES,
    "end token": f"[TOOL_CALLS][{CALL}]</s>",
    "second turn": f"<tool_call>{CALL}</tool_call><|im_end|>\n<|im_start|>assistant\n<tool_call>{CALL}</tool_call>",
    "missing bracket": f"<tool_call>{CALL[:-1]}</tool_call>",
    "protocol with a missing bracket": f'<tool_call>{{"action": "tool_call", "tool_calls": [{CALL[:-1]}]}}</tool_call>',
    "unknown tool": f'<tool_call name="sub">{ARGUMENTS}</tool_call>',
    "empty calls after one": f'<tool_call>{CALL}</tool_call>{{"action": "tool_call", "tool_calls": []}}',
    "unfinished Python": "<tool_call>add(a=2, b=3</tool_call>",
    "Python cut off after a call": f"<tool_call>{CALL}</tool_call>add(a=2, b=",
    "end token after an unknown tool": f"<tool_call>{CALL.replace('add', 'sub')}</tool_call></s>",
    "bracket of another kind": f"[TOOL_CALLS][{CALL.replace('3', '3]')}]",
    "action without input": f"<tool_call>{CALL}</tool_call>\nAction: add\nObservation: 5",
}


@pytest.mark.parametrize("text", TEXT_OF_UNKNOWN_SERVERS.values(), ids=TEXT_OF_UNKNOWN_SERVERS)
def test_with_a_server_of_unknown_behavior_such_texts_stay_text(text):
    reply = Reply(assistant_message(text), "stop", Usage(1, 1))
    assert add_marked_calls(reply, TOOLS) is reply
