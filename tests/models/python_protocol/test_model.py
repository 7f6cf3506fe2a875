"""Tools as Python functions, and the no-call option."""

import pytest

from opposable.domain.errors import ContextFull
from opposable.domain.events import CallDelta, Reply, TextDelta, Token
from opposable.domain.messages import assistant_message, system_message, tool_message, user_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import ForcedTool, ModelOptions
from opposable.models.python_protocol import call_acceptance as python_fit
from opposable.models.python_protocol import prompts as texts
from opposable.models.python_protocol.call_builder import build_calls
from opposable.models.python_protocol.model import PythonProtocolModel, build_prompt
from opposable.models.scripted import ScriptedModel
from opposable.models.text_protocol import TextProtocolModel

pytestmark = pytest.mark.anyio

WEATHER = ToolDefinition(
    "get_weather",
    "The weather in a city.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "the city's name"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "days": {"type": "array", "items": {"type": "integer"}},
            "place": {
                "type": "object",
                "properties": {"lat": {"type": "number", "description": "degrees"}},
                "required": ["lat"],
            },
        },
        "required": ["city"],
    },
)


def build_reply(
    code: str, out: float = -6.0, finish="stop", begun: str = texts.REPLY_PREFIX, sure: float = -0.05
) -> Reply:
    """What llama.cpp gives: the reply with what was begun for it, and its tokens: `out` is the way out's log p, `sure` the rest's."""
    tokens = (Token(code[:3], (("get", sure), ("pass", out), (" pass", -12.0))), Token(code[3:], ((code[3:], sure),)))
    return Reply(assistant_message(begun + code), finish, Usage(100, 20, 1), tokens)


WENT_ON = f"{texts.REPLY_PREFIX}get_weather(city='Oslo', unit='celsius')"
"""The call again, gone on with where the model had ended it."""


async def parts(inner, said="What is the weather in Oslo?", messages=None, tools=(WEATHER,), **options):
    model = PythonProtocolModel(inner)
    return [part async for part in model.stream(messages or (user_message(said),), tools, ModelOptions(**options))]


async def test_calls_are_made_where_the_model_leaves_the_way_out_alone():
    inner = ScriptedModel(build_reply('get_weather(city="Oslo")\n'), WENT_ON)
    got = await parts(inner)
    [call] = got[-1].message.tool_calls
    assert (call.name, call.arguments) == ("get_weather", {"city": "Oslo"})
    assert got[:-1] == [CallDelta(0, call.id, "get_weather", '{"city":"Oslo"}')]
    assert (got[-1].finish, got[-1].message.content, got[-1].usage) == ("tool_calls", "", Usage(110, 25, 2))
    request, rest = inner.requests
    assert request.tools == ()
    assert request.messages[1:] == (
        user_message(f"What is the weather in Oslo?{texts.NO_CALL_OPTION}"),
        assistant_message(texts.REPLY_PREFIX),
    )
    assert (request.options.stop, request.options.stream, request.options.top_logprobs) == (("```",), False, 20)
    assert rest.messages == (*request.messages[:-1], assistant_message(texts.REPLY_PREFIX + 'get_weather(city="Oslo",'))
    assert (rest.options.stop, rest.options.max_tokens) == (("```", "\n"), 40)


@pytest.mark.parametrize(
    ("said", "went_on", "arguments"),
    [
        ("In Celsius: the weather in Oslo?", "city='Oslo', unit='celsius')", {"city": "Oslo", "unit": "celsius"}),
        ("奥斯陆 in Oslo, 3 days", "city='Oslo', days=[3], unit='celsius')", {"city": "Oslo", "days": [3]}),
        ("What is it like in Oslo?", "city='Oslo', unit='celsius')", {"city": "Oslo"}),
        ("What is it like in Oslo?", "city='Oslo', days=[1, 2])", {"city": "Oslo"}),
        ("Oslo in celsius, please", "city='Bergen', place='celsius')", {"city": "Oslo"}),
        ("What is it like in Oslo?", "city='Oslo', mood='like')", {"city": "Oslo"}),
        ("What is it like in Oslo?", "city='Oslo',)\nget_weather(city='Oslo')", {"city": "Oslo"}),
        ("What is it like in Oslo?", "city='Oslo', **", {"city": "Oslo"}),
    ],
    ids=["said", "a list", "unsaid", "numbers unsaid", "of the wrong type", "unknown", "two calls", "no Python"],
)
async def test_an_optional_value_that_was_said_is_given_though_the_model_left_it_out(said, went_on, arguments):
    inner = ScriptedModel(build_reply('get_weather(city="Oslo")'), f"{texts.REPLY_PREFIX}get_weather({went_on}")
    [call] = (await parts(inner, said))[-1].message.tool_calls
    assert call.arguments == arguments


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
    inner = ScriptedModel(reply, "An answer.", chunk_size=100)
    got = await parts(inner)
    assert [part.text for part in got if type(part) is TextDelta] == ["An answer."]
    assert got[-1].message == assistant_message("An answer.")
    more = len(inner.requests) - 1
    assert got[-1].usage == reply.usage + Usage(10 * more, 5 * more, more)
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


def test_a_call_lacks_a_required_argument_that_is_left_out():
    tool = ToolDefinition("get", "Get it.", {"properties": {"url": {"type": "string"}}, "required": ["url"]})
    assert python_fit.lacks_required_argument(ToolCall("c", "get", {}), (tool,))
    assert not python_fit.lacks_required_argument(ToolCall("c", "get", {"url": "https://news.org"}), (tool,))


def test_lists_of_anything_are_borne_out_by_nothing():
    ids = {"type": "array", "items": True}
    tool = ToolDefinition("delete", "", {"properties": {"ids": ids}, "required": ["ids"]})
    assert python_fit.get_grounding_score((ToolCall.from_json("c", "delete", '{"ids": ["a"]}'),), (tool,), "x") == 0.0


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


@pytest.mark.parametrize(
    ("expected", "begun"),
    [
        ("required", ""),
        (ForcedTool("get_weather"), 'get_weather(city="'),
    ],
)
async def test_a_call_that_is_expected_has_no_way_out(expected, begun):
    rest = 'Rome")' if begun else 'get_weather(city="Rome")'
    inner = ScriptedModel(build_reply(rest, out=-0.01, begun=texts.REPLY_PREFIX + begun))
    [call] = (await parts(inner, "Tell me a joke.", tool_choice=expected))[-1].message.tool_calls
    assert call.arguments["city"] == "Rome"
    assert inner.requests[0].messages[1:] == (
        user_message("Tell me a joke."),
        assistant_message(texts.REPLY_PREFIX + begun),
    )


async def test_a_call_by_name_is_made_once():
    twice = build_reply('Rome")\nget_weather(city="Rome")', begun=f'{texts.REPLY_PREFIX}get_weather(city="')
    reply = (await parts(ScriptedModel(twice, WENT_ON), tool_choice=ForcedTool("get_weather")))[-1]
    assert [call.arguments_json for call in reply.message.tool_calls] == ['{"city":"Rome"}']


async def test_a_call_by_name_is_of_that_function_whatever_arguments_it_has():
    note = ToolDefinition("note", "Note.", {"type": "object", "properties": {"text": {"type": "string"}}})
    model = PythonProtocolModel(ScriptedModel(build_reply("city='Oslo')", begun=f"{texts.REPLY_PREFIX}note("), "note("))
    options = ModelOptions(stream=False, tool_choice=ForcedTool("note"))
    reply = [part async for part in model.stream((user_message("Oslo"),), (WEATHER, note), options)][-1]
    assert [(call.name, call.arguments_json) for call in reply.message.tool_calls] == [("note", "{}")]


async def test_a_call_stays_if_the_model_fails_to_continue_it():
    inner = ScriptedModel(build_reply('get_weather(city="Oslo")'), ContextFull("too long"))
    reply = (await parts(inner))[-1]
    assert [call.arguments_json for call in reply.message.tool_calls] == ['{"city":"Oslo"}']
    assert (len(inner.requests), reply.usage) == (2, Usage(100, 20, 1))


FIND = ToolDefinition(
    "find",
    "Find a shop.",
    {
        "type": "object",
        "properties": {"at": {"type": "string", "description": "In the form 'City, Country'"}},
        "required": ["at"],
    },
)


async def test_the_model_goes_on_inside_of_a_text_that_lacks_the_shape_shown():
    begun = texts.REPLY_PREFIX + "find(at='Oslo"
    inner = ScriptedModel(build_reply("find(at='Oslo')"), f"{begun}, Norway")
    reply = (await parts(inner, "Find a shop in Oslo", tools=(FIND,)))[-1]
    [call] = reply.message.tool_calls
    assert call.arguments == {"at": "Oslo, Norway"}
    assert call.repairs == ("value in the shape that its description shows",)
    assert reply.usage == Usage(110, 25, 2)
    request = inner.requests[1]
    assert (request.messages[-1].content, request.options.stop) == (begun + ",", ("'", "\n", "```"))


async def test_a_value_stays_if_the_model_fails_to_continue_it():
    inner = ScriptedModel(build_reply("find(at='Oslo')"), ContextFull("too long"))
    [call] = (await parts(inner, "Find a shop in Oslo", tools=(FIND,)))[-1].message.tool_calls
    assert call.arguments == {"at": "Oslo"}


@pytest.mark.parametrize(("out", "made"), [(-3.3, 1), (-2.0, 0)], ids=["far from the way out", "near it"])
async def test_a_model_that_wavers_over_a_spelling_alone_may_call(out, made):
    inner = ScriptedModel(build_reply('get_weather(city="上海")', out=out, sure=-0.3), "An answer.")
    assert len((await parts(inner, "上海现在天气怎么样？"))[-1].message.tool_calls) == made


@pytest.mark.parametrize("choice", ["required", ForcedTool("get_weather")])
async def test_a_forced_choice_has_no_way_out(choice):
    begun = texts.REPLY_PREFIX + ('get_weather(city="' if isinstance(choice, ForcedTool) else "")
    rest = 'Rome")' if isinstance(choice, ForcedTool) else 'get_weather(city="Rome")'
    inner = ScriptedModel(build_reply(rest, out=-0.01, begun=begun))
    [call] = (await parts(inner, "Tell me a joke.", tool_choice=choice))[-1].message.tool_calls
    assert call.arguments_json == '{"city":"Rome"}'
    assert inner.requests[0].messages[1:] == (user_message("Tell me a joke."), assistant_message(begun))


async def test_a_forced_choice_that_wrote_no_call_is_enforced_by_a_schema():
    enforced = '{"action": "tool_call", "tool_calls": [{"name": "get_weather", "arguments": {"city": "Rome"}}]}'
    inner = ScriptedModel(build_reply("print('hello')"), enforced)
    [call] = (await parts(inner, "Tell me a joke.", tool_choice="required"))[-1].message.tool_calls
    assert call.arguments_json == '{"city":"Rome"}'
    assert inner.requests[1].messages[0].content.startswith("# Tools")


async def test_a_reply_with_tools_has_a_default_length():
    inner = ScriptedModel(build_reply("pass\n", out=-0.01), "An answer.")
    await parts(inner)
    assert [request.options.max_tokens for request in inner.requests] == [1024, 1024]
    inner = ScriptedModel(build_reply("pass\n", out=-0.01), "An answer.")
    await parts(inner, max_tokens=9)
    assert [request.options.max_tokens for request in inner.requests] == [9, 9]


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
    ("alternatives", "logprob"),
    [
        ((("get", -0.5), ("pass", -2.0)), -2.0),
        ((("pass", -0.7), (" pass", -3.0)), -0.604),
        ((("get", -0.1),), -12.0),
    ],
)
def test_the_way_out_is_measured_at_the_first_token(alternatives, logprob):
    tokens = (Token("x", alternatives), Token("y", (("pass", 0.0),)))
    assert python_fit.get_no_call_logprob(tokens) == pytest.approx(logprob, abs=0.001)
    assert python_fit.get_no_call_logprob(()) == -12.0


@pytest.mark.parametrize(
    ("said", "arguments", "share"),
    [
        ("weather in Oslo", 'city="Oslo"', 1.0),
        ("weather in New York", 'city="New York City"', 2 / 3),
        ("weather in California", 'city="CA"', 1.0),
        ("weather in New York", 'city="NY"', 1.0),
        ("weather in district two", 'city="District 2"', 1.0),
        ("weather in mc murdo station", 'city="McMurdo\'s Station"', 2 / 3),
        ("weather in mac donalds town", 'city="MacDonald\'s"', 1.0),
        ("tell me a joke", 'city="Paris"', 0.0),
        ("the forecast for Norwegian towns", 'city="Norway"', 1.0),
        ("奥斯陆的天气", 'city="奥斯陆"', 1.0),
        ("奥斯陆的天气", 'city="卑尔根"', 0.0),
        ("奥斯陆的天气", 'city="Oslo"', 1.0),
        ("the weather in Oslo", 'city="奥斯陆"', 1.0),
        ("Bergen 的天气", 'city="Bergen"', 1.0),
        ("the weather in 奥斯陆", 'city="Oslo 奥斯"', 2 / 3),
        ("weather", 'city="weather", unit="celsius"', 1.0),
    ],
)
def test_a_required_text_is_borne_out_by_the_words_that_were_said(said, arguments, share):
    calls = build_calls(f"get_weather({arguments})", (WEATHER,), said)
    assert python_fit.get_grounding_score(calls, (WEATHER,), said) == pytest.approx(share)


@pytest.mark.parametrize(
    ("said", "ids", "share"),
    [
        ("delete the tasks 7 and 8", "[7, 8]", 1.0),
        ("delete the old tasks", "[1, 2, 3]", 0.0),
        ("tell Ana and Rui", '["Ana", "Rui", "Eva"]', 2 / 3),
        ("delete all", "[]", 1.0),
        ("delete this", '[{"id": 1}]', 1.0),
        ("add 1,000 and 2,000", "[1000, 2000]", 1.0),
        ("三加四", "[3, 4]", 1.0),
    ],
)
def test_a_required_list_is_borne_out_by_the_words_that_were_said(said, ids, share):
    tool = ToolDefinition("delete", "", {"properties": {"ids": {"type": "array", "items": {}}}, "required": ["ids"]})
    call = ToolCall.from_json("c", "delete", f'{{"ids": {ids}}}')
    assert python_fit.get_grounding_score((call,), (tool,), said) == pytest.approx(share)


@pytest.mark.parametrize(
    ("said", "arguments", "count"),
    [
        ("how far is it", '{"lat": 59.91, "long": [10.75]}', 2),
        ("from 59.91 to 10.75", '{"lat": 59.91, "long": 10.75}', 0),
        ("5 % of 100 million", '{"share": 0.05, "of": 100000000}', 0),
        ("a dozen", '{"number": 12}', 0),
        ("on 20230929", '{"day": "2023-09-29"}', 0),
        ("on the 29th of September", '{"day": "2023-09-29"}', 0),
        ("at the end of September", '{"day": "2023-09-29"}', 1),
        ("on March 3rd", '{"day": "2023-03-03", "room": 731}', 1),
        ("book 2 nights", '{"day": "2023-10-02"}', 1),
        ("3月15日", '{"day": "2023-03-15"}', 0),
        ("the mean of 3, 4 and 5", '{"numbers":[3,4,5]}', 0),
        ("", "{}", 0),
    ],
)
def test_ungrounded_long_numbers_are_counted(said, arguments, count):
    assert python_fit.count_ungrounded_numbers((ToolCall.from_json("c", "f", arguments),), said) == count


def test_a_line_is_doubtful_where_its_beginning_was_less_likely_than_not():
    tokens = (
        Token("f", (("f", -0.1),)),
        Token("()\n", (("()\n", -3.0),)),
        Token("\n", (("\n", -0.1),)),
        Token("g", (("f", -0.8), ("g", -1.0))),
        Token("()\n", (("()\n", 0.0),)),
        Token(" ", ()),
        Token("h", (("h", -0.9),)),
    )
    assert python_fit.find_doubtful_lines(tokens) == {3, 4}
