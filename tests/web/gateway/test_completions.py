"""Replies made fit for a client: calls held until they are right, one more try where they are not."""

import asyncio

import aiohttp
import orjson
import pytest
from tests.parsers.linear_time import assert_linear
from tests.web.gateway.test_parameters import BODIES
from tests.web.serving import serve_models

from opposable.domain.errors import ModelUnavailable
from opposable.domain.events import Reply, TextDelta, ThinkingDelta
from opposable.domain.messages import assistant_message, system_message, tool_message, user_message
from opposable.domain.tools import ToolCall
from opposable.domain.usage import Usage
from opposable.models.profile import ModelProfile, get_profile
from opposable.models.scripted import ScriptedModel as NativeModel
from opposable.models.scripted import reply_with_calls, tool_call
from opposable.models.text_protocol import TextProtocolModel
from opposable.web.gateway.completions import stream_reply
from opposable.web.gateway.request import parse_body
from opposable.web.telemetry.metered_model import MeteredModel

pytestmark = pytest.mark.anyio


class ScriptedModel(NativeModel):
    """A model that may write its calls as text, whose calls the gateway checks before the client gets them."""

    profile = ModelProfile("text")


PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ADD = {"type": "function", "function": {"name": "add", "parameters": PARAMETERS}}
SUB = {"type": "function", "function": {"name": "sub", "parameters": PARAMETERS}}
ONE = Usage(10, 5, 1)
TWO = ONE + ONE


def parse(**body):
    asked = {"model": "m", "messages": [{"role": "user", "content": "add 1"}], "tools": [ADD, SUB], **body}
    return parse_body(orjson.loads(orjson.dumps(asked)))


async def collect_parts(model, **body):
    return [part async for part in stream_reply(model, parse(**body))]


async def get_reply(model, **body):
    """The reply, which is the same streamed and whole."""
    assert len(model.requests if isinstance(model, ScriptedModel) else []) == 0
    parts = await collect_parts(model, **body)
    assert [type(part) for part in parts] == [Reply]
    return parts[-1]


def summarize_reply(reply):
    return reply.message.content, [(c.name, c.arguments_json) for c in reply.message.tool_calls], reply.finish


async def test_text_is_streamed_and_calls_come_whole_at_the_end():
    native = ScriptedModel(reply_with_calls(tool_call("add", '{"a": 1}'), text="I add two"), chunk_size=6)
    assert await collect_parts(native, stream=True) == [
        TextDelta("I add "),
        TextDelta("two"),
        Reply(assistant_message("I add two", (ToolCall.from_json("call_add", "add", '{"a": 1}'),)), "tool_calls", ONE),
    ]


NATIVE = {
    "as they are": (tool_call("add", '{"a": 1}'), ("add", '{"a": 1}')),
    "valid with spaces and a null": (tool_call("free", '{ "input": null }'), ("free", '{ "input": null }')),
    "coerced because invalid": (tool_call("add", '{"a": "1"}'), ("add", '{"a":1}')),
    "malformed but readable": (tool_call("add", "{'a': 1,}"), ("add", '{"a":1}')),
    "not repairable": (tool_call("add", '{"a": "x"}'), ("add", '{"a": "x"}')),
    "of a tool that was not offered": (tool_call("mul", "{}"), ("mul", "{}")),
}


@pytest.mark.parametrize(("call", "expected"), NATIVE.values(), ids=NATIVE)
async def test_a_native_reply_is_passed_on_in_one_request(call, expected):
    free = {"type": "function", "function": {"name": "free", "parameters": {"type": "object"}}}
    model = NativeModel(reply_with_calls(call, text="<think>x</think> ```json\n{}\n```"))
    [reply] = await collect_parts(model, tools=[ADD, SUB, free])
    assert summarize_reply(reply) == ("<think>x</think> ```json\n{}\n```", [expected], "tool_calls")
    assert len(model.requests) == 1


@pytest.mark.parametrize("finish", ["length", "content_filter", "incomplete"])
async def test_the_calls_of_a_reply_that_was_cut_off_are_not_handed_out(finish):
    message = assistant_message("cut", (ToolCall("c1", "add", {"a": 1}),))
    [reply] = await collect_parts(NativeModel(Reply(message, finish)))
    assert (reply.message.content, reply.message.tool_calls, reply.finish) == ("cut", (), finish)


GOOD = {
    "as they are": (tool_call("add", '{"a": 1}'), ("add", '{"a": 1}')),
    "typed by the schema": (tool_call("add", '{"a": "1"}'), ("add", '{"a":1}')),
    "repaired": (tool_call("add", "{'a': 1,}"), ("add", '{"a":1}')),
    "unwrapped": (tool_call("add", '{"arguments": {"a": 1}}'), ("add", '{"a":1}')),
    "with the name that is meant": (tool_call("functions.Add", '{"a": 1}'), ("add", '{"a": 1}')),
}


@pytest.mark.parametrize(("given", "right"), GOOD.values(), ids=GOOD)
async def test_native_calls_are_passed_on(given, right):
    assert summarize_reply(await get_reply(ScriptedModel(reply_with_calls(given)))) == ("", [right], "tool_calls")


async def test_the_repair_of_one_argument_does_not_change_another():
    ref = {"anyOf": [{"const": "HEAD"}, {"type": "string"}]}
    parameters = {"type": "object", "properties": {"ref": ref, "lines": {"type": "integer"}}}
    show = {"type": "function", "function": {"name": "show", "parameters": parameters}}
    model = ScriptedModel(reply_with_calls(tool_call("show", '{"ref": "head", "lines": "5"}')))
    assert [call.arguments for call in (await get_reply(model, tools=[show])).message.tool_calls] == [
        {"ref": "head", "lines": 5}
    ]


async def test_calls_with_one_id_get_unique_ids():
    said = await get_reply(
        ScriptedModel(reply_with_calls(tool_call("add", '{"a": 1}', "0"), tool_call("sub", '{"a": 2}', "0")))
    )
    first, second = (c.id for c in said.message.tool_calls)
    assert first == "0"
    assert second.startswith("call_")


async def test_only_the_first_call_is_returned_if_one_is_requested():
    native = ScriptedModel(reply_with_calls(tool_call("add", '{"a": 1}'), tool_call("sub", '{"a": 2}')))
    assert summarize_reply(await get_reply(native, parallel_tool_calls=False)) == (
        "",
        [("add", '{"a": 1}')],
        "tool_calls",
    )


async def test_a_call_of_an_unknown_tool_is_reported_to_the_model_which_retries_once():
    model = ScriptedModel(
        reply_with_calls(tool_call("mul", '{"a": 1}'), text="Hm."), reply_with_calls(tool_call("add", '{"a": 1}'))
    )
    said = await get_reply(model)
    assert summarize_reply(said) == ("Hm.", [("add", '{"a": 1}')], "tool_calls")
    assert said.usage == TWO
    assert model.requests[1].messages == (
        user_message("add 1"),
        assistant_message("Hm.", (ToolCall.from_json("call_mul", "mul", '{"a": 1}'),)),
        tool_message("call_mul", "mul", "There is no tool named 'mul'. The tools are: add, sub."),
    )


async def test_corrections_are_in_chinese_for_chinese_users():
    model = ScriptedModel(reply_with_calls(tool_call("mul")), "好")
    assert summarize_reply(await get_reply(model, messages=[{"role": "user", "content": "请计算一下"}])) == (
        "好",
        [],
        "stop",
    )
    assert model.requests[1].messages[-1].content == "没有名为 'mul' 的工具。可用的工具：add、sub。"


async def test_two_texts_are_separated_streamed_or_whole():
    model = ScriptedModel(reply_with_calls(tool_call("mul"), text="One."), "Two.")
    *events, last = await collect_parts(model, stream=True)
    assert events == [TextDelta("One."), TextDelta("\n\nTwo.")]
    assert last == Reply(assistant_message("One.\n\nTwo."), "stop", TWO)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("rendering", ["native", "protocol"])
async def test_a_text_that_only_looks_like_a_call_is_returned_as_text(rendering, stream):
    text = '{"name": "mul", "arguments": {"a": 1}}'
    model = TextProtocolModel(ScriptedModel(text), rendering)
    *events, last = await collect_parts(model, stream=stream)
    assert summarize_reply(last) == (text, [], "stop")
    assert "".join(part.text for part in events) == (text if stream else "")
    assert len(model.inner.requests) == 2


async def test_unreadable_arguments_are_reported_and_corrected_by_the_model():
    model = ScriptedModel(
        reply_with_calls(tool_call("add", '{"a": ,,}')), reply_with_calls(tool_call("add", '{"a": 2}'))
    )
    assert summarize_reply(await get_reply(model)) == ("", [("add", '{"a": 2}')], "tool_calls")
    again = model.requests[1].messages
    assert again[1].tool_calls[0].arguments_json == '{"unreadable":"{\\"a\\": ,,}"}'
    assert "The arguments of add cannot be read" in again[2].content


async def test_arguments_that_stay_unreadable_are_passed_on_unchanged():
    assert summarize_reply(await get_reply(ScriptedModel(reply_with_calls(tool_call("add", '{"a": ,,}'))))) == (
        "",
        [("add", '{"a": ,,}')],
        "tool_calls",
    )


async def test_valid_calls_are_returned_without_a_retry_for_an_invalid_one():
    model = ScriptedModel(reply_with_calls(tool_call("mul"), tool_call("add", '{"a": 1}')))
    assert summarize_reply(await get_reply(model)) == ("", [("add", '{"a": 1}')], "tool_calls")
    assert len(model.requests) == 1


CUT = '<tool_call>\n{"name": "add", "arguments": {"a": 1'


@pytest.mark.parametrize(
    "model",
    [
        ScriptedModel(Reply(reply_with_calls(tool_call("add", '{"a": 1'), text="Now:"), "length", ONE)),
        ScriptedModel(
            Reply(reply_with_calls(ToolCall.from_json("x", "add", "", truncated=True), text="Now:"), "length", ONE)
        ),
        TextProtocolModel(ScriptedModel(Reply(assistant_message(f"Now: {CUT}"), "length", ONE))),
        TextProtocolModel(ScriptedModel(Reply(assistant_message(f"Now: {CUT}}}}}\n</tool_call>"), "length", ONE))),
    ],
    ids=["native", "native, marked", "text", "text, whole"],
)
async def test_a_call_cut_off_by_the_token_limit_never_reaches_the_client(model):
    [said] = await collect_parts(model)
    assert summarize_reply(said) == ("Now:", [], "length")
    assert said.usage == ONE


async def test_a_missing_required_call_is_requested_once_more():
    model = ScriptedModel("I would rather talk.", reply_with_calls(tool_call("add", '{"a": 1}')))
    assert summarize_reply(await get_reply(model, tool_choice="required")) == (
        "I would rather talk.",
        [("add", '{"a": 1}')],
        "tool_calls",
    )
    demand = system_message("You must call a tool now: add, sub. Do not answer in words.")
    assert model.requests[1].messages == (demand, user_message("add 1"))


class AutoModel(NativeModel):
    """A model of unknown behavior that calls natively."""

    profile = ModelProfile("auto")


@pytest.mark.parametrize("kind", [NativeModel, AutoModel])
async def test_a_missing_required_call_of_a_natively_calling_model_is_not_demanded(kind):
    model = kind("I would rather talk.")
    [reply] = await collect_parts(model, tool_choice="required")
    assert (summarize_reply(reply), len(model.requests)) == (("I would rather talk.", [], "stop"), 1)


@pytest.mark.parametrize("kind", [NativeModel, AutoModel])
async def test_every_call_of_a_natively_calling_model_is_passed_on(kind):
    calls = [tool_call("add", '{"a": 1}'), tool_call("mul", "{}"), tool_call("sub", "{}")]
    model = kind(reply_with_calls(*calls))
    [reply] = await collect_parts(model)
    assert summarize_reply(reply)[1] == [("add", '{"a": 1}'), ("mul", "{}"), ("sub", "{}")]
    assert len(model.requests) == 1


async def test_a_call_of_another_tool_than_the_forced_one_is_not_returned():
    named = {"type": "function", "function": {"name": "sub"}}
    model = ScriptedModel(
        reply_with_calls(tool_call("add", '{"a": 1}')), reply_with_calls(tool_call("sub", '{"a": 1}'))
    )
    assert summarize_reply(await get_reply(model, tool_choice=named)) == ("", [("sub", '{"a": 1}')], "tool_calls")


async def test_no_call_is_returned_with_tool_choice_none():
    model = ScriptedModel(reply_with_calls(tool_call("add", '{"a": 1}'), text="2"))
    assert summarize_reply(await get_reply(model, tool_choice="none")) == ("2", [], "stop")


async def test_a_failing_second_attempt_returns_the_first_reply():
    model = ScriptedModel(reply_with_calls(tool_call("mul"), text="Hm."), ModelUnavailable("away"))
    assert summarize_reply(await get_reply(model)) == ("Hm.", [("mul", "{}")], "tool_calls")


VERBATIM = '<think>a</think> <tool_call>\n{"name": "add"}\n</tool_call><|im_end|> \n'


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_without_tools_is_passed_on_untouched(stream):
    inner = ScriptedModel(VERBATIM)
    parts = await collect_parts(TextProtocolModel(inner, "protocol"), tools=None, stream=stream)
    assert parts[-1] == Reply(assistant_message(VERBATIM), "stop", ONE)
    assert "".join(part.text for part in parts[:-1]) == (VERBATIM if stream else "")
    assert inner.requests[0].messages == (user_message("add 1"),)


async def test_a_metered_request_without_tools_is_passed_on_untouched_and_counted():
    model_calls = []
    metered = MeteredModel(TextProtocolModel(ScriptedModel(VERBATIM), "protocol"), [model_calls.append])
    events = await collect_parts(metered, tools=None, stream=False)
    assert events == [Reply(assistant_message(VERBATIM), "stop", ONE)]
    assert [call.usage for call in model_calls] == [ONE]


def test_a_metered_model_has_the_profile_of_its_model():
    model = TextProtocolModel(ScriptedModel("ok"), profile=ModelProfile("text", assisted=True))
    assert get_profile(MeteredModel(model, [])) == model.profile


async def test_reasoning_is_separate_from_the_text():
    model = ScriptedModel(assistant_message("2", (), "1+1"))
    assert await collect_parts(model, stream=True) == [
        ThinkingDelta("1+1"),
        TextDelta("2"),
        Reply(assistant_message("2", (), "1+1"), "stop", ONE),
    ]


SHAPE = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": SHAPE}}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_response_schema_does_not_prevent_calls(stream):
    model = ScriptedModel(reply_with_calls(tool_call("add", '{"a": 1}')))
    [said] = await collect_parts(model, response_format=FORMAT, stream=stream)
    assert summarize_reply(said) == ("", [("add", '{"a": 1}')], "tool_calls")
    assert model.requests[0].options.response_schema is None
    assert orjson.dumps(SHAPE).decode() in model.requests[0].messages[0].content


@pytest.mark.parametrize(
    ("lines", "requests"),
    [
        (['{"sum": 2}'], 1),
        (['```json\n{"sum": 2}\n```'], 1),
        (["It is 2.", '{"sum": 2}'], 2),
        (["[]", '{"sum": 2}'], 2),
    ],
)
async def test_an_answer_that_does_not_match_is_requested_again_with_the_schema_enforced(lines, requests):
    model = ScriptedModel(*lines)
    said = await get_reply(model, response_format=FORMAT)
    assert summarize_reply(said) == ('{"sum": 2}', [], "stop")
    assert said.usage.requests == requests == len(model.requests)
    enforced = [asked.options.response_schema for asked in model.requests]
    assert enforced == [None, SHAPE][:requests]


class UnenforcedModel(NativeModel):
    """A natively calling model whose server cannot enforce a schema."""

    unsupported_options = frozenset({"response_schema"})


def build_shape(**schema):
    return {"type": "object", "properties": {"x": schema}, "required": ["x"]}


UNUSUAL_FORMATS = {
    "nullable": (build_shape(type="string", nullable=True), '{"x": null}'),
    "a format of draft 7": (
        {"$schema": "http://json-schema.org/draft-07/schema#", **build_shape(type="string", format="date-time")},
        '{"x": "tomorrow"}',
    ),
    "boolean exclusiveMinimum": (build_shape(type="number", minimum=0, exclusiveMinimum=True), '{"x": 1}'),
    "an unknown type": (build_shape(type="any"), '{"x": 1}'),
    "the dialect of OpenAPI": (
        {"$schema": "https://spec.openapis.org/oas/3.1/dialect/base", **build_shape(type="integer")},
        '{"x": 1}',
    ),
    "a name that is not ASCII": (
        {**build_shape(**{"$ref": "#/$defs/地址"}), "$defs": {"地址": {"type": "string"}}},
        '{"x": "a"}',
    ),
    "a lone surrogate": (build_shape(type="string"), r'{"x": "\ud83d"}'),
    "a list": ({"type": "array"}, "[1]"),
}


@pytest.mark.parametrize(("schema", "answer"), UNUSUAL_FORMATS.values(), ids=UNUSUAL_FORMATS)
async def test_a_matching_answer_is_requested_once(schema, answer):
    model = UnenforcedModel(answer, "another")
    json_schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    [reply] = await collect_parts(model, tools=None, response_format=json_schema)
    assert (summarize_reply(reply), len(model.requests)) == ((answer, [], "stop"), 1)


def test_an_answer_with_an_open_fence_and_endless_space_takes_linear_time():
    def request(size):
        answer = "```json\n{" + "\n" * size + "}"
        asyncio.run(collect_parts(UnenforcedModel(answer, answer), tools=None, response_format=FORMAT))

    assert_linear(request, 4_000)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BODIES)
async def test_an_invalid_call_is_corrected_once_on_every_api(path, stream):
    calls = [f'<tool_call>{{"name": "add", "arguments": {arguments}}}</tool_call>' for arguments in ("{}", '{"a": 7}')]
    model = TextProtocolModel(NativeModel(*calls), "protocol")
    async with serve_models(model) as url, aiohttp.ClientSession() as session:
        body = {"model": "m", **BODIES[path], "stream": stream}
        async with session.post(f"{url}/{path}", json=body) as response:
            raw = (await response.read()).replace(b"\\", b"")
    assert b'"a":7' in raw
    assert len(model.inner.requests) == 2
    assert "- a: " in model.inner.requests[1].messages[-1].content


async def test_the_first_chunk_of_a_reply_with_calls_alone_has_the_role():
    model = NativeModel(reply_with_calls(tool_call("add", '{"a": 7}')))
    async with serve_models(model) as url, aiohttp.ClientSession() as session:
        body = {"model": "m", **BODIES["chat/completions"], "stream": True}
        async with session.post(f"{url}/chat/completions", json=body) as response:
            first, second, *_ = (await response.read()).split(b"\n\n")
    deltas = [orjson.loads(event.removeprefix(b"data: "))["choices"][0]["delta"] for event in (first, second)]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert deltas[1]["tool_calls"][0]["function"]["name"] == "add"
