"""Guards of a run: blocked calls, notes, adjusted arguments and decisions."""

from contextlib import aclosing
from dataclasses import replace

import orjson
import pytest

from opposable.agent.agent import Agent, run_agent
from opposable.agent.assistance.guard_options import ALL_GUARDS, NO_GUARDS
from opposable.agent.failure_memory import FailureMemory
from opposable.agent.limits import Limits
from opposable.domain.call_context import CallContext
from opposable.domain.errors import ModelUnavailable, ToolFailed, ToolRefused, ToolUnavailable
from opposable.domain.events import DecisionMade, RunFinished, RunStarted, ToolFinished
from opposable.domain.messages import user_message
from opposable.domain.specs import FunctionToolSpec
from opposable.models.base import ModelOptions
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.models.text_protocol import TextProtocolModel
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio

made: list[str] = []


@pytest.fixture(autouse=True)
def nothing_made():
    made.clear()


def click(selector: str) -> str:
    """Click an element."""
    made.append(selector)
    if selector != "a.social-link":
        raise ToolFailed(f"Selector {selector!r} not found. There is: a.social-link.")
    return "clicked"


def look() -> str:
    """Look at the page."""
    made.append("look")
    return "a page"


def other_click(selector: str) -> str:
    """Click an element of a page in another way."""
    return "clicked otherwise"


def away(q: str = "") -> str:
    """Ask a server."""
    made.append(q)
    raise ToolUnavailable("The server does not answer.")


def call_click(selector: str, n: int = 0):
    return reply_with_calls(tool_call("click", orjson.dumps({"selector": selector}).decode(), f"c{n}"))


async def collect_events(model, tools=(click, look), said="click it", **more):
    library = tools if isinstance(tools, ToolLibrary) else ToolLibrary(tools)
    options = ModelOptions(stream=False)
    async with aclosing(
        run_agent(model, library, (user_message(said),), options=options, **{"assistance": True} | more)
    ) as events:
        return [event async for event in events]


def list_endings(events) -> list[tuple[str | None, str]]:
    """The failure of each call, and the result as the model got it."""
    failures = [event.result.failure for event in events if type(event) is ToolFinished]
    contents = [message.content for message in events[-1].messages if message.role == "tool"]
    return list(zip(failures, contents, strict=True))


def decisions(events) -> list[str]:
    return [event.action for event in events if type(event) is DecisionMade]


async def test_the_same_failing_call_is_not_made_twice_and_the_refusal_says_what_would_be_right():
    events = await collect_events(
        ScriptedModel(call_click("a.x", 1), call_click("a.x", 2), call_click("a.social-link", 3), "done")
    )
    assert made == ["a.x", "a.social-link"]
    (first, said), (second, text), (third, _) = list_endings(events)
    assert (first, second, third) == ("failed", "refused", None)
    assert text.startswith("Not run: this very call of click has failed in this task")
    assert said in text


async def test_unchanged_definitions_are_passed_on_themselves():
    model = ScriptedModel("Yes.", "Yes.")
    library = ToolLibrary([click, look])
    async with Agent(model, library, assistance=ALL_GUARDS) as agent:
        await agent.run("Ready?")
        await agent.run("Ready?")
    assert model.requests[0].tools is model.requests[1].tools


async def test_a_refusal_is_in_the_language_of_the_run():
    events = await collect_events(ScriptedModel(call_click("a.x", 1), call_click("a.x", 2), "好"), said="请点击关注数")
    assert list_endings(events)[1][1].startswith("没有执行：对 click 的这一调用在本次任务中已经失败过")


async def test_calls_written_as_text_are_guarded_alike():
    def text(selector):
        return f'<tool_call>{{"name": "click", "arguments": {{"selector": "{selector}"}}}}</tool_call>'

    native = await collect_events(ScriptedModel(call_click("a.x", 1), call_click("a.x", 2), "done"))
    written = await collect_events(TextProtocolModel(ScriptedModel(text("a.x"), text("a.x"), "done")))
    assert list_endings(written) == list_endings(native)


async def test_a_failing_call_is_made_once_more_when_something_changed_and_then_no_more():
    model = ScriptedModel(
        call_click("a.x", 1),
        call_click("a.social-link", 2),
        call_click("a.x", 3),
        reply_with_calls(tool_call("look")),
        call_click("a.x", 4),
        "done",
    )
    events = await collect_events(model)
    assert made == ["a.x", "a.social-link", "a.x", "look"]
    assert [failure for failure, _ in list_endings(events)] == ["failed", None, "failed", None, "refused"]
    assert "failed 2 times in the same way" in list_endings(events)[2][1]
    assert list_endings(events)[2][1].startswith("Selector 'a.x' not found")


async def test_the_same_call_written_otherwise_is_the_same_call():
    def find(q: str, most: int = 10) -> str:
        """Find something."""
        made.append(q)
        raise ToolFailed("nothing like it")

    ways = ['{"q":"x","most":5}', '{"most":5,"q":"x"}', '"{\\"q\\":\\"x\\",\\"most\\":5}"']
    named = ["find", "functions.find", "Find"]
    asked = [
        reply_with_calls(tool_call(name, way, f"c{n}")) for n, (name, way) in enumerate(zip(named, ways, strict=True))
    ]
    events = await collect_events(ScriptedModel(*asked, "done"), [find])
    assert made == ["x"]
    assert [failure for failure, _ in list_endings(events)] == ["failed", "refused", "refused"]


async def test_an_unknown_tool_is_reported_once_whatever_its_arguments():
    asked = [reply_with_calls(tool_call("klick", f'{{"selector":"a.{n}"}}', f"c{n}")) for n in range(3)]
    events = await collect_events(ScriptedModel(*asked, "done"))
    assert [failure for failure, _ in list_endings(events)] == ["unknown_tool", "refused", "refused"]
    assert "click" in list_endings(events)[2][1]


async def test_the_plan_is_what_the_model_said_with_its_calls_and_another_one_after_replanning():
    def said(text, selector):
        return replace(call_click(selector, text), content=text)

    script = [said("", "a.1"), said("First the link.", "a.2"), said("Now by hand.", "a.3"), said("Then?", "a.4")]
    model = ScriptedModel(*script, call_click("a.5" * 200, 5), call_click("a.6" * 200, 6), "done")
    await collect_events(model, [click], limits=Limits(context=800))
    assert any("Plan: Now by hand." in request.messages[-1].content for request in model.requests[5:])


async def test_reading_changes_nothing():
    library = ToolLibrary([click, FunctionTool(look, read_only=True)])
    events = await collect_events(
        ScriptedModel(call_click("a.x", 1), reply_with_calls(tool_call("look")), call_click("a.x", 2), "done"), library
    )
    assert made == ["a.x", "look"]
    assert list_endings(events)[2][0] == "refused"


async def test_a_server_that_is_away_is_asked_three_times():
    asked = [reply_with_calls(tool_call("away", '{"q": "a"}', f"c{n}")) for n in range(5)]
    events = await collect_events(ScriptedModel(*asked, "done"), ToolLibrary([away], circuit_breaker=None))
    assert made == ["a"] * 3
    assert [failure for failure, _ in list_endings(events)] == ["unavailable"] * 3 + ["refused"] * 2


async def test_an_unchanged_result_is_warned_about_then_blocked_with_the_result():
    events = await collect_events(
        ScriptedModel(*[reply_with_calls(tool_call("look", "{}", f"c{n}")) for n in range(8)], "done"),
        [FunctionTool(look, read_only=True)],
    )
    assert made == ["look"] * 5
    found = list_endings(events)
    assert [text for _, text in found[:2]] == ["a page"] * 2
    assert found[2][1].startswith("a page\n\n(The same call of look has now brought this same result 3 times")
    assert found[5][0] == "refused"
    assert found[5][1].endswith("The result:\na page")


async def test_a_cycle_of_two_calls_that_brings_nothing_new_is_refused_too():
    circle = [
        reply_with_calls(tool_call("look", "{}", "a")),
        reply_with_calls(tool_call("other_click", '{"selector": "b"}', "b")),
    ] * 8
    events = await collect_events(ScriptedModel(*circle, "done"), [FunctionTool(look, read_only=True), other_click])
    assert made == ["look"] * 3
    assert "brought this same result 3 times" in list_endings(events)[4][1]
    assert list_endings(events)[6][0] == "refused"


async def test_polling_is_not_a_loop():
    def status(job: str) -> str:
        """The status of a job."""
        return "42 %"

    library = ToolLibrary([FunctionTool(status, metadata={"polling": True})])
    asked = [reply_with_calls(tool_call("status", '{"job": "a"}', f"c{n}")) for n in range(15)]
    events = await collect_events(ScriptedModel(*asked, "done"), library)
    note = "\n\n[Note: this call has had this same result {} times in a row.]"
    assert list_endings(events) == [(None, "42 %" + note.format(n) * (n > 9)) for n in range(1, 16)]


async def test_a_failed_call_is_made_again_when_a_polled_tool_returns_something_new():
    statuses = iter(["running", "running", "done"])

    def status() -> str:
        """The status of the job."""
        made.append(next(statuses))
        return made[-1]

    def publish() -> str:
        """Publish the job."""
        made.append("publish")
        if "done" not in made:
            raise ToolFailed("The job is not done.")
        return "published"

    library = ToolLibrary([publish, FunctionTool(status, read_only=True, metadata={"polling": True})])
    names = ["publish", "status", "publish", "status", "publish", "status", "publish"]
    asked = [reply_with_calls(tool_call(name, "{}", f"c{n}")) for n, name in enumerate(names)]
    events = await collect_events(ScriptedModel(*asked, "done"), library)
    assert made == ["publish", "running", "publish", "running", "done", "publish"]
    assert [failure for failure, _ in list_endings(events)] == ["failed", None, "failed", None, "refused", None, None]


async def test_the_status_note_is_in_the_last_message_and_not_in_the_history():
    model = ScriptedModel(call_click("a.x", 1), call_click("a.y", 2), call_click("a.social-link", 3), "done")
    events = await collect_events(model)
    last = model.requests[2].messages[-1].content
    assert last.splitlines()[2:] == [
        "[State of this task: 2 calls, 0 worked, 2 failed.]",
        "The last 2 steps all failed. Say in a sentence why, then go about it in another way; if there is none, say so in your answer.",
        "Failed; do not repeat as they were:",
        '- click{"selector":"a.y"}: Selector \'a.y\' not found. There is: a.social-link.',
        '- click{"selector":"a.x"}: Selector \'a.x\' not found. There is: a.social-link.',
    ]
    assert "State of this task" not in str(model.requests[1]) + str(model.requests[3]) + str(events[-1].messages)


async def test_the_status_note_sums_up_trimmed_messages():
    library = ToolLibrary([click, look])
    model = ScriptedModel(call_click("a.x" * 40, 1), call_click("a.y" * 40, 2), call_click("a.z" * 40, 3), "done")
    await collect_events(model, library, limits=Limits(context=560))
    assert not any("a.xa.x" in one.arguments for m in model.requests[3].messages for one in m.tool_calls)
    assert "a.xa.x" in model.requests[3].messages[-1].content


async def test_another_tool_is_named_when_one_fails_too_often():
    model = ScriptedModel(*[call_click(f"a.{n}", n) for n in range(2)], "done")
    events = await collect_events(model, [click, other_click, look], assistance=replace(ALL_GUARDS, follow_ups=False))
    [decided] = [event for event in events if type(event) is DecisionMade]
    assert decided == DecisionMade("switch_tool", "click failed 2 times running.")
    assert "Use another tool; these may do: other_click" in model.requests[2].messages[-1].content


async def test_another_plan_is_asked_for_when_no_tool_may_do():
    model = ScriptedModel(*[call_click(f"a.{n}", n) for n in range(2)], "done")
    events = await collect_events(model, [click], assistance=replace(ALL_GUARDS, follow_ups=False))
    assert decisions(events) == ["replan"]
    assert "go about it in another way" in model.requests[2].messages[-1].content


async def test_a_run_of_refused_calls_ends_in_an_answer_that_is_said_to_be_partial():
    model = ScriptedModel(*[call_click("a.x", n) for n in range(5)], "I could not find the count.")
    events = await collect_events(model, [click])
    assert made == ["a.x"]
    assert decisions(events)[-1] == "complete"
    assert (events[-1].text, events[-1].reason) == ("I could not find the count.", "repeats")
    assert "say that it is partial" in model.requests[-1].messages[-1].content


async def test_a_limit_ends_in_an_answer_even_where_the_model_is_gone():
    def gone(messages):
        raise ModelUnavailable("away")

    events = await collect_events(ScriptedModel(reply_with_calls(tool_call("look")), gone), limits=Limits(turns=1))
    assert (events[-1].text, events[-1].reason) == (
        "The task used up its number of steps before there was an answer. This is only a part, from look: a page",
        "turns",
    )
    with pytest.raises(ModelUnavailable):
        await collect_events(ScriptedModel(reply_with_calls(tool_call("look")), gone))


async def test_a_limit_is_a_decision_to_complete():
    events = await collect_events(ScriptedModel(reply_with_calls(tool_call("look")), "so far"), limits=Limits(turns=1))
    assert DecisionMade("complete", "The task has used up its number of steps.") in events


async def test_a_plain_run_has_no_decisions_and_is_sent_unchanged():
    model = ScriptedModel(call_click("a.social-link", 1), "done")
    events = await collect_events(model)
    assert decisions(events) == []
    assert [m.content for m in model.requests[1].messages] == ["click it", "", "clicked"]


async def test_everything_can_be_switched_off():
    events = await collect_events(
        ScriptedModel(*[call_click("a.x", n) for n in range(4)], "done"), assistance=NO_GUARDS
    )
    assert made == ["a.x"] * 4
    assert decisions(events) == []


async def test_a_second_run_is_warned_in_the_tools_description():
    memory = FailureMemory()
    await collect_events(
        ScriptedModel(call_click("a.x", 1), call_click("a.social-link", 2), "done"), failure_memory=memory.with_scope()
    )
    model = ScriptedModel("done")
    await collect_events(model, failure_memory=memory.with_scope())
    [text] = [one.description for one in model.requests[0].tools if one.name == "click"]
    assert text == 'Click an element.\nKnown from before: selector="a.x" failed; selector="a.social-link" worked.'


async def test_a_known_correction_follows_the_same_failure():
    memory = FailureMemory()
    await collect_events(
        ScriptedModel(call_click("a.x", 1), call_click("a.social-link", 2), "done"), failure_memory=memory.with_scope()
    )
    events = await collect_events(ScriptedModel(call_click("a.x", 1), "done"), failure_memory=memory.with_scope())
    note = '(Before, selector="a.social-link" worked in place of selector="a.x". Correct the call and make it again.)'
    assert note in list_endings(events)[0][1]


async def test_what_one_agent_learnt_is_its_own():
    memory, library = FailureMemory(), ToolLibrary([click])
    await collect_events(
        ScriptedModel(call_click("a.x", 1), call_click("a.social-link", 2), "."),
        library,
        failure_memory=memory.with_scope("a1"),
    )
    assert (await memory.get_patterns(library, "a2")).get_warnings("click", "en") == ""
    assert "a.x" in (await memory.get_patterns(library, "a1")).get_warnings("click", "en")


async def test_a_call_that_failed_in_earlier_runs_is_made_and_one_that_works_is_forgotten():
    allowed = [False]

    def pay(amount: int) -> str:
        """Pay."""
        made.append("pay")
        if not allowed[0]:
            raise ToolRefused("Nothing may be paid here.")
        return "paid"

    memory, script = FailureMemory(), [reply_with_calls(tool_call("pay", '{"amount": 5}')), "done"]
    for _ in range(3):
        await collect_events(ScriptedModel(*script), [pay], failure_memory=memory.with_scope())
    allowed[0] = True
    events = await collect_events(ScriptedModel(*script), [pay], failure_memory=memory.with_scope())
    assert made == ["pay"] * 4
    assert list_endings(events) == [(None, "paid")]
    assert (await memory.get_patterns(ToolLibrary([pay]), "")).get_failures("pay") == ()


async def test_a_declared_time_out_is_doubled_up_to_its_maximum_and_reported():
    given = []

    def render(name: str, timeout: int = 1) -> str:
        """Render."""
        given.append(timeout)
        if timeout < 7:
            raise TimeoutError("slow")
        return "rendered"

    def library() -> ToolLibrary:
        new_library = ToolLibrary()
        about = {"adjustable": {"timeout": 8}}
        spec = FunctionToolSpec(tool_id="render", module_path="m", function_name="render", metadata=about)
        new_library.register(spec, [FunctionTool(render)])
        return new_library

    memory = FailureMemory()
    asked = [reply_with_calls(tool_call("render", '{"name": "a", "timeout": 3}', f"c{n}")) for n in range(3)]
    events = await collect_events(ScriptedModel(*asked, "done"), library(), failure_memory=memory.with_scope())
    assert given == [3, 6, 8]
    finished = [event for event in events if type(event) is ToolFinished]
    assert finished[1].result.repairs == ("timeout 3 → 6: it took longer before",)
    assert finished[1].call.arguments_json == '{"name":"a","timeout":6}'
    await collect_events(ScriptedModel(asked[0], "done"), library(), failure_memory=memory.with_scope())
    assert given[3:] == [8]


async def test_a_time_out_that_was_left_to_its_default_is_doubled_where_declared_and_never_elsewhere():
    given = []

    def render(name: str, timeout: float = 2, retries: int = 1) -> str:
        """Render."""
        given.append((timeout, retries))
        raise TimeoutError("slow")

    asked = [reply_with_calls(tool_call("render", f'{{"name": "{name}"}}', f"c{n}")) for n, name in enumerate("abcd")]
    declared = FunctionTool(render, metadata={"adjustable": {"timeout": 5}})
    await collect_events(ScriptedModel(*asked, "done"), [declared], failure_memory=FailureMemory().with_scope())
    assert given == [(2, 1), (4, 1), (5, 1), (5, 1)]
    given.clear()
    await collect_events(ScriptedModel(*asked, "done"), [render], failure_memory=FailureMemory().with_scope())
    assert given == [(2, 1)] * 4


async def test_an_agent_learns_from_run_to_run_and_takes_a_context():
    model = ScriptedModel(call_click("a.x", 1), call_click("a.social-link", 2), "done", "done")
    agent = Agent(model, [click], assistance=True)
    await agent.run("click it")
    async with aclosing(agent.stream("again", CallContext("my-run"))) as events:
        seen = [event async for event in events]
    assert seen[0] == RunStarted("my-run")
    assert type(seen[-1]) is RunFinished
    assert "Known from before" in model.requests[-1].tools[0].description
