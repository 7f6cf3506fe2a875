"""Tools as Python functions, and the no-call option."""

import pytest
from tests.models.python_protocol.weather_tool import WEATHER

from opposable.domain.errors import ModelRejected
from opposable.domain.events import CallDelta, Reply, TextDelta, Token
from opposable.domain.messages import assistant_message, system_message, tool_message, user_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import ForcedTool, ModelOptions
from opposable.models.python_protocol import prompts as texts
from opposable.models.python_protocol.model import PythonProtocolModel, build_prompt
from opposable.models.scripted import ScriptedModel
from opposable.models.text_protocol import TextProtocolModel

pytestmark = pytest.mark.anyio


def build_reply(
    code: str, out: float = -6.0, finish="stop", begun: str = texts.REPLY_PREFIX, sure: float = -0.05
) -> Reply:
    """What llama.cpp gives: the reply with what was begun for it, and its tokens: `out` is the way out's log p, `sure` the rest's."""
    tokens = (
        Token(code[:3], ((code[:3], sure), ("pass", out), (" pass", -12.0))),
        Token(code[3:], ((code[3:], sure),)),
    )
    return Reply(assistant_message(begun + code), finish, Usage(100, 20, 1), tokens)


async def parts(inner, said="What is the weather in Oslo?", messages=None, tools=(WEATHER,), **options):
    model = PythonProtocolModel(inner)
    return [part async for part in model.stream(messages or (user_message(said),), tools, ModelOptions(**options))]


async def test_calls_are_made_where_the_model_leaves_the_way_out_alone():
    inner = ScriptedModel(build_reply('get_weather(city="Oslo")\n'))
    got = await parts(inner)
    [call] = got[-1].message.tool_calls
    assert (call.name, call.arguments) == ("get_weather", {"city": "Oslo"})
    assert got[:-1] == [CallDelta(0, call.id, "get_weather", '{"city":"Oslo"}')]
    assert (got[-1].finish, got[-1].message.content, got[-1].usage) == ("tool_calls", "", Usage(200, 40, 2))
    choice, request = inner.requests
    assert [one.messages[1:] for one in inner.requests] == [
        (user_message(f"What is the weather in Oslo?{suffix}"), assistant_message(texts.REPLY_PREFIX))
        for suffix in (texts.NO_CALL_OPTION, "")
    ]
    assert (choice.options.max_tokens, "grammar" in choice.options.extra_body, choice.tools) == (1, False, ())
    assert (request.options.stop, request.options.stream, request.options.top_logprobs) == (("```",), False, 20)


@pytest.mark.parametrize(
    "reply",
    [
        build_reply("pass\n", out=-0.01),
        build_reply('get_weather(city="Oslo")', out=-1.5, sure=-0.4),
        build_reply('get_weather(city="Atlantis")', out=-1.5, sure=-0.15),
        build_reply('get_weather(city="the city at 59.91, 10.75")', out=-3.0, sure=-0.1),
        build_reply('tell_joke(topic="rain")'),
        build_reply("print('hello')"),
        Reply(assistant_message("I would rather not."), "stop"),
    ],
    ids=["way out", "leaning out", "invented text", "invented numbers", "unknown function", "no call", "no code"],
)
async def test_where_no_tool_fits_it_answers_as_if_there_were_none(reply):
    replies = [reply] if "pass" in reply.message.content else [reply, reply]
    inner = ScriptedModel(*replies, "An answer.", chunk_size=100)
    got = await parts(inner)
    assert [part.text for part in got if type(part) is TextDelta] == ["An answer."]
    assert got[-1].message == assistant_message("An answer.")
    assert got[-1].usage == sum((each.usage for each in replies), Usage(10, 5, 1))
    assert inner.requests[-1].messages == (
        system_message(texts.NO_TOOL_INSTRUCTIONS),
        user_message("What is the weather in Oslo?"),
    )


@pytest.mark.parametrize("model", [PythonProtocolModel, lambda inner: TextProtocolModel(inner, "protocol")])
async def test_a_parameter_may_be_anything(model):
    tool = ToolDefinition("keep", "Keep it.", {"type": "object", "properties": {"it": True}, "required": ["it"]})
    inner = ScriptedModel(build_reply('keep(it="rain")'), "Kept.", chunk_size=100)
    got = [part async for part in model(inner).stream((user_message("Keep rain"),), (tool,), ModelOptions())]
    assert type(got[-1]) is Reply


async def test_after_results_the_no_tool_instructions_are_not_sent():
    call = ToolCall.from_json("c", "get_weather", '{"city":"Oslo"}')
    messages = (
        user_message("Weather in Oslo?"),
        assistant_message("", (call,)),
        tool_message("c", "get_weather", "rain"),
        user_message("Thanks!"),
    )
    inner = ScriptedModel(build_reply("pass\n", out=-0.01), "You are welcome.", chunk_size=100)
    assert (await parts(inner, messages=messages))[-1].message == assistant_message("You are welcome.")
    assert [message.role for message in inner.requests[1].messages] == ["user", "assistant", "user", "user"]
    own = ScriptedModel(build_reply("pass\n", out=-0.01), "Hello.", chunk_size=100)
    await parts(own, messages=(system_message("Be short."), user_message("Hi")))
    assert own.requests[1].messages == (
        system_message(f"Be short.\n\n{texts.NO_TOOL_INSTRUCTIONS}"),
        user_message("Hi"),
    )


async def test_a_call_by_name_is_made_once():
    twice = build_reply('get_weather(city="Rome")\nget_weather(city="Rome")')
    reply = (await parts(ScriptedModel(twice), tool_choice=ForcedTool("get_weather")))[-1]
    assert [call.arguments_json for call in reply.message.tool_calls] == ['{"city":"Rome"}']


async def test_a_call_by_name_is_of_that_function():
    note = ToolDefinition("note", "Note.", {"type": "object", "properties": {"text": {"type": "string"}}})
    inner = ScriptedModel(build_reply("note()"), "note(")
    options = ModelOptions(stream=False, tool_choice=ForcedTool("note"))
    reply = [
        part async for part in PythonProtocolModel(inner).stream((user_message("Oslo"),), (WEATHER, note), options)
    ][-1]
    assert [(call.name, call.arguments_json) for call in reply.message.tool_calls] == [("note", "{}")]
    assert "get_weather" not in inner.requests[0].options.extra_body["grammar"]


async def test_a_server_that_rejects_the_grammar_is_asked_without_it():
    written = build_reply("get_weather(city='Oslo')")
    inner = ScriptedModel(written, ModelRejected("no grammar"), written)
    [call] = (await parts(inner))[-1].message.tool_calls
    assert call.arguments == {"city": "Oslo"}
    assert ["grammar" in request.options.extra_body for request in inner.requests] == [False, True, False]


@pytest.mark.parametrize(("out", "made"), [(-3.3, 1), (-2.0, 0)], ids=["far from the way out", "near it"])
async def test_a_model_that_wavers_over_a_spelling_alone_may_call(out, made):
    written = build_reply('get_weather(city="上海")', out=out, sure=-0.3)
    inner = ScriptedModel(written, written, "An answer.")
    assert len((await parts(inner, "上海现在天气怎么样？"))[-1].message.tool_calls) == made


@pytest.mark.parametrize("choice", ["required", ForcedTool("get_weather")])
async def test_a_forced_choice_has_no_way_out(choice):
    inner = ScriptedModel(build_reply('get_weather(city="Rome")', out=-0.01))
    [call] = (await parts(inner, "Tell me a joke.", tool_choice=choice))[-1].message.tool_calls
    assert call.arguments_json == '{"city":"Rome"}'
    request = inner.requests[0]
    assert request.messages[1:] == (user_message("Tell me a joke."), assistant_message(texts.REPLY_PREFIX))
    assert '"pass"' not in request.options.extra_body["grammar"]


async def test_a_forced_choice_that_wrote_no_call_is_enforced_by_a_schema():
    enforced = '{"action": "tool_call", "tool_calls": [{"name": "get_weather", "arguments": {"city": "Rome"}}]}'
    inner = ScriptedModel(build_reply("print('hello')"), enforced)
    [call] = (await parts(inner, "Tell me a joke.", tool_choice="required"))[-1].message.tool_calls
    assert call.arguments_json == '{"city":"Rome"}'
    assert inner.requests[1].messages[0].content.startswith("# Tools")


async def test_a_reply_with_tools_has_a_default_length():
    inner = ScriptedModel(build_reply("pass\n", out=-0.01), "An answer.")
    await parts(inner)
    assert [request.options.max_tokens for request in inner.requests] == [1, 1024]
    inner = ScriptedModel(build_reply("pass\n", out=-0.01), "An answer.")
    await parts(inner, max_tokens=9)
    assert [request.options.max_tokens for request in inner.requests] == [1, 9]


async def test_without_tools_or_with_choice_none_it_is_the_inner_model():
    inner = ScriptedModel("hi")
    assert (await parts(inner, tool_choice="none"))[-1].message.content == "hi"
    assert len(inner.requests) == 1


async def test_after_results_the_question_is_whether_more_is_needed():
    history = (
        user_message("What is the weather in Oslo?"),
        assistant_message("", (ToolCall.from_json("c", "get_weather", '{"city":"Oslo"}'),)),
        tool_message("c", "get_weather", "rain"),
    )
    inner = ScriptedModel('{"action": "finish", "content": "It rains."}')
    assert (await parts(inner, messages=history))[-1].message.content == "It rains."
    assert "# Tools" in inner.requests[0].messages[0].content


async def test_a_whole_call_of_a_reply_that_was_cut_off_is_marked_by_the_finish_reason():
    inner = ScriptedModel(build_reply('get_weather(city="Oslo")\nget_weather(city="Ber', finish="length"))
    reply = (await parts(inner))[-1]
    assert (len(reply.message.tool_calls), reply.finish) == (1, "length")


async def test_a_call_cut_off_by_the_token_limit_is_not_made():
    inner = ScriptedModel(build_reply('get_weather(city="Oslo', finish="length"), "An answer.")
    assert (await parts(inner))[-1].message.tool_calls == ()


def test_functions_are_rendered_as_signatures_with_descriptions():
    assert texts.render_signature(WEATHER) == (
        'def get_weather(*, city: str, unit: Literal["celsius", "fahrenheit"] = None, days: list[int] = None, '
        "place: dict = None):\n"
        '    """The weather in a city.\n\n'
        "    city: the city's name\n"
        "    unit: \n"
        "    days: \n"
        "    place: \n"
        "      - lat (float): degrees\n"
        '    """'
    )
    assert texts.render_signature(ToolDefinition("ping", "Ping.", {"type": "object"})) == 'def ping():\n    """Ping."""'


def test_the_beginning_of_the_prompt_is_the_same_for_every_request():
    first, second = (
        build_prompt((system_message("be brief"), user_message(said)), (WEATHER,), "!") for said in ("a", "b")
    )
    assert first[0] == second[0]
    assert first[0].content.startswith(texts.INSTRUCTIONS)
    assert first[0].content.endswith("be brief")
    assert first[1:] == [user_message("a!")]


def test_only_the_last_request_is_followed_by_the_way_out():
    history = (
        user_message("a"),
        assistant_message("", (ToolCall.from_json("c", "get_weather", '{"city":"Oslo"}'),)),
        tool_message("c", "get_weather", "rain"),
        assistant_message("It rains."),
        user_message("b"),
    )
    assert build_prompt(history, (WEATHER,), "!")[1:] == [
        user_message("a"),
        assistant_message("```python\nget_weather(city='Oslo')\n```"),
        user_message("Result of get_weather:\nrain"),
        assistant_message("It rains."),
        user_message("b!"),
    ]


@pytest.mark.parametrize(
    ("said", "placeholder", "heading", "last_line"),
    [
        ("Analyze app.log", "...", "Result of", "Answer the user's request in words, from these results."),
        ("分析一下 app.log", "用中文写的回答", "工具", "请根据以上结果，用中文回答用户的请求。"),
    ],
)
async def test_a_copied_placeholder_is_followed_by_an_answer_from_the_results(said, placeholder, heading, last_line):
    inner = ScriptedModel(f'{{"action": "finish", "content": "{placeholder}"}}', "20 errors.")
    call = ToolCall("1", "get_weather", {"city": "Oslo"})
    messages = (user_message(said), assistant_message("", (call,)), tool_message("1", "get_weather", "rain"))
    got = await parts(inner, messages=messages)
    assert "".join(part.text for part in got if type(part) is TextDelta) == got[-1].message.content == "20 errors."
    first, second = inner.requests
    assert (first.options.tool_choice, second.tools, len(second.messages)) == ("auto", (), 3)
    assert second.messages[-1].content.startswith(heading)
    assert second.messages[-1].content.endswith(last_line)
    assert got[-1].usage.requests == 2
