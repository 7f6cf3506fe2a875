"""Tool calls through plain text, with each tool rendering."""

import jsonschema_rs
import orjson
import pytest

from opposable.domain.events import CallDelta, Reply, TextDelta, ThinkingDelta
from opposable.domain.messages import Message, assistant_message, system_message, tool_message, user_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import ForcedTool, ModelOptions
from opposable.models.callable import CallableModel
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.models.text_protocol import TextProtocolModel, render_messages, with_reply_schema

pytestmark = pytest.mark.anyio

VALIDATE = ToolDefinition(
    "sql_validate",
    "Check SQL.",
    {
        "type": "object",
        "properties": {
            "sql": {"type": "string", "description": "the query"},
            "strict": {"type": "boolean"},
            "limit": {"type": "integer", "default": 10},
            "mode": {"type": "string", "enum": ["a", "b"]},
        },
        "required": ["sql"],
    },
)
SEED = '{"reasoning": "check first", "action": "tool_call", "tool_calls": [{"name": "sql_validate", "arguments": {"sql": "SELECT 1"}}]}'


async def collect_parts(model, messages=(user_message("hi"),), tools=(VALIDATE,), options=ModelOptions()):
    return [part async for part in model.stream(messages, tools, options)]


async def test_a_call_in_the_text_comes_out_as_a_call_and_no_markup_is_shown():
    model = TextProtocolModel(
        ScriptedModel(f"Let me check.\n<tool_call>\n{SEED[SEED.index('[{') + 1 : -2]}\n</tool_call>", chunk_size=3)
    )
    got = await collect_parts(model)
    reply = got[-1]
    assert "".join(part.text for part in got if type(part) is TextDelta).strip() == "Let me check."
    assert [(c.name, c.arguments) for c in reply.message.tool_calls] == [("sql_validate", {"sql": "SELECT 1"})]
    assert (reply.message.content.strip(), reply.finish, reply.usage) == (
        "Let me check.",
        "tool_calls",
        Usage(10, 5, 1),
    )
    [begun] = [part for part in got if type(part) is CallDelta and part.name]
    assert (begun.name, begun.call_id) == ("sql_validate", reply.message.tool_calls[0].id)


@pytest.mark.parametrize("streamed", [True, False])
async def test_the_seed_protocol_is_read_in_both_transfers(streamed):
    model = TextProtocolModel(ScriptedModel(SEED), "protocol")
    reply = (await collect_parts(model, options=ModelOptions(stream=streamed)))[-1]
    [made] = reply.message.tool_calls
    assert (made.name, made.arguments, reply.message.content) == ("sql_validate", {"sql": "SELECT 1"}, "")
    assert made.id


async def test_the_final_answer_is_unwrapped():
    finish = '{"reasoning": "done", "action": "finish", "content": "SELECT * FROM t WHERE d > {{start}} 你好"}'
    got = await collect_parts(TextProtocolModel(ScriptedModel(finish), "protocol"))
    assert "".join(part.text for part in got if type(part) is TextDelta) == "SELECT * FROM t WHERE d > {{start}} 你好"
    assert got[-1].message.content == "SELECT * FROM t WHERE d > {{start}} 你好"
    assert got[-1].message.tool_calls == ()


async def test_a_model_that_repeats_the_placeholder_has_said_nothing():
    got = await collect_parts(TextProtocolModel(ScriptedModel('{"action": "finish", "content": "…"}'), "protocol"))
    assert got[-1].message == assistant_message("")


async def test_native_calls_are_taken_as_they_are_and_the_inner_model_gets_the_tools():
    inner = ScriptedModel(reply_with_calls(tool_call("sql_validate", '{"sql": "x"}', "n1"), text="ok"))
    reply = (await collect_parts(TextProtocolModel(inner)))[-1]
    assert reply.message == assistant_message("ok", (ToolCall.from_json("n1", "sql_validate", '{"sql": "x"}'),))
    assert inner.requests[0].tools == (VALIDATE,)


async def test_plain_text_and_thinking_pass_through():
    got = await collect_parts(TextProtocolModel(ScriptedModel("<think>hm</think>Hello there", chunk_size=4)))
    assert "".join(part.text for part in got if type(part) is ThinkingDelta) == "hm"
    assert "".join(part.text for part in got if type(part) is TextDelta) == "Hello there"
    assert got[-1].message == Message("assistant", "Hello there", thinking="hm")


@pytest.mark.parametrize(
    ("text", "name", "truncated"),
    [
        ('{"name": "drop_tables", "arguments": {"x": 1}}', "drop_tables", False),
        ('<tool_call>{"name": "sql_validate", "arguments": {"sql": "SELECT', "sql_validate", True),
    ],
)
async def test_what_cannot_be_made_comes_out_as_a_call_to_be_answered(text, name, truncated):
    finish = "length" if truncated else "stop"
    reply = (await collect_parts(TextProtocolModel(ScriptedModel(Reply(assistant_message(text), finish)))))[-1]
    [made] = reply.message.tool_calls
    assert (made.name, made.truncated) == (name, truncated)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "text", [SEED, '<tool_call>{"name": "sql_validate", "arguments": {"sql": "SELECT 1"}}</tool_call>']
)
async def test_with_tool_choice_none_there_are_neither_calls_nor_their_markup(text, stream):
    options = ModelOptions(tool_choice="none", stream=stream)
    got = await collect_parts(TextProtocolModel(ScriptedModel(text)), options=options)
    assert not [part for part in got if type(part) in (TextDelta, CallDelta)]
    assert (got[-1].message.content, got[-1].message.tool_calls, got[-1].finish) == ("", (), "stop")


def test_tools_are_described_in_the_system_message():
    [first, second] = render_messages((user_message("check it"),), (VALIDATE,), "auto")
    assert first.role == "system"
    assert (
        "### sql_validate\nCheck SQL.\nParameters:\n"
        "  - sql (string, required): the query\n"
        "  - strict (boolean, optional)\n"
        "  - limit (integer, optional)\n"
        '  - mode (one of "a", "b", optional)'
    ) in first.content
    assert '"action": "tool_call"' in first.content
    assert '"action": "finish"' in first.content
    assert second == user_message("check it")


def test_tools_are_described_in_chinese_for_a_chinese_request():
    [first, _] = render_messages((system_message("你是助手"), user_message("帮我查看有哪些表")), (VALIDATE,), "auto")
    assert first.content.startswith("你是助手\n\n# 工具调用协议")
    assert "  - sql (string, 必需): the query\n  - strict (boolean, 可选)" in first.content


HISTORY = (
    user_message("go"),
    assistant_message(
        "",
        (
            ToolCall.from_json("c1", "sql_validate", '{"sql":"a"}'),
            ToolCall.from_json("c2", "sql_validate", '{"sql":"b"}'),
        ),
    ),
    tool_message("c1", "sql_validate", "fine"),
    tool_message("c2", "sql_validate", "broken"),
    user_message("and?"),
)


def test_calls_and_results_are_sent_as_text():
    plain = render_messages(HISTORY, (), "auto")
    assert [(m.role, m.content) for m in plain] == [
        ("user", "go"),
        (
            "assistant",
            '{"action": "tool_call", "tool_calls": [{"name": "sql_validate", "arguments": {"sql":"a"}}, '
            '{"name": "sql_validate", "arguments": {"sql":"b"}}]}',
        ),
        ("user", "Result of sql_validate:\nfine\n\nResult of sql_validate:\nbroken"),
        ("user", "and?"),
    ]


def test_a_forced_choice_is_stated_and_the_choice_none_hides_the_tools():
    assert (
        "must call sql_validate now"
        in render_messages((user_message("x"),), (VALIDATE,), ForcedTool("sql_validate"))[0].content
    )
    assert "必须调用" in render_messages((user_message("请检查"),), (VALIDATE,), "required")[0].content
    assert render_messages((user_message("x"),), (VALIDATE,), "none") == [user_message("x")]


def test_a_forced_choice_becomes_a_schema_of_the_reply():
    forced = with_reply_schema(
        (VALIDATE,), ModelOptions(tool_choice=ForcedTool("sql_validate")), is_always_constrained=False
    ).response_schema
    assert forced["properties"]["action"] == {"const": "tool_call"}
    assert forced["properties"]["tool_calls"]["items"]["properties"]["name"] == {"const": "sql_validate"}
    assert with_reply_schema((VALIDATE,), ModelOptions(), is_always_constrained=False).response_schema is None
    both = with_reply_schema((VALIDATE,), ModelOptions(), is_always_constrained=True).response_schema["anyOf"]
    assert [option["properties"]["action"]["const"] for option in both] == ["tool_call", "finish"]


@pytest.mark.parametrize("choice", ["auto", "required", ForcedTool("add_tree")])
@pytest.mark.parametrize("others", [(), (VALIDATE,)])
def test_references_of_parameters_hold_in_the_schema_of_the_reply(choice, others):
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}, "required": ["id"]}
    tools = (*others, ToolDefinition("add_tree", "", tree))
    schema = with_reply_schema(tools, ModelOptions(tool_choice=choice), is_always_constrained=True).response_schema
    for child, is_valid in (({"id": 2}, True), ({}, False)):
        call = {"name": "add_tree", "arguments": {"id": 1, "children": [child]}}
        assert jsonschema_rs.is_valid(schema, {"action": "tool_call", "tool_calls": [call]}) is is_valid


ANSWERS = [
    (SEED, 1, ""),
    ({"response": SEED}, 1, ""),
    ({"result": {"text": SEED}}, 1, ""),
    (orjson.loads(SEED), 1, ""),
    ({"action": "finish", "content": "done"}, 0, "done"),
    ({"sql": "SELECT 1"}, 0, "SELECT 1"),
    ("just text", 0, "just text"),
    ({"other": 1}, 0, '{"other":1}'),
    ("", 0, ""),
]


@pytest.mark.parametrize(("answer", "count", "content"), ANSWERS)
async def test_a_python_function_is_model_enough(answer, count, content):
    prompts = []

    def service(prompt):
        prompts.append(prompt)
        return answer

    async def async_service(prompt):
        return answer

    for function in (service, async_service):
        reply = (
            await collect_parts(
                TextProtocolModel(CallableModel(function), "protocol"), (system_message("S"), user_message("hi"))
            )
        )[-1]
        assert len(reply.message.tool_calls) == count
        assert reply.message.content == content
    assert prompts[0].startswith("S\n\n# Tools")
    assert prompts[0].endswith("User: hi\n\nAssistant:")
