"""Tools told as Python functions, and the verdict before the call."""

import orjson
import pytest

from opposable.domain.events import CallDelta, Reply, TextDelta, Token
from opposable.domain.messages import assistant, system, tool, user
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import Usage
from opposable.models import python_texts as texts
from opposable.models.base import ModelOptions, Named
from opposable.models.python_protocol import PythonProtocolModel, Threshold, grounding, read_calls, sureness, told
from opposable.models.scripted import ScriptedModel

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


def verdict(yes: float, no: float, calls: str, word: str = "yes") -> Reply:
    """What llama.cpp gives: the whole reply, and its tokens behind what was written for the model."""
    head = [" the weather", "\n", "# functions", ": tells the weather", "\n", "# fits", ":"]
    tokens = [Token(piece) for piece in head]
    tokens.append(Token(f" {word}", ((" yes", yes), (" no", no), (" Yes", -9.0))))
    tokens.append(Token(f"\n{calls}\n"))
    written = texts.BEGINNING + "".join(token.text for token in tokens)
    return Reply(assistant(written), "stop", Usage(100, 20, 1), tuple(tokens))


async def parts(inner, said="What is the weather in Oslo?", messages=None, **options):
    model = PythonProtocolModel(inner, Threshold(5.0, 2.0))
    return [part async for part in model.stream(messages or (user(said),), (WEATHER,), ModelOptions(**options))]


async def test_a_sure_verdict_makes_the_calls():
    inner = ScriptedModel(verdict(-0.01, -4.0, 'get_weather(city="Oslo")'))
    got = await parts(inner)
    [call] = got[-1].message.tool_calls
    assert (call.name, orjson.loads(call.arguments)) == ("get_weather", {"city": "Oslo"})
    assert got[:-1] == [CallDelta(0, call.id, "get_weather", '{"city":"Oslo"}')]
    assert (got[-1].finish, got[-1].message.content, got[-1].usage) == ("tool_calls", "", Usage(100, 20, 1))
    [request] = inner.requests
    assert request.tools == ()
    assert request.messages[-1] == assistant(texts.BEGINNING)
    assert (request.options.stop, request.options.stream, request.options.alternatives) == (("```",), False, 20)


@pytest.mark.parametrize(
    "reply",
    [
        verdict(-4.0, -0.01, "", word="no"),
        verdict(-0.6, -0.8, 'get_weather(city="Oslo")'),
        verdict(-0.01, -4.0, 'get_weather(city="Atlantis")'),
        verdict(-0.01, -9.0, 'tell_joke(topic="rain")'),
        verdict(-0.01, -9.0, "print('hello')"),
        Reply(assistant("I would rather not."), "stop"),
    ],
    ids=["no", "unsure", "invented argument", "unknown function", "no call", "no verdict"],
)
async def test_where_no_tool_fits_it_answers_as_if_there_were_none(reply):
    inner = ScriptedModel(reply, "An answer.", piece=100)
    got = await parts(inner)
    assert [part.text for part in got if type(part) is TextDelta] == ["An answer."]
    assert got[-1].message == assistant("An answer.")
    assert got[-1].usage == reply.usage + Usage(10, 5, 1)
    assert inner.requests[1].messages == (user("What is the weather in Oslo?"),)


@pytest.mark.parametrize("choice", ["required", Named("get_weather")])
async def test_a_forced_choice_needs_no_verdict(choice):
    begun = f"{texts.BEGINNING} what the user asks for\n# functions: do that\n{texts.VERDICT} yes\n"
    begun += "get_weather(" if isinstance(choice, Named) else ""
    rest = 'city="Rome")' if isinstance(choice, Named) else 'get_weather(city="Rome")'
    inner = ScriptedModel(Reply(assistant(f"{begun}{rest}"), "stop"))
    [call] = (await parts(inner, "Tell me a joke.", tool_choice=choice))[-1].message.tool_calls
    assert call.arguments == '{"city":"Rome"}'
    assert inner.requests[0].messages[-1].content == begun


async def test_without_tools_or_with_choice_none_it_is_the_inner_model():
    inner = ScriptedModel("hi")
    assert (await parts(inner, tool_choice="none"))[-1].message.content == "hi"
    assert len(inner.requests) == 1


async def test_after_results_the_question_is_whether_more_is_needed():
    history = (
        user("What is the weather in Oslo?"),
        assistant("", (ToolCall("c", "get_weather", '{"city":"Oslo"}'),)),
        tool("c", "get_weather", "rain"),
    )
    inner = ScriptedModel('{"action": "finish", "content": "It rains."}')
    assert (await parts(inner, messages=history))[-1].message.content == "It rains."
    assert "# Tools" in inner.requests[0].messages[0].content


async def test_a_call_cut_off_by_the_token_limit_is_not_made():
    cut = verdict(-0.01, -9.0, 'get_weather(city="Oslo')
    inner = ScriptedModel(Reply(cut.message, "length", cut.usage, cut.tokens), "An answer.")
    assert (await parts(inner))[-1].message.tool_calls == ()


def test_functions_are_told_as_signatures_with_what_needs_telling():
    assert texts.signature(WEATHER) == (
        'def get_weather(city: str, unit: Literal["celsius","fahrenheit"] = None, days: list[int] = None, place: dict = None):\n'
        '    """The weather in a city.\n\n'
        "    city: the city's name\n"
        "    unit: \n"
        "    days: \n"
        "    place: \n"
        "      - lat (float): degrees\n"
        '    """'
    ).replace('"celsius","fahrenheit"', '"celsius", "fahrenheit"')
    assert texts.signature(ToolDefinition("ping", "Ping.", {"type": "object"})) == 'def ping():\n    """Ping."""'


def test_what_stands_first_is_the_same_for_every_request():
    first, second = (told((system("be brief"), user(said)), (WEATHER,)) for said in ("a", "b"))
    assert first[0] == second[0]
    assert first[0].content.startswith(texts.preamble())
    assert first[0].content.endswith("be brief")
    assert [m.role for m in first] == ["system", "user"]


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        (
            'get_weather(city="Oslo")\nget_weather("Lima", unit="celsius")',
            [{"city": "Oslo"}, {"city": "Lima", "unit": "celsius"}],
        ),
        ('result = get_weather(city="Oslo")\nprint(result)', [{"city": "Oslo"}]),
        ('print(get_weather(city="奥斯陆"))', [{"city": "奥斯陆"}]),
        ("# nothing", []),
        ("import os\nos.system('x')", []),
    ],
)
def test_calls_are_read_line_by_line(code, calls):
    found = read_calls(f"{texts.BEGINNING} x\n# functions: y\n# fits: yes\n{code}\n", (WEATHER,), cut=False)
    assert [call.arguments for call in found] == calls


def test_sureness_is_read_at_the_verdict():
    tokens = verdict(-0.5, -2.5, "f()").tokens
    assert sureness(tokens, texts.BEGINNING) == pytest.approx(2.0)
    assert sureness((), texts.BEGINNING) == -12.0
    assert sureness((Token("x"), Token("y", ((" yes", -0.1),))), "# fits:") == pytest.approx(-12 + 12)


@pytest.mark.parametrize(
    ("said", "arguments", "share"),
    [
        ("weather in Oslo", 'city="Oslo"', 1.0),
        ("weather in New York", 'city="New York City"', 2 / 3),
        ("tell me a joke", 'city="Paris"', 0.0),
        ("the forecast for Norwegian towns", 'city="Norway"', 1.0),
        ("奥斯陆的天气", 'city="奥斯陆"', 1.0),
        ("weather", 'city="weather", unit="celsius"', 1.0),
    ],
)
def test_grounding_is_the_share_of_required_words_that_were_said(said, arguments, share):
    calls = read_calls(f"```python\nget_weather({arguments})\n", (WEATHER,), cut=False)
    assert grounding(calls, (user(said),), (WEATHER,)) == pytest.approx(share)
