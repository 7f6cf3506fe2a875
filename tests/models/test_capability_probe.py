"""The exam, and the ways of asking."""

import pytest
from tests.models.chat_server import chat_server, message

from opposable import app
from opposable.domain.errors import BadInput, ModelUnavailable
from opposable.domain.messages import user
from opposable.models.calling_modes import FILE, WAYS, asked, default_way, remember, remembered
from opposable.models.capability_probe import QUESTIONS, TOOLS, examine, matches
from opposable.models.factory import build
from opposable.models.python_protocol.model import PythonProtocolModel
from opposable.models.scripted import ScriptedModel, call, calls
from opposable.models.text_protocol import TextProtocolModel
from opposable.settings import Settings

pytestmark = pytest.mark.anyio

RIGHT = [
    calls(call("get_weather", '{"city": "oslo"}')),
    calls(call("set_timer", '{"minutes": 25}')),
    calls(call("get_weather", '{"city": "Lima"}', "c1"), call("get_weather", '{"city": "Oslo, Norway"}', "c2")),
    "Shakespeare.",
    calls(call("ship_parcel", '{"weight_kg": 2.5, "address": {"name": "Ana Silva", "street": "x", "city": "Lisbon"}}')),
    calls(call("convert_currency", '{"amount": 100.0, "source": "USD", "target": "CNY"}')),
]


async def marks_of(model):
    return [mark async for mark in examine(model)]


async def test_right_answers_pass_and_wrong_ones_fail():
    assert [mark.right for mark in await marks_of(ScriptedModel(*RIGHT))] == [True] * 6
    assert [mark.right for mark in await marks_of(ScriptedModel("I cannot do that."))] == [
        q.wanted == () for q in QUESTIONS
    ]
    assert not any(mark.right for mark in await marks_of(ScriptedModel("")))
    always = await marks_of(ScriptedModel(calls(call("get_weather", '{"city": "Oslo"}'))))
    assert [mark.right for mark in always] == [True, False, False, False, False, False]


async def test_a_model_that_cannot_be_asked_fails_with_its_reason():
    [first, *_] = await marks_of(ScriptedModel(ModelUnavailable("no such thing")))
    assert (first.right, first.came) == (False, "no such thing")


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ([("get_weather", {"city": "Oslo", "unit": "c"})], True),
        ([("get_weather", {"city": "Rome"})], False),
        ([("get_weather", {})], False),
        ([("get_weather", {"city": "Oslo"}), ("set_timer", {"minutes": 1})], False),
        ([], False),
    ],
)
def test_extra_arguments_are_no_fault_and_extra_calls_are(given, right):
    assert matches(QUESTIONS[0].wanted, given) is right


@pytest.mark.parametrize("way", WAYS)
async def test_every_way_asks_the_inner_model(way):
    inner = ScriptedModel("Hello.")
    [*_, reply] = [part async for part in asked(way, inner).stream((user("hi"),), TOOLS)]
    assert reply.message.content == "Hello."
    told = inner.requests[0]
    assert bool(told.tools) == (way in ("native", "rescue"))
    assert (told.options.response_schema is not None) == (way == "constrained")


async def test_a_native_call_is_trusted_or_not():
    native = ScriptedModel(calls(call("set_timer", '{"minutes": 5}')))
    for way, count in (("native", 1), ("rescue", 0)):
        [*_, reply] = [part async for part in asked(way, native).stream((user("hi"),), TOOLS)]
        assert len(reply.message.tool_calls) == count


def test_the_best_way_is_remembered_by_the_models_name(tmp_path):
    assert remembered(tmp_path) == {}
    remember(tmp_path, "http://127.0.0.1:1/v1#a", "constrained")
    remember(tmp_path, "http://127.0.0.1:1/v1#b", "python")
    remember(tmp_path, "http://127.0.0.1:1/v1#a", "prompted")
    assert remembered(tmp_path) == {"http://127.0.0.1:1/v1#a": "prompted", "http://127.0.0.1:1/v1#b": "python"}
    made = build("http://127.0.0.1:1/v1#a", models_directory=tmp_path)
    assert isinstance(made, TextProtocolModel)
    assert made.telling == "protocol"
    assert isinstance(build("http://127.0.0.1:1/v1#b", models_directory=tmp_path), PythonProtocolModel)
    assert build("http://127.0.0.1:1/v1#c", models_directory=tmp_path).telling == "native"
    assert isinstance(build("http://127.0.0.1:1/v1#a", models_directory=tmp_path, way="python"), PythonProtocolModel)


@pytest.mark.parametrize("kept", ["", "[]", "nonsense", '{"x": "unheard of"}', "\xff"])
def test_what_cannot_be_read_is_not_remembered(tmp_path, kept):
    (tmp_path / FILE).write_text(kept, encoding="latin-1")
    assert remembered(tmp_path) == {}


def test_each_kind_has_a_way_it_is_known_for():
    assert [default_way(name) for name in ("local", "local:/x.gguf", "openai:gpt-5", "http://h/v1#m")] == [
        "python",
        "prompted",
        "native",
        "native",
    ]


async def test_a_check_tries_every_way_and_remembers_the_best(tmp_path):
    native = [message("hello")]
    wrong = [message("no idea")] * 6
    fine = [
        message(f'{{"name": "{n}", "arguments": {a}}}')
        for n, a in (("get_weather", '{"city": "Oslo"}'), ("set_timer", '{"minutes": 25}'))
    ]
    async with chat_server(*native, *wrong, *fine, *wrong) as server:
        name = f"{server.url}#m"
        marks = await app.check_model(Settings(home=tmp_path), name, ("native", "prompted"))
    assert [sum(mark.right for mark in marks[way]) for way in ("native", "prompted")] == [1, 3]
    assert app.best_way(marks) == "prompted"
    assert remembered(tmp_path / "models") == {name: "prompted"}


async def test_a_model_that_does_not_exist_is_told_before_any_question(tmp_path):
    with pytest.raises(BadInput):
        await app.check_model(Settings(home=tmp_path), "nonsense")
