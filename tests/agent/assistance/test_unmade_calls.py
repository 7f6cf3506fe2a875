"""Replies that are empty or only name a tool."""

from contextlib import aclosing
from types import SimpleNamespace

import pytest
from tests.parsers.linear_time import assert_linear

from opposable.agent.agent import run_agent
from opposable.agent.assistance.unmade_calls import UnmadeCalls
from opposable.domain.messages import assistant_message, system_message, user_message
from opposable.models.base import ModelOptions
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio

CALL = reply_with_calls(tool_call("get_stock", '{"item": "bolt"}'))
NOTE = "[Your reply made no call. If one is needed,"


def get_stock(item: str) -> int:
    """How many pieces are in stock."""
    return 4711


async def run_scripted(model, *before, assistance=True, said="How many bolts?"):
    events = run_agent(
        model,
        ToolLibrary([get_stock]),
        [*before, user_message(said)],
        options=ModelOptions(stream=False),
        assistance=assistance,
    )
    async with aclosing(events) as stream:
        return [event async for event in stream][-1]


@pytest.mark.parametrize(
    "reply",
    ["", "I will use get_stock for that.", '{"tool": {"get_stock": "bolt"}}', "<get_stock>bolt</get_stock>"],
)
@pytest.mark.parametrize("before", [(), (system_message("Be brief."),)])
async def test_a_model_that_makes_no_call_is_asked_once_in_the_system_message(reply, before):
    model = ScriptedModel(reply, CALL, "4711.")
    end = await run_scripted(model, *before)
    assert (end.text, end.tool_calls) == ("4711.", 1)
    first, second, last = ([message.content for message in request.messages] for request in model.requests)
    assert first == [*(message.content for message in before), "How many bolts?"]
    assert second[0].partition(NOTE)[0] == ("Be brief.\n\n" if before else "")
    assert second[1:] == ["How many bolts?"]
    assert not any(NOTE in content for content in last)


async def test_an_empty_reply_is_asked_about_once_in_all():
    model = ScriptedModel("")
    assert (await run_scripted(model)).reason == "no_answer"
    assert len(model.requests) == 2


async def test_after_a_result_the_note_is_in_it():
    model = ScriptedModel(CALL, "", "4711.")
    assert (await run_scripted(model)).text == "4711."
    assert NOTE in model.requests[2].messages[-1].content
    assert model.requests[2].messages[-1].role == "tool"


async def test_the_model_may_send_its_answer_again():
    model = ScriptedModel("get_stock tells how many pieces there are.")
    end = await run_scripted(model, said="What can you do?")
    assert (end.text, end.turns) == ("get_stock tells how many pieces there are.", 2)


async def test_the_note_is_in_the_language_of_the_user():
    model = ScriptedModel("", CALL, "4711。")
    await run_scripted(model, said="有多少螺栓？")
    assert "上一条回复没有调用工具" in model.requests[1].messages[0].content


@pytest.mark.parametrize("reply", ["The stock is unknown.", "Which item?", '{"a": 1}', "[]", "null"])
async def test_another_answer_is_taken(reply):
    assert (await run_scripted(ScriptedModel(reply))).turns == 1


async def test_without_assistance_nothing_is_added():
    model = ScriptedModel("I will use get_stock.")
    assert (await run_scripted(model, assistance=False)).turns == 1


def test_an_answer_of_one_endless_word_takes_linear_time():
    rule = UnmadeCalls(SimpleNamespace(library=SimpleNamespace(names=["get_stock"])))
    assert_linear(lambda size: rule.before_answer(assistant_message("a" * size), []), 2_000)
