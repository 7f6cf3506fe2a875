"""Malformed calls are parsed, repaired if necessary, and every repair is reported."""

import pytest
from tests.parsers.splits import parse_in_every_split

from opposable.parsers import parse

TOOLS = [
    {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    }
]
C = '{"name": "add", "arguments": {"a": 2, "b": 3}}'
FENCE = f"```json\n{C}\n```"
TAG = f"<tool_call>\n{C}\n</tool_call>"
ONE = [{"a": 2, "b": 3}]
TWO = [{"a": 2, "b": 3}, {"a": 4, "b": 3}]
SECOND = C.replace("2", "4")

INTRODUCED = {
    "short promise, fence": f"I'll add them for you.\n\n{FENCE}",
    "promise, JSON on a line of its own": f"Sure! Let me calculate that:\n{C}",
    "telling which function": f"To find the sum of 2 and 3, I'll use the `add` function.\n{FENCE}",
    "here is the call": f"Here is the function call:\n{FENCE}",
    "here is the JSON": f"Here's the JSON for the tool call:\n{FENCE}",
    "BFCL style": "Based on the question, I will need to make one function call.\n\n[add(a=2, b=3)]",
    "promise, Python": "I'll call the tool:\n```python\nadd(a=2, b=3)\n```",
    "Chinese": f"好的，我来计算：\n{FENCE}",
    "Chinese, from a result": f"根据返回结果，我需要继续计算。\n{TAG}",
    "explained in the future": f"{FENCE}\n\nThis function call will add 2 and 3.",
    "polite end": f"To answer your question, I will call the add function:\n\n{FENCE}\n\nLet me know if you need anything else.",
    "then I will": f"I need the sum, so I will call the tool.\n\n{FENCE}\n\nThen I will answer.",
    "JSON and a promise": f"{C}\n\nI will wait for the result.",
    "same line": f"I need to know the sum. {TAG}",
    "after a sentence about a file": f"I'll look at the file first.\n{TAG}\nThen I can answer.",
    "trying again": f"The previous result was wrong, so let me try again.\n{TAG}",
    "nothing found": f"The search result shows nothing. I'll add the numbers:\n{TAG}",
}
MALFORMED = {
    "fence without a word": f"```\n{C}\n```",
    "fence named for calls": f"```tool_call\n{C}\n```",
    "tag in a fence": f"```xml\n{TAG}\n```",
    "Python without list": "add(a=2, b=3)",
    "Python without names": "add(2, 3)",
    "Python with one name": "add(2, b=3)",
    "Python with an object": "add({'a': 2, 'b': 3})",
    "Python printed": "```tool_code\nprint(add(a=2, b=3))\n```",
    "Python in a fence": "```python\nadd(a=2, b=3)\n```",
    "fence not closed": f"```json\n{C}",
    "bracket missing": f"<tool_call>\n{C[:-1]}\n</tool_call>",
    "two brackets missing": C[:-2],
    "bracket too many": f"<tool_call>\n{C}}}\n</tool_call>",
    "single quotes": f"<tool_call>\n{C.replace(chr(34), chr(39))}\n</tool_call>",
    "trailing commas": '{"name": "add", "arguments": {"a": 2, "b": 3,},}',
    "full-width": "{“name”：“add”，“arguments”：{“a”：2，“b”：3}}",
    "closing tag only": f"{C}</tool_call>",
    "opening tag twice": f"<tool_call>{C}<tool_call>",
    "wrong tag": f"<tools>\n{C}\n</tools>",
    "fence in a tag": f"<tool_call>\n```json\n{C}\n```\n</tool_call>",
    "end of turn": f"{C}<|im_end|>",
    "numbers as text": '{"name": "add", "arguments": {"a": "2", "b": "3"}}',
    "arguments as text": '{"name": "add", "arguments": "{\\"a\\": 2, \\"b\\": 3}"}',
    "arguments next to the name": '{"function": "add", "a": 2, "b": 3}',
    "name as key": '{"add": {"a": 2, "b": 3}}',
    "other keys": '{"tool_name": "add", "tool_input": {"a": 2, "b": 3}}',
    "type and parameters": '{"type": "function", "name": "add", "parameters": {"a": 2, "b": 3}}',
    "prefixed name": '{"name": "functions.add", "arguments": {"a": 2, "b": 3}}',
    "name in another case": '{"name": "Add", "arguments": {"a": 2, "b": 3}}',
    "old OpenAI": '{"function_call": {"name": "add", "arguments": "{\\"a\\": 2, \\"b\\": 3}"}}',
    "whole OpenAI message": '{"role": "assistant", "content": null, "tool_calls": [{"id": "x", "type": "function", "function": {"name": "add", "arguments": {"a": 2, "b": 3}}}]}',
    "parallel wrapper": '{"tool_uses": [{"recipient_name": "functions.add", "parameters": {"a": 2, "b": 3}}]}',
    "ReAct with a made-up result": f'Thought: hm\nAction: add\nAction Input: {{"a": 2, "b": 3}}\nObservation: 5\nThought: now\n{"Action: add"}\nAction Input: {{"a": 5, "b": 5}}',
    "ReAct in bold": 'Thought: hm\n**Action:** add\n**Action Input:** {"a": 2, "b": 3}',
    "ReAct as Python": "Action: add(a=2, b=3)",
    "ReAct with keywords": "Action: add\nAction Input: a=2, b=3",
    "ReAct with a fence": 'Action: add\nAction Input: ```json\n{"a": 2, "b": 3}\n```',
    "bare name in a tag": '<tool_call>\nadd\n{"a": 2, "b": 3}\n</tool_call>',
    "Python in a tag": "<tool_call>\nadd(a=2, b=3)\n</tool_call>",
    "parameter's end missing": "<function=add>\n<parameter=a>2<parameter=b>3</parameter></function>",
    "function's end missing": "<tool_call>\n<function=add>\n<parameter=a>2</parameter>\n<parameter=b>3</parameter>\n</tool_call>",
    "invoke in a tag": '<tool_call>\n<invoke name="add">\n<parameter name="a">2</parameter>\n<parameter name="b">3</parameter>\n</invoke>\n</tool_call>',
}
SEVERAL = {
    "two fences": f"{FENCE}\n{FENCE.replace('2', '4')}",
    "two fences with words": f"1. First call:\n{FENCE}\n2. Second call:\n{FENCE.replace('2', '4')}",
    "two lines": f"{C}\n{SECOND}",
    "two in one fence": f"```json\n{C}\n{SECOND}\n```",
    "two of Python on a line": "add(2, 3), add(4, 3)",
    "two lines of Python": "add(2, 3)\nadd(4, 3)\n",
    "two lines of Python in a fence": "```python\nadd(2, 3)\nadd(a=4, b=3)\n```",
    "list in a fence": f"```json\n[{C}, {SECOND}]\n```",
    "two tags with a word after": f"<tool_call>{C}</tool_call>\n\n<tool_call>{SECOND}</tool_call>\n\nI'm adding.",
    "two in one tag": f"<tool_call>\n{C}\n{SECOND}\n</tool_call>",
}


def arguments(text):
    result = parse(text, TOOLS)
    assert all(call.name == "add" for call in result.calls)
    return [call.arguments for call in result.calls]


@pytest.mark.parametrize("text", INTRODUCED.values(), ids=INTRODUCED)
def test_a_call_with_text_around_it_is_parsed(text):
    assert arguments(text) == ONE


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_call_is_parsed(text):
    assert arguments(text) == ONE


@pytest.mark.parametrize("text", SEVERAL.values(), ids=SEVERAL)
def test_several_calls_are_parsed_in_order(text):
    assert arguments(text) == TWO


def test_repairs_are_reported():
    repairs = {name: parse(text, TOOLS).calls[0].repairs for name, text in MALFORMED.items()}
    assert repairs["single quotes"] == ("single quotes",)
    assert repairs["trailing commas"] == ("trailing comma dropped",)
    assert repairs["two brackets missing"] == ("missing closing bracket added",)
    assert repairs["prefixed name"] == ("tool name 'functions.add' read as 'add'",)
    assert repairs["type and parameters"] == ("key 'parameters' for 'arguments'",)
    assert repairs["numbers as text"] == ("value given as text",)
    assert repairs["fence without a word"] == ()


CUT = [
    "<tool_call>\n" + C[:-5],
    C[:-2],
    "```json\n" + C[:-3],
    "<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n<parameter=b>\n3\n</parameter>\n",
    '[TOOL_CALLS]add[ARGS]{"a": 2, "b": 3',
    '<|channel|>commentary to=functions.add<|message|>{"a": 2, "b": 3',
]


@pytest.mark.parametrize("text", CUT)
def test_arguments_cut_off_by_the_token_limit_are_never_executed(text):
    result = parse(text, TOOLS, truncated=True)
    assert result.calls == ()
    assert [(item.name, item.reason) for item in result.rejected] == [("add", "truncated")]


CUT_OPTIONAL = [
    '<tool_call>{"name": "note", "arguments":',
    "<|tool_call>call:note{",
    '<|tool_call>call:note{text:<|"|>Call Ann.<|"|>',
    "Action: note\nAction Input: Call An",
]


@pytest.mark.parametrize("text", CUT_OPTIONAL)
def test_a_call_with_optional_arguments_that_is_cut_off_is_never_executed(text):
    note = {"name": "note", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}
    result = parse(text, [note], truncated=True)
    assert result.calls == ()
    assert [(item.name, item.reason) for item in result.rejected] == [("note", "truncated")]


CUT_WITHIN = [C[:-10], '<tool_call>{"name": "add", "arguments": {"a": 2, "b":', '{"name": "add", "arguments": {"a": 2,']


@pytest.mark.parametrize("text", CUT_WITHIN)
def test_a_missing_value_is_never_invented(text):
    assert parse(text, TOOLS).calls == ()


def test_a_call_of_an_unknown_tool_is_rejected():
    result = parse('{"name": "subtract", "arguments": {"a": 2, "b": 3}}', TOOLS)
    assert [(item.name, item.reason) for item in result.rejected] == [("subtract", "unknown_tool")]


def test_a_call_of_an_unknown_tool_does_not_affect_other_calls():
    result = parse(f"{TAG}\n{TAG.replace('add', 'sub')}", TOOLS)
    assert [call.arguments for call in result.calls] == ONE
    assert [(item.name, item.reason) for item in result.rejected] == [("sub", "unknown_tool")]


def test_an_invented_result_and_the_text_after_it_are_dropped():
    result = parse(MALFORMED["ReAct with a made-up result"], TOOLS)
    assert result.text == "Thought: hm"
    assert [item.reason for item in result.rejected] == ["invented_result"]


def test_a_call_with_unreadable_arguments_is_rejected_and_not_shown():
    result = parse('<tool_call>\n{"name": "add", "arguments": {"a": 2 3, "b": }}\n</tool_call>', TOOLS)
    assert (result.text, result.calls) == ("", ())
    assert [item.reason for item in result.rejected] == ["unreadable"]


def test_duplicate_ids_become_unique():
    call = '{"name": "add", "arguments": {"a": 2, "b": 3}, "id": "same"}'
    first, second = parse(f"[TOOL_CALLS][{call}, {call}]", TOOLS).calls
    assert first.id == "same"
    assert second.id != "same"


def test_a_dotted_tool_is_found_under_its_safe_name():
    tools = [{"name": "schema__list_tables", "parameters": {"type": "object", "properties": {}}}]
    result = parse('{"name": "schema.list_tables", "arguments": {}}', tools)
    assert [call.name for call in result.calls] == ["schema__list_tables"]


def test_an_ambiguous_name_is_not_guessed():
    tools = [{"name": "list_tables", "parameters": {}}, {"name": "list-tables", "parameters": {}}]
    result = parse('<tool_call>{"name": "List.Tables", "arguments": {}}</tool_call>', tools)
    assert [item.reason for item in result.rejected] == ["unknown_tool"]


def test_a_json_final_answer_in_a_fence_is_shown_as_text():
    text = (
        '```json\n{"reasoning": "信息足够", "action": "finish", "content": "SELECT * FROM t WHERE dt > {{start}}"}\n```'
    )
    result = parse(text, TOOLS)
    assert (result.text, result.thinking, result.calls) == ("SELECT * FROM t WHERE dt > {{start}}", "信息足够", ())


FINISHED = {
    "seed protocol": '{"reasoning": "r", "action": "finish", "content": "5"}',
    "after a word": 'I know it.\n\n{"reasoning": "r", "action": "finish", "content": "5"}',
    "JSON agent": '```json\n{"action": "Final Answer", "action_input": "5"}\n```',
}


@pytest.mark.parametrize("text", FINISHED.values(), ids=FINISHED)
def test_a_final_answer_is_shown_as_text(text):
    result = parse(text, TOOLS)
    assert result.text.split("\n")[-1] == "5"
    assert result.calls == ()


def test_the_only_argument_of_a_tool_needs_no_name():
    tools = [{"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}]
    for text in ('{"action": "search", "action_input": "weather"}', "Action: search\nAction Input: weather"):
        assert [call.arguments for call in parse(text, tools).calls] == [{"query": "weather"}]


FORECAST = [
    {
        "name": "forecast",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"type": "string"}},
            "required": ["city"],
        },
    },
    {"name": "list_files", "parameters": {"type": "object", "properties": {}}},
]
F = '{"name": "forecast", "arguments": {"city": "Oslo", "days": 3}}'
PROTOCOL = '{"action": "tool_call", "tool_calls": '
WITH_WRONG_BRACKETS = {
    "brace of a call missing": f"{PROTOCOL}[{F[:-1]}]}}",
    "bracket of the list missing": f"{PROTOCOL}[{F}}}",
    "brace too many in the list": f"{PROTOCOL}[{F}}}]}}",
    "brace too many at the end": f"{PROTOCOL}[{F}]}}}}",
    "brace too many after a call": f"{F}}}",
    "object in place of a list": f"{PROTOCOL}{F}}}",
    "list in place of an object": '{"name": "forecast", "arguments": [{"city": "Oslo", "days": 3}]}',
    "comma missing": '{"name": "forecast" "arguments": {"city": "Oslo", "days": 3}}',
    "comment before the first key": '{\n  // for Oslo: {"days"}\n  "name": "forecast", "arguments": {"city": "Oslo", "days": 3}}',
    "last brace missing in a tag": f"<tool_call>\n{F[:-1]}\n</tool_call>",
    "last brace missing in a fence": f"```json\n{F[:-1]}\n```",
    "Python in a fence for calls": '```tool_call\nforecast(city="Oslo", days=3)\n```',
    "result assigned and printed": '```tool_code\n# Oslo\nr = forecast(city="Oslo", days=3)\nprint(r)\n```',
    "result awaited": '```tool_code\nawait forecast(city="Oslo", days=3)\n```',
    "end of a parameter missing": "<function=forecast>\n<parameter=city>\nOslo\n<parameter=days>\n3\n</parameter>\n</function>",
    "all ends missing": "<function=forecast>\n<parameter=city>\nOslo\n<parameter=days>\n3\n</function>",
    "end of an invoked parameter missing": '<invoke name="forecast">\n<parameter name="city">Oslo\n<parameter name="days">3\n</invoke>',
    "end of a value missing": "<tool_call>forecast\n<arg_key>city</arg_key>\n<arg_value>Oslo\n<arg_key>days</arg_key>\n<arg_value>3\n</tool_call>",
}


@pytest.mark.parametrize("text", WITH_WRONG_BRACKETS.values(), ids=WITH_WRONG_BRACKETS)
def test_a_call_with_wrong_brackets_or_ends_is_parsed_if_one_reading_is_possible(text):
    result = parse_in_every_split(text, FORECAST)
    assert [(call.name, call.arguments) for call in result.calls] == [("forecast", {"city": "Oslo", "days": 3})]
    assert (result.text, result.rejected) == ("", ())


REPORTED = {
    "protocol, cut off": (f"{PROTOCOL}[{F[:-12]}", "truncated"),
    "protocol in a fence, cut off": (f"```json\n{PROTOCOL}[{F[:-12]}", "truncated"),
    "protocol with quotation marks": (
        PROTOCOL + '[{"name": "forecast", "arguments": {"city": "f("a")"}}]}',
        "unreadable",
    ),
    "two calls with wrong brackets": (f"{PROTOCOL}[{F[:-1]}, {F}]}}", "unreadable"),
    "arguments not closed": (f"<tool_call>\n{F[:-2]}\n</tool_call>", "truncated"),
    "Python, cut off": ('forecast(city="Oslo", unit="cel', "truncated"),
    "Python in a fence, cut off": ('```python\nforecast(city="Oslo", unit="cel', "truncated"),
}


@pytest.mark.parametrize(("text", "reason"), REPORTED.values(), ids=REPORTED)
def test_a_call_that_cannot_be_made_is_reported(text, reason):
    result = parse_in_every_split(text, FORECAST)
    assert (result.text, result.calls) == ("", ())
    assert [(item.name, item.reason) for item in result.rejected] == [("forecast", reason)]


NOT_MADE = {
    "a tool in the arguments of another": '{"tool": "x", "arguments": {"name": "list_files" "arguments": {}}}',
    "the definition of a tool": '{"name": "forecast", "parameters": [{"name": "city", "type": "string"}]}',
    "an assignment in code": '```python\nr = forecast(city="Oslo")\nprint(r)\n```',
    "a fence for calls without one": "```tool\nnothing to call\n```",
    "Python in prose": "list_files( takes no argument",
}


@pytest.mark.parametrize("text", NOT_MADE.values(), ids=NOT_MADE)
def test_a_text_that_only_resembles_a_call_is_shown(text):
    result = parse_in_every_split(text, FORECAST)
    assert (result.text, result.calls) == (text, ())


def test_a_value_that_mentions_a_parameter_is_not_split():
    value = "write <parameter=days>3</parameter> here"
    text = f"<function=forecast>\n<parameter=city>\n{value}\n</parameter>\n</function>"
    assert [call.arguments for call in parse_in_every_split(text, FORECAST).calls] == [{"city": value}]
