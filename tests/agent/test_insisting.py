"""A model that gives up where a corrected call may do is asked once more."""

import pytest

from opposable.agent.guarding import UNGUARDED
from opposable.agent.loop import run
from opposable.domain.events import Decided
from opposable.domain.messages import user
from opposable.models.scripted import ScriptedModel, call, calls
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio


async def test_a_model_that_gives_up_after_a_call_it_could_correct_is_asked_once_more():
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    lines = (calls(call("add", '{"a": "one", "b": 2}')), "I cannot.", calls(call("add", '{"a": 1, "b": 2}')), "3.")
    model = ScriptedModel(*lines)
    events = [event async for event in run(model, ToolLibrary([add]), [user("1 加 2？")])]
    assert (events[-1].text, events[-1].turns) == ("3.", 4)
    assert model.requests[2].messages[-1].content.startswith("上一次调用没有成功")
    assert [event.action for event in events if isinstance(event, Decided)] == ["replan"]


async def test_it_is_asked_once_and_may_say_that_it_cannot_be_done():
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    model = ScriptedModel(calls(call("ad", "{}")), "I cannot.", "It cannot be done.")
    end = [event async for event in run(model, ToolLibrary([add]), [user("add")])][-1]
    assert (end.text, end.turns) == ("It cannot be done.", 3)
    model = ScriptedModel(calls(call("ad", "{}")), "I cannot.")
    end = [event async for event in run(model, ToolLibrary([add]), [user("add")], guarding=UNGUARDED)][-1]
    assert (end.text, end.turns) == ("I cannot.", 2)
