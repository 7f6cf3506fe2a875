"""Calls that repeat without effect."""

import asyncio
from typing import Any

import pytest
from pydantic import StrictBool, StrictInt

from opposable.agent.agent import Agent
from opposable.agent.failure_memory import FailureMemory
from opposable.agent.limits import Limits
from opposable.agent.loop_detection import LoopDetection
from opposable.agent.policy import Step
from opposable.agent.tool_execution import ResolvedCall
from opposable.domain.content import ImagePart
from opposable.domain.errors import ToolFailed, ToolRefused
from opposable.domain.tools import ToolCall, ToolResult
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call

pytestmark = pytest.mark.anyio


async def run_polling(results, limits, **options):
    """Poll once for each result, and return the results of the calls that were made."""
    pending = list(results)

    def poll() -> str:
        """Poll."""
        return pending.pop(0)

    calls = [reply_with_calls(tool_call("poll", "{}", f"c{n}")) for n in range(len(results))]
    finished = await Agent(ScriptedModel(*calls, "done"), [poll], limits=limits, **options).run("go")
    contents = [message.content for message in finished.messages if message.role == "tool"]
    return contents[: len(results) - len(pending)]


async def test_the_default_limits_note_the_tenth_repeat_and_stop_at_the_thirtieth():
    contents = await run_polling(["same"] * 40, Limits(turns=60, tool_calls=60))
    assert len(contents) == 30
    assert [content == "same" for content in contents] == [True] * 9 + [False] * 21
    assert "[Note: this call has had this same result 10 times in a row.]" in contents[9]


@pytest.mark.parametrize(
    "options", [{}, {"after_untrusted": "refuse"}, {"failure_memory": FailureMemory().with_scope()}]
)
async def test_an_agent_sets_its_own_numbers(options):
    contents = await run_polling(["same"] * 9, Limits(noted_repeats=2, repeats=4), **options)
    assert ["[Note" in content for content in contents] == [False, True, True, True]


async def test_none_is_no_limit():
    limits = Limits(turns=60, tool_calls=60, noted_repeats=None, repeats=None)
    assert await run_polling(["same"] * 40, limits) == ["same"] * 40


async def test_changed_results_restart_the_count():
    limits = Limits(turns=60, tool_calls=60, noted_repeats=3, repeats=5)
    results = ["a", "a", "b"] * 5
    assert await run_polling(results, limits) == results


@pytest.mark.parametrize(("wrong", "right"), [('{"on": 1}', '{"on": true}'), ('{"count": true}', '{"count": 1}')])
async def test_a_corrected_type_is_another_call(wrong, right):
    received = []

    def switch(on: StrictBool = False, count: StrictInt = 0) -> str:
        """Switch."""
        received.append((on, count))
        return "switched"

    calls = [reply_with_calls(tool_call("switch", text, f"c{n}")) for n, text in enumerate([wrong, right])]
    await Agent(ScriptedModel(*calls, "done"), [switch]).run("go")
    assert len(received) == 1


async def test_changed_images_restart_the_count():
    images = [ImagePart(data=bytes([n]), media_type="image/png") for n in range(4)]
    pending = list(images)

    def look() -> list:
        """Take a screenshot."""
        return ["the screen", pending.pop(0)]

    calls = [reply_with_calls(tool_call("look", "{}", f"c{n}")) for n in range(4)]
    limits = Limits(noted_repeats=2, repeats=3)
    finished = await Agent(ScriptedModel(*calls, "done"), [look], limits=limits).run("go")
    contents = [message.content for message in finished.messages if message.role == "tool"]
    assert contents == ["the screen\n[image image/png, 1 bytes]"] * 4


@pytest.mark.parametrize("depth", [900, 990, 1010, 1100])
async def test_repeated_calls_may_be_nested_as_deeply_as_json_allows(depth):
    def fail(value: Any) -> str:
        raise ToolFailed("No.")

    calls = [tool_call("fail", f'{{"value": {"[" * depth}{"]" * depth}{space}}}') for space in ("", "", " ")]
    finished = await Agent(ScriptedModel(*map(reply_with_calls, calls), "Done."), [fail]).run("Start.")
    assert finished.text == "Done."


def build_step(name, failure, content, attempts=1):
    call = ToolCall(f"c_{content}", name, {"id": 7})
    return Step(1, call, ToolResult(call.id, name, content, failure, attempts=attempts))


def screen_order(*steps):
    """Return the failure that loop detection gives to the call `order(id=7)` after these steps; None if it runs."""
    resolved = ResolvedCall(ToolCall("next", "order", {"id": 7}), {"id": 7})
    return LoopDetection().screen(resolved, steps).failure


def test_a_refusal_of_a_repeat_quotes_the_call_that_ran():
    steps = [build_step("order", "refused", "There is no order 7.")]
    for _ in range(3):
        refusal = screen_order(*steps)
        assert refusal.content.count("Not run") == 1
        assert "There is no order 7." in refusal.content
        steps.append(Step(1, ToolCall("again", "order", {"id": 7}), refusal))


def test_a_tool_out_of_service_uses_up_no_retry():
    steps = [build_step("order", "unavailable", "down"), *[build_step("order", "unavailable", "wait", 0)] * 6]
    assert screen_order(*steps) is None
    assert screen_order(*steps, *[build_step("order", "unavailable", "down")] * 3) is not None


def test_a_refusal_of_a_retry_quotes_the_same_call():
    steps = [*[build_step("order", "timeout", "too slow")] * 4, build_step("pay", "failed", "no money")]
    assert "too slow" in screen_order(*steps).content
    assert "no money" not in screen_order(*steps).content


def test_a_call_that_a_person_denied_is_not_asked_for_again():
    assert "no, thanks" in screen_order(build_step("order", "denied", "no, thanks", 0)).content


async def test_a_refused_call_may_be_made_again_after_another_call_of_its_reply():
    files = set()

    async def create() -> str:
        """Create the file."""
        await asyncio.sleep(0.01)
        files.add("a")
        return "created"

    def read() -> str:
        """Read the file."""
        if not files:
            raise ToolRefused("there is no file")
        return "text"

    both = reply_with_calls(tool_call("create", "{}", "c1"), tool_call("read", "{}", "c2"))
    again = reply_with_calls(tool_call("read", "{}", "c3"))
    finished = await Agent(ScriptedModel(both, again, "done"), [create, read]).run("go")
    assert [m.content for m in finished.messages if m.role == "tool"] == ["created", "there is no file", "text"]


async def test_a_refused_repeat_is_not_stored_as_a_failure():
    def fail() -> str:
        """Fail."""
        raise ToolRefused("no")

    memory = FailureMemory()
    calls = [reply_with_calls(tool_call("fail", "{}", f"c{n}")) for n in range(3)]
    agent = Agent(ScriptedModel(*calls, "done"), [fail], failure_memory=memory.with_scope())
    await agent.run("go")
    patterns = await memory.get_patterns(agent.library, "")
    assert [(one.kind, one.count) for one in patterns.get_failures("fail")] == [("refused", 1)]
