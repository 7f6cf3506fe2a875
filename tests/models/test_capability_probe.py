"""The exam, and the ways of asking."""

import orjson
import pytest
from tests.models.chat_server import build_completion, chat_server

from opposable.app.models import (
    MIN_QUESTIONS_TO_RECOMMEND,
    check_model,
    compute_sign_test,
    save_model_calling_mode,
    select_best_mode,
)
from opposable.domain.errors import BadInput, ModelUnavailable
from opposable.domain.messages import user_message
from opposable.models.calling_modes import (
    CALLING_MODES,
    CALLING_MODES_FILE,
    apply_calling_mode,
    get_default_calling_mode,
    load_calling_modes,
    save_calling_mode,
)
from opposable.models.capability_probe import (
    ProbeResult,
    calls_match,
    load_probe_questions,
    load_probe_tools,
    probe_model,
)
from opposable.models.factory import create_model
from opposable.models.marker_calls import MarkerCallsModel
from opposable.models.python_protocol.model import PythonProtocolModel
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.models.text_protocol import TextProtocolModel
from opposable.settings import Settings
from opposable.tools.json_schema_validation import compile_validator

pytestmark = pytest.mark.anyio


def first_alternatives(value):
    if isinstance(value, dict):
        return {name: first_alternatives(inner) for name, inner in value.items()}
    return value[0] if isinstance(value, list) else value


def build_right_reply(question):
    calls = [
        tool_call(name, orjson.dumps(first_alternatives(arguments)).decode(), f"c{number}")
        for number, (name, arguments) in enumerate(question.expected_calls)
    ]
    return reply_with_calls(*reversed(calls)) if calls else "Gladly."


async def collect_results(model):
    return [mark async for mark in probe_model(model, load_probe_questions())]


async def test_right_answers_pass_and_wrong_ones_fail():
    questions = load_probe_questions()
    assert all(mark.passed for mark in await collect_results(ScriptedModel(*map(build_right_reply, questions))))
    assert [mark.passed for mark in await collect_results(ScriptedModel("I cannot do that."))] == [
        q.expected_calls == () for q in questions
    ]
    assert not any(mark.passed for mark in await collect_results(ScriptedModel("")))
    always = await collect_results(ScriptedModel(reply_with_calls(tool_call("get_weather", '{"city": "Oslo"}'))))
    assert [mark.passed for mark in always] == [True, *[False] * (len(questions) - 1)]


def test_questions_are_many_varied_and_answerable():
    questions, library = load_probe_questions(), {tool.name: tool for tool in load_probe_tools()}
    assert len({question.prompt for question in questions}) == len(questions) >= MIN_QUESTIONS_TO_RECOMMEND
    assert {question.capability for question in questions[:6]} == {question.capability for question in questions}
    assert sum(not question.prompt.isascii() for question in questions) >= 6
    assert {len(question.expected_calls) for question in questions} == {0, 1, 2}
    for question in questions:
        for name, arguments in question.expected_calls:
            compile_validator(library[name].parameters)(first_alternatives(arguments))


async def test_a_model_that_cannot_be_asked_fails_with_its_reason():
    [first, *_] = await collect_results(ScriptedModel(ModelUnavailable("no such thing")))
    assert (first.passed, first.actual) == (False, "no such thing")


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
    assert calls_match(load_probe_questions()[0].expected_calls, given) is right


@pytest.mark.parametrize("way", CALLING_MODES)
async def test_every_way_asks_the_inner_model(way):
    inner = ScriptedModel("Hello.")
    [*_, reply] = [
        part async for part in apply_calling_mode(way, inner).stream((user_message("hi"),), load_probe_tools())
    ]
    assert reply.message.content == "Hello."
    request = inner.requests[0]
    assert bool(request.tools) == (way in ("native", "auto", "text", "rescue"))
    assert (request.options.response_schema is not None) == (way == "constrained")


async def test_a_native_call_is_trusted_or_not():
    native = ScriptedModel(reply_with_calls(tool_call("set_timer", '{"minutes": 5}')))
    for way, count in (("native", 1), ("rescue", 0)):
        [*_, reply] = [
            part async for part in apply_calling_mode(way, native).stream((user_message("hi"),), load_probe_tools())
        ]
        assert len(reply.message.tool_calls) == count


def test_the_best_way_is_remembered_by_the_models_name(tmp_path):
    assert load_calling_modes(tmp_path) == {}
    save_calling_mode(tmp_path, "http://127.0.0.1:1/v1#a", "constrained")
    save_calling_mode(tmp_path, "http://127.0.0.1:1/v1#b", "python")
    save_calling_mode(tmp_path, "http://127.0.0.1:1/v1#a", "prompted")
    assert load_calling_modes(tmp_path) == {"http://127.0.0.1:1/v1#a": "prompted", "http://127.0.0.1:1/v1#b": "python"}
    made = create_model("http://127.0.0.1:1/v1#a", models_directory=tmp_path)
    assert isinstance(made, TextProtocolModel)
    assert made.tool_rendering == "protocol"
    assert isinstance(create_model("http://127.0.0.1:1/v1#b", models_directory=tmp_path), PythonProtocolModel)
    assert isinstance(create_model("http://127.0.0.1:1/v1#c", models_directory=tmp_path), MarkerCallsModel)
    assert isinstance(
        create_model("http://127.0.0.1:1/v1#a", models_directory=tmp_path, calling_mode="python"), PythonProtocolModel
    )


@pytest.mark.parametrize("content", ["", "[]", "nonsense", '{"x": "unheard of"}', "\xff"])
def test_what_cannot_be_read_is_not_remembered(tmp_path, content):
    (tmp_path / CALLING_MODES_FILE).write_text(content, encoding="latin-1")
    assert load_calling_modes(tmp_path) == {}


def test_each_kind_has_a_way_it_is_known_for():
    assert [get_default_calling_mode(name) for name in ("local", "local:/x.gguf", "openai:gpt-5", "http://h/v1#m")] == [
        "python",
        "prompted",
        "native",
        "auto",
    ]


async def test_a_check_tries_every_way_and_saves_nothing_by_itself(tmp_path):
    native = [build_completion("hello")]
    wrong = [build_completion("no idea")] * 36
    fine = [
        build_completion(f'{{"name": "{n}", "arguments": {a}}}')
        for n, a in (("get_weather", '{"city": "Oslo"}'), ("set_timer", '{"minutes": 25}'))
    ]
    async with chat_server(*native, *wrong, *fine, *wrong[2:]) as server:
        name = f"{server.url}#m"
        marks = await check_model(Settings(home=tmp_path), name, ("native", "prompted"))
    assert [sum(mark.passed for mark in marks[way]) for way in ("native", "prompted")] == [7, 9]
    assert load_calling_modes(tmp_path / "models") == {}
    save_model_calling_mode(Settings(home=tmp_path), name, "prompted")
    assert load_calling_modes(tmp_path / "models") == {name: "prompted"}


def build_results(*passed):
    return [ProbeResult(load_probe_questions()[n], one, "", 0.1, 10) for n, one in enumerate(passed)]


@pytest.mark.parametrize(
    ("results", "best", "is_measured"),
    [
        ({"text": [True]}, "native", False),
        ({"text": [True] * 36}, "native", False),
        ({"native": [True] * 36}, "native", False),
        ({"native": [False] * 29, "text": [True] * 29}, "native", False),
        ({"native": [False] * 36, "text": [True] * 29}, "native", False),
        ({"native": [True] * 35 + [False], "text": [True] * 36}, "native", True),
        ({"native": [True] * 32 + [False] * 4, "text": [True] * 36}, "native", True),
        ({"native": [True] * 31 + [False] * 5, "text": [True] * 36}, "text", True),
        ({"native": [True] * 31 + [False] * 5, "text": [False] + [True] * 35}, "native", True),
        ({"native": [True] * 31 + [False] * 5, "text": [True] * 36, "rescue": [True] * 36}, "native", True),
        ({"native": [False] * 30, "text": [True] * 20 + [False] * 10, "rescue": [True] * 30}, "rescue", True),
    ],
)
def test_another_mode_is_recommended_only_if_it_is_clearly_better_after_enough_questions(results, best, is_measured):
    recommended = select_best_mode("openai:m", {mode: build_results(*passed) for mode, passed in results.items()})
    assert (recommended.mode, recommended.is_measured) == (best, is_measured)


def test_a_recommendation_has_its_reason():
    few, many = ({"native": build_results(*[False] * n), "text": build_results(*[True] * n)} for n in (1, 36))
    assert select_best_mode("openai:m", few).reason == (
        "the default; to recommend another mode needs 30 questions, in it and in the default mode"
    )
    assert select_best_mode("openai:m", many).reason == "against native, 36 questions won and 0 lost"


def test_the_sign_test_is_exact():
    assert [compute_sign_test(*counts) for counts in ((0, 0), (5, 0), (4, 1), (0, 1))] == [1.0, 1 / 32, 6 / 32, 1.0]


async def test_a_model_that_does_not_exist_is_reported_before_any_question(tmp_path):
    with pytest.raises(BadInput):
        await check_model(Settings(home=tmp_path), "nonsense")
