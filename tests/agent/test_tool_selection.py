"""Which tools a run's model is told of."""

import asyncio
from contextlib import aclosing

import pytest

from opposable.agent.loop import run
from opposable.agent.tool_selection import Selection
from opposable.domain.call_context import Approved, CallContext
from opposable.domain.events import ToolDelta, ToolFinished, ToolStarted
from opposable.domain.messages import assistant, user
from opposable.domain.tools import ToolDefinition
from opposable.models.base import ModelOptions, Named
from opposable.models.scripted import ScriptedModel, call, calls
from opposable.tools.function import FunctionTool
from opposable.tools.library import Showing, ToolLibrary

pytestmark = pytest.mark.anyio


class Raw:
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
FEW = Showing(tools=3, tokens=8000, fitting=2)


def large(showing=FEW, **more) -> ToolLibrary:
    return ToolLibrary([Raw(*one) for one in ABOUT.items()], showing=showing, **more)


def shown(model: ScriptedModel) -> list[list[str]]:
    return [[definition.name for definition in request.tools] for request in model.requests]


async def worked(model, library, said="go", **more):
    async with aclosing(run(model, library, (user(said),), **more)) as events:
        return [event async for event in events]


async def test_few_tools_are_told_as_they_are():
    library = large(Showing())
    model = ScriptedModel(calls(call("weather")), "fine")
    await worked(model, library)
    assert shown(model) == [list(ABOUT)] * 2
    assert Selection(library, (user("go"),), ModelOptions()).definitions is library.definitions


@pytest.mark.parametrize("showing", [FEW, Showing(tools=40, tokens=50, fitting=2)])
@pytest.mark.parametrize(
    ("said", "first"), [("What is the weather in Rome?", "weather"), ("请翻译这个文本", "translate")]
)
async def test_of_many_the_model_is_told_those_that_fit_and_how_to_search(showing, said, first):
    model = ScriptedModel("fine")
    await worked(model, large(showing), said)
    assert shown(model)[0][:2] == ["search_tools", first]
    assert len(shown(model)[0]) <= 3


async def test_what_a_search_finds_can_be_called_in_the_next_turn():
    model = ScriptedModel(
        calls(call("search_tools", '{"need": "money in another currency"}')), calls(call("currency")), "done"
    )
    events = await worked(model, large(), "Wake me: alarm at six")
    assert [event.result.failure for event in events if type(event) is ToolFinished] == [None, None]
    assert "currency" not in shown(model)[0]
    assert "currency" in shown(model)[1]
    assert shown(model)[1][: len(shown(model)[0])] == shown(model)[0]


async def test_a_tool_that_is_not_shown_can_be_called_all_the_same_and_is_shown_from_then_on():
    model = ScriptedModel(calls(call("taxes")), "done")
    events = await worked(model, large(), "Wake me: alarm at six")
    [result] = [event.result for event in events if type(event) is ToolFinished]
    assert result.content == "taxes ran"
    assert "taxes" not in shown(model)[0]
    assert "taxes" in shown(model)[1]


async def test_a_tool_that_must_be_called_and_those_called_before_are_shown():
    history = (user("hi"), calls(call("flights", "{}", "c1")), assistant("fine"), user("Wake me: alarm at six"))
    selection = Selection(large(), history, ModelOptions(tool_choice=Named("taxes")))
    assert [one.name for one in selection.definitions] == ["search_tools", "taxes", "flights", "alarm"]
    assert selection.definitions is selection.definitions


async def test_a_tool_unregistered_meanwhile_is_not_shown_any_more():
    library = large()
    selection = Selection(library, (user("Wake me: alarm at six"),), ModelOptions())
    library.unregister("alarm")
    assert [one.name for one in selection.definitions] == ["search_tools"]


async def test_reading_on_is_offered_once_there_is_something_to_read_and_only_to_that_run():
    def book() -> str:
        """A book."""
        return "word " * 1000

    library = ToolLibrary([book], cap=500)
    model = ScriptedModel(
        calls(call("book")),
        calls(call("read_result", '{"handle": "result_1", "offset": 4990}')),
        "done",
    )
    events = await worked(model, library)
    assert shown(model) == [["book"], ["book", "read_result"], ["book", "read_result"]]
    [_, read] = [event.result for event in events if type(event) is ToolFinished]
    assert read.content == "[characters 4,990–5,000 of 5,000; this is the end]\nword word "
    other = ScriptedModel(calls(call("read_result", '{"handle": "result_1"}')), "done")
    [stolen] = [e.result for e in await worked(other, library) if type(e) is ToolFinished]
    assert stolen.failure == "refused"
    assert shown(other) == [["book"]] * 3


async def test_pieces_are_told_as_they_come():
    gate = asyncio.Event()

    async def feed():
        """A feed."""
        yield "first "
        await gate.wait()
        yield "second"

    wanted = call("feed", "{}", "c1")
    seen = []
    async with aclosing(run(ScriptedModel(calls(wanted), "done"), ToolLibrary([feed]), (user("go"),))) as events:
        async for event in events:
            if type(event) in (ToolStarted, ToolDelta, ToolFinished):
                seen.append(event)
            if event == ToolDelta(wanted, "first "):
                gate.set()
    assert seen[:3] == [ToolStarted(wanted), ToolDelta(wanted, "first "), ToolDelta(wanted, "second")]
    assert seen[3].result.content == "first second"


async def test_pieces_of_calls_made_together_are_told_apart():
    async def feed(name: str):
        """A feed."""
        for n in range(3):
            yield f"{name}{n}"
            await asyncio.sleep(0)

    model = ScriptedModel(calls(call("feed", '{"name": "a"}', "c1"), call("feed", '{"name": "b"}', "c2")), "done")
    events = await worked(model, ToolLibrary([feed]))
    told = {key: [e.text for e in events if type(e) is ToolDelta and e.call.id == key] for key in ("c1", "c2")}
    assert told == {"c1": ["a0", "a1", "a2"], "c2": ["b0", "b1", "b2"]}


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

    async with aclosing(run(ScriptedModel(calls(call("feed")), "x"), ToolLibrary([feed]), (user("go"),))) as events:
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

    same = calls(call("note", "{}", "call_0"))
    given = CallContext("r", trace_id="t", agent_id="a", conversation_id="c", approve=approve)
    library = ToolLibrary([FunctionTool(note, needs_approval=True)])
    await worked(ScriptedModel(same, same, "done"), library, "你好，请记下来", context=given)
    ids = [(one.run_id, one.call_id, one.language, one.trace_id, one.agent_id, one.conversation_id) for one in seen]
    assert ids == [("r", "call_0", "zh", "t", "a", "c")] * 2
    assert len({one.idempotency_key for one in seen}) == 2
