"""Follow-ups after a failed call."""

from contextlib import aclosing

import pytest

from opposable.agent.agent import run_agent
from opposable.agent.assistance.failed_call_follow_up import MAX_FOLLOW_UPS
from opposable.agent.assistance.guard_options import NO_GUARDS
from opposable.agent.failure_memory import FailureMemory
from opposable.domain.errors import ToolFailed, ToolUnavailable
from opposable.domain.events import DecisionMade
from opposable.domain.messages import user_message
from opposable.models.base import ForcedTool, ModelOptions
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio

ASKED = ModelOptions(stream=False)


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def close(ticket: str) -> str:
    """Close a ticket."""
    if ticket not in ("T-3", "T-18"):
        raise ToolFailed(f"There is no ticket {ticket!r}. The tickets are: T-3, T-18.")
    return f"{ticket} is closed."


async def collect_events(model, library, said="go", **more):
    async with aclosing(
        run_agent(model, library, [user_message(said)], options=ASKED, **{"assistance": True} | more)
    ) as events:
        return [event async for event in events]


def list_follow_ups(model) -> list[str]:
    """The notes in brackets at the end of the last results, which are the follow-ups."""
    last = [request.messages[-1].content for request in model.requests[1:]]
    return [content.rpartition("\n\n[")[2][:-1] for content in last if content.endswith("]")]


async def test_a_model_that_gives_up_after_a_call_it_could_correct_is_asked_once_more():
    lines = (
        reply_with_calls(tool_call("add", '{"a": "one", "b": 2}')),
        "I cannot.",
        reply_with_calls(tool_call("add", '{"a": 1, "b": 2}')),
        "3.",
    )
    model = ScriptedModel(*lines)
    events = await collect_events(model, ToolLibrary([add]), "1 加 2？")
    assert (events[-1].text, events[-1].turns) == ("3.", 4)
    assert [message.role for message in model.requests[2].messages] == ["user", "assistant", "tool"]
    assert list_follow_ups(model)[0].startswith("add 没有成功")
    assert model.requests[2].options.tool_choice == "auto"
    assert [event.action for event in events if isinstance(event, DecisionMade)] == ["replan"]


async def test_it_is_asked_once_and_may_say_that_it_cannot_be_done():
    model = ScriptedModel(reply_with_calls(tool_call("ad", "{}")), "I cannot.", "It cannot be done.")
    end = (await collect_events(model, ToolLibrary([add])))[-1]
    assert (end.text, end.turns) == ("It cannot be done.", 3)
    model = ScriptedModel(reply_with_calls(tool_call("ad", "{}")), "I cannot.")
    end = (await collect_events(model, ToolLibrary([add]), assistance=NO_GUARDS))[-1]
    assert (end.text, end.turns) == ("I cannot.", 2)


@pytest.mark.parametrize("read_only", [True, False])
async def test_a_similar_value_is_suggested_and_only_asked_for_if_the_tool_reads(read_only):
    model = ScriptedModel(
        reply_with_calls(tool_call("close", '{"ticket": "18"}')),
        "There is none.",
        reply_with_calls(tool_call("close", '{"ticket": "T-18"}')),
        "ok",
    )
    await collect_events(model, ToolLibrary([FunctionTool(close, read_only=read_only)]))
    suggestion = '(Perhaps ticket="T-18" is meant. Correct the call and make it again.)'
    assert model.requests[1].messages[-1].content.endswith(suggestion)
    how = (
        'Now call close(ticket="T-18")'
        if read_only
        else "Make the call that its result says is right, or the one that is"
    )
    assert list_follow_ups(model)[0].startswith(f"close did not work, so the task is not done. {how}")
    choice = ForcedTool("close") if read_only else "auto"
    assert [request.options.tool_choice for request in model.requests] == ["auto", "auto", choice, "auto"]


async def test_a_value_that_a_tool_returned_is_not_the_models_own_mistake():
    def oldest() -> str:
        """The oldest ticket."""
        return "Q-5"

    answer = "Q-5 is not known."
    model = ScriptedModel(
        reply_with_calls(tool_call("oldest")), reply_with_calls(tool_call("close", '{"ticket": "Q-5"}')), answer
    )
    end = (await collect_events(model, ToolLibrary([oldest, close])))[-1]
    assert (end.text, end.turns) == (answer, 3)


async def test_what_worked_before_is_what_is_asked_for():
    learning = FailureMemory().with_scope()
    right = (
        reply_with_calls(tool_call("close", '{"ticket": "77"}')),
        reply_with_calls(tool_call("close", '{"ticket": "T-3"}')),
        "ok",
    )
    library = ToolLibrary([FunctionTool(close, read_only=True)])
    await collect_events(ScriptedModel(*right), library, failure_memory=learning)
    model = ScriptedModel(reply_with_calls(tool_call("close", '{"ticket": "77"}')), "There is none.", "No.")
    await collect_events(model, library, failure_memory=learning)
    assert [wish.split(". ")[1] for wish in list_follow_ups(model)] == [
        'Now call close(ticket="T-3"); only if that cannot be, say why.'
    ]


async def test_a_failure_that_may_pass_is_asked_to_be_tried_again_as_it_is():
    looked: list[int] = []

    def look(at: str) -> str:
        """Look."""
        looked.append(1)
        if len(looked) < 3:
            raise ToolUnavailable("The server does not answer.")
        return "a page"

    again = reply_with_calls(tool_call("look", '{"at": "x"}'))
    model = ScriptedModel(again, "It is away.", again, "It is away.", again, "A page.")
    end = (await collect_events(model, ToolLibrary([look])))[-1]
    assert (end.text, len(looked)) == ("A page.", 3)
    assert model.requests[1].messages[-1].content.endswith("(This may pass. Make the call again.)")
    assert model.requests[2].options.tool_choice == ForcedTool("look")


@pytest.mark.parametrize("said", ["Close ticket 18", "关闭工单 18"])
async def test_a_similar_value_is_not_forced_in_place_of_what_the_user_said(said):
    question = 'There is no ticket 18. Did you mean "T-18"?'
    model = ScriptedModel(reply_with_calls(tool_call("close", '{"ticket": "18"}')), question)
    end = (await collect_events(model, ToolLibrary([close]), said))[-1]
    assert (end.text, end.tool_calls) == (question, 1)


async def test_a_call_whose_connection_broke_is_not_asked_for_again():
    def pay(amount: int) -> None:
        """Pay."""
        raise ConnectionResetError("reset by peer")

    model = ScriptedModel(reply_with_calls(tool_call("pay", '{"amount": 5}')), "I do not know whether it was paid.")
    end = (await collect_events(model, ToolLibrary([pay])))[-1]
    assert (end.turns, end.tool_calls) == (2, 1)
    assert "Make the call again" not in model.requests[1].messages[-1].content


async def test_what_the_user_said_is_not_corrected_by_force():
    model = ScriptedModel(reply_with_calls(tool_call("close", '{"ticket": "Q-5"}')), "There is no ticket Q-5.")
    end = (await collect_events(model, ToolLibrary([close]), "Close ticket q-5"))[-1]
    assert (end.text, end.turns) == ("There is no ticket Q-5.", 2)
    model = ScriptedModel(reply_with_calls(tool_call("close", '{"ticket": "Q-5"}')), "There is no ticket Q-5.", "No.")
    await collect_events(model, ToolLibrary([close]), "Close the oldest ticket")
    assert list_follow_ups(model)[0].startswith("close did not work")
    assert [request.options.tool_choice for request in model.requests] == ["auto"] * 3


async def test_a_part_of_what_the_user_said_is_the_models_own_value():
    model = ScriptedModel(reply_with_calls(tool_call("close", '{"ticket": "5"}')), "There is no ticket 5.", "No.")
    await collect_events(model, ToolLibrary([close]), "Close ticket Q-5")
    assert list_follow_ups(model)[0].startswith("close did not work")


async def test_a_call_that_may_have_taken_effect_is_not_asked_for_again():
    def pay(amount: int) -> str:
        """Pay."""
        raise TimeoutError("slow")

    model = ScriptedModel(reply_with_calls(tool_call("pay", '{"amount": 5}')), "It may have been paid.")
    end = (await collect_events(model, ToolLibrary([pay])))[-1]
    assert (end.text, end.turns) == ("It may have been paid.", 2)


async def test_it_is_not_asked_for_ever():
    model = ScriptedModel(
        reply_with_calls(tool_call("close", '{"ticket": "18"}')),
        *["No.", reply_with_calls(tool_call("close", '{"ticket": "3"}'))] * 9,
        "No.",
    )
    events = await collect_events(model, ToolLibrary([close]))
    assert (
        len([event for event in events if isinstance(event, DecisionMade) and "did not work" in event.reason])
        <= MAX_FOLLOW_UPS
    )
