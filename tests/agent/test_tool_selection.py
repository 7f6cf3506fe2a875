"""Selection of the tools that a run offers."""

import asyncio
import re
from contextlib import aclosing

import pytest

from opposable.agent.agent import Agent
from opposable.agent.loop import run
from opposable.agent.tool_selection import ToolSelection
from opposable.domain.call_context import Approved, CallContext
from opposable.domain.events import ToolDelta, ToolFinished, ToolStarted
from opposable.domain.messages import assistant_message, user_message
from opposable.domain.tools import ToolDefinition
from opposable.models.base import ForcedTool, ModelOptions
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolDisclosure, ToolLibrary

pytestmark = pytest.mark.anyio


class RawTool:
    timeout = None

    def __init__(self, tool_id, description):
        self.tool_id = tool_id
        self.definition = ToolDefinition(tool_id, description, {"type": "object", "properties": {}})

    async def run(self, arguments, context):
        return f"{self.tool_id} ran"


ABOUT = {
    "weather": "The weather forecast of a city. 天气预报",
    "currency": "Convert money into another currency.",
    "flights": "Find flights between two cities.",
    "translate": "Translate a text. 翻译文本",
    "alarm": "Set an alarm clock.",
    "taxes": "Work out the taxes of a year.",
}
FEW = ToolDisclosure(max_tokens=50, max_matches=2)


def build_large_library(showing=FEW, **more) -> ToolLibrary:
    return ToolLibrary([RawTool(*one) for one in ABOUT.items()], disclosure=showing, **more)


def list_sent_tool_names(model: ScriptedModel) -> list[list[str]]:
    return [[definition.name for definition in request.tools] for request in model.requests]


async def run_agent(model, library, said="go", **more):
    async with aclosing(run(model, library, (user_message(said),), **more)) as events:
        return [event async for event in events]


async def test_a_small_library_is_offered_unchanged():
    library = build_large_library(ToolDisclosure())
    model = ScriptedModel(reply_with_calls(tool_call("weather")), "fine")
    await run_agent(model, library)
    assert list_sent_tool_names(model) == [list(ABOUT)] * 2
    assert ToolSelection(library, (user_message("go"),), ModelOptions()).definitions is library.definitions


@pytest.mark.parametrize(
    ("said", "first"), [("What is the weather in Rome?", "weather"), ("请翻译这个文本", "translate")]
)
async def test_of_a_large_library_matching_tools_and_a_search_tool_are_offered(said, first):
    model = ScriptedModel("fine")
    await run_agent(model, build_large_library(), said)
    assert list_sent_tool_names(model)[0][:2] == ["search_tools", first]
    assert len(list_sent_tool_names(model)[0]) <= 3


NOTE = "Tools that are not listed: "


def read_unlisted_names(model: ScriptedModel) -> str:
    return model.requests[0].tools[0].description.partition(NOTE)[2]


@pytest.mark.parametrize(("said", "note"), [("Wake me: alarm at six", NOTE), ("请在六点叫醒我", "没有列出的工具：")])
async def test_tools_that_are_left_out_are_listed_by_name(said, note):
    model = ScriptedModel("fine")
    await run_agent(model, build_large_library(), said)
    sent = model.requests[0].tools
    listed = sent[0].description.partition(note)[2].rstrip(".。").split(", ")
    assert {*listed, *(one.name for one in sent[1:])} == set(ABOUT)


async def test_the_list_of_names_is_bounded_and_says_how_many_are_missing():
    library = ToolLibrary([RawTool(f"tool_{n:03}", "Does it.") for n in range(500)], disclosure=FEW)
    model = ScriptedModel("fine")
    await run_agent(model, library)
    names = read_unlisted_names(model)
    assert names.startswith("tool_0")
    assert names.endswith(f" … (+{500 - FEW.max_matches - names.count('tool_')}).")
    assert len(names) < 4 * 50 + 20


async def test_hundreds_of_small_tools_are_sent_whole():
    model = ScriptedModel("fine")
    await run_agent(model, ToolLibrary([RawTool(f"tool_{n:03}", "Does it.") for n in range(300)]))
    assert len(model.requests[0].tools) == 300


@pytest.mark.parametrize(("window", "count"), [(10_000, 30), (5_000, 9)])
async def test_a_tenth_of_the_context_window_is_for_tools(window, count):
    model = ScriptedModel("fine")
    library = ToolLibrary([RawTool(f"tool_{n:02}", "Does it. " * 10) for n in range(30)]).for_model(window)
    await run_agent(model, library)
    assert len(model.requests[0].tools) == count


async def test_the_agent_sets_how_many_tools_are_sent():
    model = ScriptedModel("fine")
    agent = Agent(model, [RawTool(*one) for one in ABOUT.items()], disclosure=FEW)
    await agent.run("Wake me: alarm at six")
    [sent] = list_sent_tool_names(model)
    assert (len(sent), sent[:2]) == (1 + FEW.max_matches, ["search_tools", "alarm"])


@pytest.mark.parametrize("task", ["Ich möchte Geld wechseln", "换一些外币", "change some cash"])
async def test_a_model_gets_the_tool_for_a_task_in_any_language(task):
    model = ScriptedModel("done")
    await run_agent(model, build_large_library(), task)
    [sent] = list_sent_tool_names(model)
    assert (len(sent), sent[:2]) == (3, ["search_tools", "currency"])


async def test_what_a_search_finds_can_be_called_in_the_next_turn():
    model = ScriptedModel(
        reply_with_calls(tool_call("search_tools", '{"need": "money in another currency"}')),
        reply_with_calls(tool_call("currency")),
        "done",
    )
    events = await run_agent(model, build_large_library(), "Wake me: alarm at six")
    assert [event.result.failure for event in events if type(event) is ToolFinished] == [None, None]
    assert "currency" not in list_sent_tool_names(model)[0]
    assert "currency" in list_sent_tool_names(model)[1]
    assert list_sent_tool_names(model)[1][: len(list_sent_tool_names(model)[0])] == list_sent_tool_names(model)[0]


async def test_a_tool_that_is_not_shown_can_be_called_all_the_same_and_is_shown_from_then_on():
    model = ScriptedModel(reply_with_calls(tool_call("taxes")), "done")
    events = await run_agent(model, build_large_library(), "Wake me: alarm at six")
    [result] = [event.result for event in events if type(event) is ToolFinished]
    assert result.content == "taxes ran"
    assert "taxes" not in list_sent_tool_names(model)[0]
    assert "taxes" in list_sent_tool_names(model)[1]


async def test_a_tool_that_must_be_called_and_those_called_before_are_shown():
    history = (
        user_message("hi"),
        reply_with_calls(tool_call("flights", "{}", "c1")),
        assistant_message("fine"),
        user_message("Wake me: alarm at six"),
    )
    selection = ToolSelection(build_large_library(), history, ModelOptions(tool_choice=ForcedTool("taxes")))
    await selection.add_matching_tools()
    assert [one.name for one in selection.definitions][:4] == ["search_tools", "taxes", "flights", "alarm"]
    assert selection.definitions is selection.definitions


async def test_a_tool_unregistered_meanwhile_is_not_shown_any_more():
    library = build_large_library()
    selection = ToolSelection(library, (user_message("Wake me: alarm at six"),), ModelOptions())
    await selection.add_matching_tools()
    shown = [one.name for one in selection.definitions]
    library.unregister("alarm")
    assert [one.name for one in selection.definitions] == [name for name in shown if name != "alarm"]
    assert "alarm" in shown


def read_on(messages):
    handle = next(found[1] for one in messages if (found := re.search(r"handle='(\w+)'", one.content)))
    return reply_with_calls(tool_call("read_result", f'{{"handle": "{handle}", "offset": 4990}}'))


async def test_reading_on_is_offered_once_there_is_something_to_read_and_only_to_that_run():
    def book() -> str:
        """A book."""
        return "word " * 1000

    library = ToolLibrary([book], max_result_characters=500)
    model = ScriptedModel(
        reply_with_calls(tool_call("book")),
        read_on,
        "done",
    )
    events = await run_agent(model, library)
    assert list_sent_tool_names(model) == [["book"], ["book", "read_result"], ["book", "read_result"]]
    [_, read] = [event.result for event in events if type(event) is ToolFinished]
    assert read.content == "[characters 4,990–5,000 of 5,000; this is the end]\nword word "
    other = ScriptedModel(read_on(model.requests[-1].messages), "done")
    [stolen] = [e.result for e in await run_agent(other, library) if type(e) is ToolFinished]
    assert stolen.failure == "refused"
    assert list_sent_tool_names(other) == [["book"]] * 2


async def test_the_next_turn_of_a_conversation_can_read_on_in_an_earlier_result():
    def book() -> str:
        """A book."""
        return "word " * 1000

    library = ToolLibrary([book], max_result_characters=500)
    history, context = [user_message("read")], CallContext(conversation_id="c1", owner="ann")
    for reply in (reply_with_calls(tool_call("book")), read_on):
        model = ScriptedModel(reply, "done")
        async with aclosing(run(model, library, history, context=context)) as events:
            history += [event async for event in events][-1].messages
        history.append(user_message("and the rest?"))
    assert list_sent_tool_names(model) == [["book", "read_result"]] * 2
    assert model.requests[-1].messages[-1].content.endswith("this is the end]\nword word ")


async def test_deltas_of_a_tool_are_yielded_at_once():
    gate = asyncio.Event()

    async def feed():
        """A feed."""
        yield "first "
        await gate.wait()
        yield "second"

    wanted = tool_call("feed", "{}", "c1")
    seen = []
    async with aclosing(
        run(ScriptedModel(reply_with_calls(wanted), "done"), ToolLibrary([feed]), (user_message("go"),))
    ) as events:
        async for event in events:
            if type(event) in (ToolStarted, ToolDelta, ToolFinished):
                seen.append(event)
            if event == ToolDelta(wanted, "first "):
                gate.set()
    assert seen[:3] == [ToolStarted(wanted), ToolDelta(wanted, "first "), ToolDelta(wanted, "second")]
    assert seen[3].result.content == "first second"


async def test_deltas_of_concurrent_calls_name_their_call():
    async def feed(name: str):
        """A feed."""
        for n in range(3):
            yield f"{name}{n}"
            await asyncio.sleep(0)

    model = ScriptedModel(
        reply_with_calls(tool_call("feed", '{"name": "a"}', "c1"), tool_call("feed", '{"name": "b"}', "c2")), "done"
    )
    events = await run_agent(model, ToolLibrary([feed]))
    texts = {key: [e.text for e in events if type(e) is ToolDelta and e.call.id == key] for key in ("c1", "c2")}
    assert texts == {"c1": ["a0", "a1", "a2"], "c2": ["b0", "b1", "b2"]}


async def test_leaving_in_mid_stream_closes_the_generator():
    closed = []

    async def feed():
        """A feed."""
        try:
            while True:
                yield "tick"
                await asyncio.sleep(0.001)
        finally:
            closed.append(True)

    async with aclosing(
        run(ScriptedModel(reply_with_calls(tool_call("feed")), "x"), ToolLibrary([feed]), (user_message("go"),))
    ) as events:
        async for event in events:
            if type(event) is ToolDelta:
                break
    assert closed == [True]


async def test_a_call_knows_its_run_and_has_a_key_of_its_own_in_each_turn():
    seen = []

    async def note(context: CallContext) -> str:
        """Note."""
        seen.append(context)
        return "noted"

    async def approve(request):
        return Approved()

    same = reply_with_calls(tool_call("note", "{}", "call_0"))
    given = CallContext("r", trace_id="t", agent_id="a", conversation_id="c", approve=approve)
    library = ToolLibrary([FunctionTool(note, needs_approval=True)])
    await run_agent(ScriptedModel(same, same, "done"), library, "你好，请记下来", context=given)
    ids = [(one.run_id, one.call_id, one.language, one.trace_id, one.agent_id, one.conversation_id) for one in seen]
    assert ids == [("r", "call_0", "zh", "t", "a", "c")] * 2
    assert len({one.idempotency_key for one in seen}) == 2


async def test_a_large_library_makes_the_schemas_of_the_offered_tools_alone():
    def build(number):
        def function(query: str) -> str:
            return query

        function.__name__ = f"tool_{number}"
        function.__doc__ = "Set an alarm." if number == 3 else "Convert money."
        return FunctionTool(function)

    tools = [build(number) for number in range(40)]
    model = ScriptedModel("done")
    await run_agent(model, ToolLibrary(tools, disclosure=FEW), "Wake me with an alarm")
    offered = list_sent_tool_names(model)[0]
    assert offered[:2] == ["search_tools", "tool_3"]
    assert [tool.tool_id for tool in tools if "definition" in vars(tool)] == offered[1:]
