"""Calls of several tools, made one tool at a time."""

from contextlib import aclosing
from dataclasses import replace

import pytest

from opposable.agent.agent import run_agent
from opposable.agent.assistance.guard_options import ALL_GUARDS
from opposable.agent.assistance.ordered_calls import MAX_WAITS
from opposable.domain.errors import ToolFailed
from opposable.domain.messages import user_message
from opposable.domain.specs import FunctionToolSpec
from opposable.models.base import ModelOptions
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio

made: list[str] = []


@pytest.fixture(autouse=True)
def nothing_made():
    made.clear()


def find(name: str) -> str:
    """Find an order."""
    made.append(f"find {name}")
    if name == "Anne":
        raise ToolFailed("There is no customer 'Anne'. The customers are: Anna, Bob.")
    return "A-17"


def cancel(order: str) -> str:
    """Cancel an order."""
    made.append(f"cancel {order}")
    return "cancelled"


def report(state: str) -> str:
    """Report the state."""
    made.append(f"report {state}")
    if state == "running":
        raise ToolFailed("It is still running.")
    return "reported"


states: list[str] = []


def look() -> str:
    """Look at the state."""
    made.append("look")
    return states.pop(0)


def call_find(name: str = "Anna"):
    return tool_call("find", f'{{"name": "{name}"}}')


def call_cancel(order: str):
    return tool_call("cancel", f'{{"order": "{order}"}}')


async def run_scripted(model, *, is_polled=False, task="Cancel Anna's order.", **guards):
    library = ToolLibrary([find, cancel, report])
    spec = FunctionToolSpec(
        tool_id="look",
        description="Look at the state.",
        module_path=__name__,
        function_name="look",
        read_only=True,
        metadata={"polling": True} if is_polled else {},
    )
    library.register(spec, [FunctionTool(look)])
    events = run_agent(
        model,
        library,
        [user_message(task)],
        options=ModelOptions(stream=False),
        assistance=replace(ALL_GUARDS, **guards),
    )
    async with aclosing(events) as stream:
        return [event async for event in stream][-1]


def list_requests(model) -> list[tuple[object, list[str]]]:
    """The tool choice and the tools of each request."""
    return [(request.options.tool_choice, [tool.name for tool in request.tools]) for request in model.requests]


ALL = ["find", "cancel", "report", "look"]


async def test_a_call_of_another_tool_is_written_again_with_the_result_before_it():
    model = ScriptedModel(
        reply_with_calls(call_find(), call_cancel("unknown")), reply_with_calls(call_cancel("A-17")), "Done."
    )
    end = await run_scripted(model)
    assert (made, end.text) == (["find Anna", "cancel A-17"], "Done.")
    assert list_requests(model) == [("auto", ALL), ("auto", ["cancel"]), ("auto", ALL)]
    assert [len(message.tool_calls) for message in end.messages if message.role == "assistant"] == [1, 1, 0]


async def test_a_model_that_answers_in_place_of_a_planned_call_is_asked_once():
    plan = reply_with_calls(call_find(), call_cancel("unknown"))
    model = ScriptedModel(plan, "I found and cancelled it.", reply_with_calls(call_cancel("A-17")), "Done.")
    end = await run_scripted(model)
    assert (made, end.text) == (["find Anna", "cancel A-17"], "Done.")
    assert '[Not made yet: cancel(order="unknown").' in model.requests[2].messages[-1].content
    made.clear()
    end = await run_scripted(ScriptedModel(plan, "It was shipped already."))
    assert (made, end.text, end.turns) == (["find Anna"], "It was shipped already.", 3)


async def test_a_planned_call_that_changes_something_is_not_made_against_the_models_answer():
    plan = reply_with_calls(call_find(), call_cancel("A-17"))
    end = await run_scripted(ScriptedModel(plan, "It is paid, so I kept it."))
    assert (made, end.text, end.turns) == (["find Anna"], "It is paid, so I kept it.", 3)


async def test_planned_calls_in_another_order_are_each_made_once():
    plan = reply_with_calls(call_find("A-1"), call_cancel("A-1"), call_cancel("A-2"))
    model = ScriptedModel(plan, reply_with_calls(call_cancel("A-2"), call_cancel("A-1")), "Done.")
    await run_scripted(model, task="Cancel A-1 and A-2.")
    assert (made[0], sorted(made[1:])) == ("find A-1", ["cancel A-1", "cancel A-2"])


async def test_of_planned_calls_only_those_that_the_model_still_wants_are_made():
    plan = reply_with_calls(call_find(), call_cancel("A-1"), call_cancel("A-2"))
    model = ScriptedModel(plan, reply_with_calls(call_cancel("A-2")), "A-1 was shipped already.")
    await run_scripted(model, task="Cancel A-1 and A-2.")
    assert made == ["find Anna", "cancel A-2"]


async def test_a_code_of_the_user_is_not_replaced_by_another_one():
    plan = reply_with_calls(call_find(), call_cancel("A-1"))
    model = ScriptedModel(plan, reply_with_calls(call_cancel("A-2")), "A-1 was shipped already.")
    await run_scripted(model, task="Cancel A-1, or A-2 if it was shipped.")
    assert made == ["find Anna", "cancel A-2"]


async def test_a_call_that_was_made_before_its_turn_is_not_named_as_missing():
    send_report = tool_call("report", '{"state": "failed"}')
    plan = reply_with_calls(call_find("Anne"), call_cancel("unknown"), send_report)
    model = ScriptedModel(plan, reply_with_calls(send_report), "There is no Anne.")
    end = await run_scripted(
        model, task="Cancel Anne's order and report the state.", suggestions=False, follow_ups=False
    )
    assert (made, end.text) == (["find Anne", "report failed"], "There is no Anne.")
    note = '[Not made yet: cancel(order="unknown"). Make'
    assert note in model.requests[-1].messages[-1].content


async def test_only_a_planned_call_that_reads_is_forced():
    states[:] = ["done"]
    look_last = reply_with_calls(call_find(), tool_call("look", "{}"))
    model = ScriptedModel(look_last, reply_with_calls(tool_call("look", "{}")), "Done.")
    await run_scripted(model)
    assert made == ["find Anna", "look"]
    assert list_requests(model)[1] == ("required", ["look"])


async def test_without_the_rule_the_calls_are_made_as_written():
    model = ScriptedModel(reply_with_calls(call_find(), call_cancel("unknown")), "Done.")
    await run_scripted(model, ordered_calls=False)
    assert sorted(made) == ["cancel unknown", "find Anna"]


async def test_calls_of_one_tool_are_made_together():
    model = ScriptedModel(reply_with_calls(call_cancel("A-17"), call_cancel("A-18")), "Done.")
    await run_scripted(model)
    assert made == ["cancel A-17", "cancel A-18"]
    assert len(model.requests) == 2


async def test_no_more_calls_are_made_than_were_planned():
    model = ScriptedModel(
        reply_with_calls(call_find(), call_cancel("x")),
        reply_with_calls(call_cancel("A-17"), call_cancel("A-18")),
        "Done.",
    )
    await run_scripted(model)
    assert made == ["find Anna", "cancel A-17"]


@pytest.mark.parametrize(
    ("planned", "written", "done"),
    [("A-18", "A-17", "A-18"), ("the order", "A-17", "A-17"), ("A-18", "2026/A-18", "2026/A-18")],
)
async def test_a_code_that_the_user_said_is_not_replaced(planned, written, done):
    model = ScriptedModel(
        reply_with_calls(call_find(), call_cancel(planned)), reply_with_calls(call_cancel(written)), "Done."
    )
    await run_scripted(model, task="Find Anna, and cancel the order A-18.")
    assert made == ["find Anna", f"cancel {done}"]


async def test_a_code_that_was_looked_up_may_be_replaced_by_what_was_found():
    plan = reply_with_calls(call_find("A-18"), call_cancel("A-18"))
    await run_scripted(
        ScriptedModel(plan, reply_with_calls(call_cancel("A-17")), "Done."), task="Cancel what A-18 became."
    )
    assert made == ["find A-18", "cancel A-17"]


async def test_a_plan_waits_until_the_failed_call_is_corrected():
    model = ScriptedModel(
        reply_with_calls(call_find("Anne"), call_cancel("unknown")),
        reply_with_calls(call_find()),
        reply_with_calls(call_cancel("A-17")),
        "Done.",
    )
    await run_scripted(model)
    assert made == ["find Anne", "find Anna", "cancel A-17"]
    assert [choice for choice, _ in list_requests(model)] == ["auto", "auto", "auto", "auto"]


async def test_a_model_that_makes_the_planned_call_itself_is_not_asked_for_it_again():
    model = ScriptedModel(
        reply_with_calls(call_find("Anne"), call_cancel("unknown")), reply_with_calls(call_cancel("A-17")), "Done."
    )
    await run_scripted(model)
    assert made == ["find Anne", "cancel A-17"]
    assert [choice for choice, _ in list_requests(model)] == ["auto", "auto", "auto"]


@pytest.mark.parametrize("is_polled", [True, False])
async def test_a_polled_tool_is_offered_with_the_planned_one(is_polled):
    states[:] = ["running", "running", "done"]
    call_look = tool_call("look", "{}")
    model = ScriptedModel(
        reply_with_calls(call_look, tool_call("report", '{"state": "unknown"}')),
        *[reply_with_calls(call_look)] * (2 if is_polled else 0),
        reply_with_calls(tool_call("report", '{"state": "done"}')),
        "Done.",
    )
    await run_scripted(model, is_polled=is_polled)
    assert made == ["look"] * (3 if is_polled else 1) + ["report done"]
    assert list_requests(model)[1] == ("auto", ["report", "look"] if is_polled else ["report"])


@pytest.mark.parametrize("is_polled", [True, False])
@pytest.mark.parametrize("is_planned", [True, False])
async def test_a_call_that_comes_too_early_waits_for_the_polled_tool(is_polled, is_planned):
    states[:] = ["running", "done"]
    call_look, call_report = tool_call("look", "{}"), tool_call("report", '{"state": "running"}')
    model = ScriptedModel(
        reply_with_calls(*[call_look, call_report][: 1 + is_planned]),
        reply_with_calls(call_report),
        *[reply_with_calls(call_look), reply_with_calls(tool_call("report", '{"state": "done"}'))] * is_polled,
        "Done.",
    )
    await run_scripted(model, is_polled=is_polled, follow_ups=False)
    assert made == ["look", "report running", *["look", "report done"] * is_polled]
    assert list_requests(model)[2] == ("auto", ["report", "look"] if is_polled else ALL)


async def test_a_call_that_fails_again_without_a_poll_ends_the_wait():
    states[:] = ["running"]
    call_report = reply_with_calls(tool_call("report", '{"state": "running"}'))
    model = ScriptedModel(
        reply_with_calls(tool_call("look", "{}"), tool_call("report", '{"state": "running"}')),
        *[call_report] * 2,
        "It is still running.",
    )
    end = await run_scripted(model, is_polled=True, follow_ups=False)
    assert end.text == "It is still running."
    assert [names for _, names in list_requests(model)] == [ALL, ["report", "look"], ["report", "look"], ALL]


async def test_a_call_that_always_fails_ends_the_wait():
    states[:] = ["running"] * (MAX_WAITS + 1)
    turns = [
        reply_with_calls(tool_call("look", "{}")),
        reply_with_calls(tool_call("report", '{"state": "running"}')),
    ] * (MAX_WAITS + 1)
    model = ScriptedModel(*turns, "It is still running.")
    end = await run_scripted(model, is_polled=True, follow_ups=False, replanning=False)
    assert (end.text, list_requests(model)[-1][0]) == ("It is still running.", "auto")
