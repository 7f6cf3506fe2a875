"""Parsing of requests: what is accepted, what is repaired, what is rejected and how."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opposable.domain.messages import assistant_message, system_message, tool_message, user_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models import text_protocol_prompts as protocol_texts
from opposable.models.base import ForcedTool, ModelOptions
from opposable.models.python_protocol import prompts as python_texts
from opposable.models.scripted import ScriptedModel
from opposable.models.text_protocol import TextProtocolModel
from opposable.web.gateway.completions import stream_reply
from opposable.web.gateway.request import CompletionRequest, parse_body, parse_json_object
from opposable.web.gateway.tool_calls import resolve_native_calls
from opposable.web.gateway.tool_schemas import normalize_tools
from opposable.web.openai_errors import GatewayError

HI = [{"role": "user", "content": "hi"}]
ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
SUB = {"type": "function", "function": {"name": "sub"}}
EMPTY = {"type": "object", "properties": {}}
CHAIN = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(1500)}
CHAINED = {"type": "function", "function": {"name": "chained", "parameters": {"$ref": "#/$defs/d0", "$defs": CHAIN}}}


def parse(**body):
    return parse_body(parse_json_object(json.dumps({"model": "m", "messages": HI, **body}).encode()))


def normalize_parameters(parameters):
    [made] = parse(tools=[{"type": "function", "function": {"name": "t", "parameters": parameters}}]).tools
    return normalize_tools([made])[0].parameters


def test_a_plain_request_is_parsed_and_parameters_without_effect_are_dropped():
    assert parse(logprobs=False, n=1, logit_bias=None, store=False) == CompletionRequest(
        "m", (user_message("hi"),), (), ModelOptions(stream=False)
    )


def test_parameters_that_the_gateway_does_not_use_are_passed_on():
    extra = {"top_p": 1, "presence_penalty": 0, "made_up": [1]}
    hints = {"user": "u", "metadata": {}, "reasoning_effort": "low"}
    request = parse(**extra, **hints)
    assert (request.extra, request.hints) == (extra, hints)


def test_every_option_is_accepted():
    asked = parse(
        stream=True,
        stream_options={"include_usage": True},
        tools=[ADD],
        tool_choice="required",
        parallel_tool_calls=False,
        max_tokens=1,
        max_completion_tokens=7,
        temperature=0.5,
        stop="END",
        seed=3,
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "array"}}},
    )
    options = ModelOptions(
        stream=True,
        tool_choice="required",
        max_tokens=7,
        temperature=0.5,
        stop=("END",),
        seed=3,
        response_schema={"type": "array"},
    )
    assert asked == CompletionRequest(
        "m", (user_message("hi"),), (ToolDefinition("add", "", EMPTY),), options, True, True
    )


def test_all_roles_and_content_parts_are_parsed():
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    asked = parse(
        messages=[
            {"role": "developer", "content": [{"type": "text", "text": "be"}, {"type": "text", "text": "kind"}]},
            {"role": "user", "content": "add", "name": "ann"},
            {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "2"}]},
            {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": "{}"}},
            {"role": "function", "name": "old", "content": "3"},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        ]
    )
    assert asked.messages == (
        system_message("be\nkind"),
        user_message("add"),
        assistant_message("", (ToolCall.from_json("c1", "add", '{"a": 1}'),), "hm"),
        tool_message("c1", "add", "2"),
        assistant_message("", (ToolCall.from_json("function_old", "old", "{}"),)),
        tool_message("function_old", "old", "3"),
        assistant_message("no"),
    )
    assert not asked.is_without_tools


def test_separated_calls_and_results_are_matched_and_results_are_unchanged():
    made = [{"id": n, "type": "function", "function": {"name": f"t_{n}", "arguments": "{}"}} for n in "ab"]
    asked = parse(
        messages=[
            {"role": "tool", "tool_call_id": "lost", "content": "0"},
            {"role": "assistant", "tool_calls": made},
            {"role": "user", "content": "well?"},
            {"role": "tool", "tool_call_id": "b", "content": "<|im_end|>"},
        ]
    )
    assert asked.messages == (
        assistant_message("", (ToolCall.from_json("a", "t_a", "{}"), ToolCall.from_json("b", "t_b", "{}"))),
        tool_message("a", "t_a", "There is no result: the call was not finished, but it may have taken effect."),
        tool_message("b", "t_b", "<|im_end|>"),
        user_message("well?"),
    )


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("", {}),
        ("null", {}),
        ("{'a': 1}", {"a": 1}),
        ({"a": 1}, {"a": 1}),
        (None, {}),
        ('{"a": [1, 2', {"a": [1, 2]}),
        ("say it", {"unreadable": "say it"}),
    ],
)
def test_arguments_of_earlier_calls_become_json_objects(given, right):
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": given}}
    said = parse(messages=[*HI, {"role": "assistant", "tool_calls": [call]}]).messages[1]
    assert said.tool_calls[0].arguments == right


ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [SUB]}}


@pytest.mark.parametrize(
    ("given", "right", "left"),
    [
        (None, "auto", ["add", "sub"]),
        ("auto", "auto", ["add", "sub"]),
        ("none", "none", ["add", "sub"]),
        ("required", "required", ["add", "sub"]),
        ({"type": "function", "function": {"name": "sub"}}, ForcedTool("sub"), ["add", "sub"]),
        ({"type": "function", "name": "sub"}, ForcedTool("sub"), ["add", "sub"]),
        (ALLOWED, "required", ["sub"]),
    ],
)
def test_each_tool_choice_is_parsed(given, right, left):
    asked = parse(tools=[ADD, SUB], tool_choice=given)
    assert (asked.options.tool_choice, [tool.name for tool in asked.tools]) == (right, left)


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("given", "right"),
    [
        (None, EMPTY),
        ({}, EMPTY),
        ({"properties": {"a": TEXT}}, {"type": "object", "properties": {"a": TEXT}}),
        ({"type": ["object", "null"]}, EMPTY),
        (
            {"type": "object", "properties": {"a": True, "b": False}},
            {**EMPTY, "properties": {"a": {}, "b": {"not": {}}}},
        ),
        ({"type": "object", "properties": {"a": {"type": None, "enum": 3}}}, {**EMPTY, "properties": {"a": {}}}),
        ({"type": "object", "properties": None, "required": "a"}, EMPTY),
        (
            {"properties": {"a": {"$ref": "#/definitions/A"}}, "definitions": {"A": TEXT}},
            {"type": "object", "properties": {"a": TEXT}},
        ),
        (
            {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"anyOf": [TEXT, True]}}},
            {"type": "object", "properties": {"a": {"anyOf": [TEXT, {}]}}},
        ),
        (
            {"$ref": "#/definitions/A", "definitions": {"A": {"properties": {"a": {"$ref": "#/definitions/A"}}}}},
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/definitions/A"}},
                "definitions": {"A": {"properties": {"a": {"$ref": "#/definitions/A"}}}},
            },
        ),
        ({"properties": {"a": {"$ref": "https://example.com/a.json"}}}, {"type": "object", "properties": {"a": {}}}),
    ],
)
def test_schemas_with_small_mistakes_are_repaired(given, right):
    assert normalize_parameters(given) == right


def test_a_schema_that_refers_to_itself_stays_one():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    assert normalize_parameters({"properties": {"first": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}) == {
        "type": "object",
        "properties": {"first": node},
        "$defs": {"Node": node},
    }


TREE = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
NUMBERED = {"properties": {"n": {"type": "integer"}}, "required": ["n"]}
NAMED = {"properties": {"name": TEXT}, "required": ["name"]}


@pytest.mark.parametrize(
    ("given", "right"),
    [
        (TREE, TREE),
        (
            {**EMPTY, "properties": {"a": {"$ref": "#/$defs/A", **NUMBERED, "title": "N"}}, "$defs": {"A": NAMED}},
            {**EMPTY, "properties": {"a": {"allOf": [NAMED], **NUMBERED, "title": "N"}}},
        ),
        (
            {**EMPTY, "properties": {"a": {"$ref": "#/$defs/A", **NUMBERED, "allOf": [TEXT]}}, "$defs": {"A": NAMED}},
            {**EMPTY, "properties": {"a": {"allOf": [NAMED, TEXT], **NUMBERED}}},
        ),
        (
            {**EMPTY, "unevaluatedProperties": {"$ref": "#/$defs/A"}, "$defs": {"A": TEXT}},
            {**EMPTY, "unevaluatedProperties": TEXT},
        ),
        (
            {**EMPTY, "properties": {"a": {"additionalItems": {"$ref": "#/$defs/A"}}}, "$defs": {"A": TEXT}},
            {**EMPTY, "properties": {"a": {"additionalItems": TEXT}}},
        ),
    ],
    ids=["the root", "a reference beside the same keywords", "beside allOf", "other properties", "other items"],
)
def test_every_reference_holds_its_meaning(given, right):
    assert normalize_parameters(given) == right


def build_function_tools(**about):
    return [{"type": "function", "function": {"name": "t", **about}}]


DEEP = {"type": "object"}
for _ in range(400):
    DEEP = {"type": "object", "properties": {"a": DEEP}}

BOMB = {"$ref": "#/$defs/d0", "$defs": {"d20": {}}}
for n in range(20):
    twice = [{"$ref": f"#/$defs/d{n + 1}"}] * 2
    BOMB["$defs"][f"d{n}"] = {"anyOf": twice}

REFUSED = {
    "no messages": ({"messages": []}, "messages"),
    "messages that are no list": ({"messages": "hi"}, "messages"),
    "a message that is none": ({"messages": ["hi"]}, "messages[0]"),
    "an unknown role": ({"messages": [{"role": "root", "content": "x"}]}, "messages[0].role"),
    "a role that is no text": ({"messages": [{"role": ["user"], "content": "x"}]}, "messages[0].role"),
    "a user who says nothing": ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
    "content of another kind": ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
    "an image": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}]},
        "messages[0].content[1]",
    ),
    "a result without an id": ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
    "a call without a name": (
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "function": {}}]}]},
        "messages[0].tool_calls[0]",
    ),
    "calls that are no list": ({"messages": [{"role": "assistant", "tool_calls": 3}]}, "messages[0].tool_calls"),
    "no model": ({"model": None}, "model"),
    "several choices": ({"n": 2}, "n"),
    "functions of old": ({"functions": [{"name": "f"}]}, "functions"),
    "tools that are no list": ({"tools": {}}, "tools"),
    "a tool of another kind": ({"tools": [ADD, {"type": "web_search"}]}, "tools[1]"),
    "a name with a space": ({"tools": build_function_tools(name="a b")}, "tools[0].function.name"),
    "a name too long": ({"tools": build_function_tools(name="a" * 65)}, "tools[0].function.name"),
    "two tools of one name": ({"tools": [ADD, ADD]}, "tools[1].function.name"),
    "parameters that are no schema": ({"tools": build_function_tools(parameters=[1])}, "tools[0].function.parameters"),
    "parameters of another type": ({"tools": build_function_tools(parameters=TEXT)}, "tools[0].function.parameters"),
    "a choice without tools": ({"tool_choice": "required"}, "tool_choice"),
    "a choice of no tool": (
        {"tools": [ADD], "tool_choice": {"type": "function", "function": {"name": "x"}}},
        "tool_choice",
    ),
    "a choice of another kind": ({"tools": [ADD], "tool_choice": "maybe"}, "tool_choice"),
    "no tokens at all": ({"max_tokens": 0}, "max_tokens"),
    "half a token": ({"max_completion_tokens": 1.5}, "max_completion_tokens"),
    "true tokens": ({"max_tokens": True}, "max_tokens"),
    "allowed tools that are no object": (
        {"tools": [ADD], "tool_choice": {"type": "allowed_tools", "allowed_tools": 5}},
        "tool_choice",
    ),
    "too hot": ({"temperature": 3}, "temperature"),
    "stops that are no text": ({"stop": [1]}, "stop"),
    "a seed of text": ({"seed": "x"}, "seed"),
    "an unknown format": ({"response_format": {"type": "xml"}}, "response_format"),
    "a format without schema": ({"response_format": {"type": "json_schema"}}, "response_format"),
}


@pytest.mark.parametrize(("body", "param"), REFUSED.values(), ids=REFUSED)
def test_invalid_parameters_are_reported_with_their_path(body, param):
    with pytest.raises(GatewayError) as caught:
        parse(**body)
    error = caught.value.body["error"]
    assert (caught.value.status, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert param.rpartition(".")[2].partition("[")[0] in error["message"] or "tool" in error["message"]


WIDE = {"type": "object", "properties": {f"p{n}": TEXT for n in range(2100)}}
ANCHORED = {**EMPTY, "properties": {"a": {"$ref": "#addr"}}, "$defs": {"addr": {"$anchor": "addr", "type": "string"}}}
UNUSUAL_SCHEMAS = {"deep": DEEP, "shared": BOMB, "chained": CHAINED["function"]["parameters"], "wide": WIDE}
UNUSUAL_SCHEMAS["anchored"] = ANCHORED


@pytest.mark.parametrize("schema", UNUSUAL_SCHEMAS.values(), ids=UNUSUAL_SCHEMAS)
def test_a_schema_is_not_changed_for_a_natively_calling_model(schema):
    [tool] = parse(tools=build_function_tools(parameters=schema)).tools
    assert tool.parameters == {**({"type": "object"} if "$ref" in schema else EMPTY), **schema}


@pytest.mark.anyio
async def test_a_call_of_a_tool_with_a_dot_in_its_name_is_valid():
    request = parse(tools=build_function_tools(name="orders.cancel"))
    model = TextProtocolModel(ScriptedModel('<tool_call>{"name": "orders.cancel", "arguments": {}}</tool_call>'))
    *_, reply = [part async for part in stream_reply(model, request)]
    assert [call.name for call in reply.message.tool_calls] == ["orders.cancel"]


@pytest.mark.parametrize("name", ["shared", "chained", "wide", "anchored"])
def test_a_large_schema_keeps_its_references(name):
    schema = UNUSUAL_SCHEMAS[name]
    assert normalize_parameters(schema) == {**EMPTY, **schema}


def test_parameters_that_are_nested_too_deeply_for_a_prompt_are_reported_with_their_path():
    deep = DEEP
    for _ in range(1_000):  # Python 3.12 and later allow more levels than 3.11
        deep = {"type": "object", "properties": {"a": deep}}
    with pytest.raises(GatewayError) as caught:
        normalize_tools([ToolDefinition("t", "", deep)])
    assert caught.value.body["error"]["param"] == "tools[0].function.parameters"


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000])
def test_a_body_that_is_not_a_json_object_is_rejected(raw):
    with pytest.raises(GatewayError) as caught:
        parse_json_object(raw)
    assert caught.value.body["error"]["code"] == "invalid_json"


KEYS = [
    "role",
    "content",
    "type",
    "text",
    "tool_calls",
    "id",
    "function",
    "name",
    "arguments",
    "tool_call_id",
    "parameters",
    "properties",
    "items",
    "anyOf",
    "$ref",
    "$defs",
    "enum",
    "required",
    "description",
    "default",
    "function_call",
    "json_schema",
    "schema",
    "allowed_tools",
    "tools",
    "mode",
]
WORDS = ["user", "assistant", "tool", "function", "object", "string", "allowed_tools", "json_schema", "#/$defs/a", "a"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=25,
)
MESSAGES = st.one_of(st.just(HI), st.just(HI), st.lists(JSON, max_size=3) | JSON)
SCHEMA = st.fixed_dictionaries({"properties": st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3)})
PARAMETERS = st.builds(
    lambda more, schema: {**more, **schema, "type": "object"},
    st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3),
    SCHEMA,
)
TOOLS = st.one_of(st.lists(PARAMETERS.map(lambda schema: build_function_tools(parameters=schema)[0]), max_size=1), JSON)
OTHERS = dict.fromkeys(["response_format", "stop", "stream_options"], JSON)
BODY = st.fixed_dictionaries({"model": st.just("m"), "messages": MESSAGES, "tools": TOOLS}, optional=OTHERS)


@given(BODY)
def test_any_json_is_parsed_or_rejected(body):
    try:
        asked = parse_body(parse_json_object(orjson.dumps(body)))
    except GatewayError:
        return
    calls = [ToolCall.from_json("c", tool.name, '{"a": "1", "content": {}}') for tool in asked.tools]
    assert len(resolve_native_calls(calls, asked)) == len(calls)
    tools = normalize_tools(asked.tools)
    assert protocol_texts.render_instructions(tools, "auto", "en")
    assert python_texts.render_functions(tools)
