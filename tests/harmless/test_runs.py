"""Runs of a capable model around its calls: many at once, with tools that change what they get, or raise anything."""

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from opposable.agent.agent import Agent
from opposable.domain.call_context import CallContext
from opposable.domain.events import ModelReplied, Reply, RunFinished, RunStarted, ToolFinished, ToolStarted
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.scripted import ScriptedModel
from opposable.tools.function import FunctionTool

pytestmark = pytest.mark.anyio


def call_all(*calls: tuple[str, dict[str, Any]]) -> Message:
    return assistant_message("", tuple(ToolCall(f"c{n}", name, given) for n, (name, given) in enumerate(calls)))


def list_results(end: RunFinished) -> list[str]:
    return [message.content for message in end.messages if message.role == "tool"]


class ChangingTool:
    """A tool without a validator that changes its arguments."""

    tool_id = "change"
    timeout = None
    definition = ToolDefinition("change", "Change.", {"type": "object", "properties": {}})

    async def run(self, arguments, context):
        return change(**arguments)


def change(record: dict, tags: list) -> str:
    record["a"]["x"] = 1
    record["new"] = 2
    tags.append("z")
    return "ok"


@pytest.mark.parametrize(("tool", "tags"), [(change, ["t"]), (change, '["t"]'), (ChangingTool(), ["t"])])
async def test_a_tool_that_changes_its_arguments_does_not_change_the_call(tool, tags):
    model = ScriptedModel(call_all(("change", {"record": {"a": {}}, "tags": tags})), "Done.")
    async with Agent(model, [tool]) as agent:
        events = [event async for event in agent.stream("Do it.")]
    made = {"record": {"a": {}}, "tags": ["t"]}
    [sent] = model.requests[1].messages[1].tool_calls
    assert sent.arguments == made
    assert [event.call.arguments for event in events if isinstance(event, ToolFinished)] == [made]
    assert list_results(events[-1]) == ["ok"]


@pytest.mark.parametrize(("depth", "expected"), [(400, "measured"), (800, "measured"), (5000, "nested")])
async def test_deeply_nested_arguments_do_not_end_a_run(depth, expected):
    raw = f'{{"value": {"[" * depth}{"]" * depth}}}'
    call = ToolCall.from_json("c0", "measure", raw)

    def measure(value: list) -> str:
        return "measured"

    async with Agent(ScriptedModel(assistant_message("", (call,)), "Done."), [measure]) as agent:
        end = await agent.run("Do it.")
    assert end.text == "Done."
    [result] = list_results(end)
    assert expected in result


async def test_a_mutable_default_is_new_for_each_call():
    def collect(items: list = []) -> list:  # noqa: B006 - as users write it
        items.append(1)
        return items

    async with Agent(ScriptedModel(call_all(("collect", {})), call_all(("collect", {})), "Done."), [collect]) as agent:
        assert list_results(await agent.run("Do it.")) == ["[1]", "[1]"]


async def test_parallel_calls_have_one_event_each_and_results_in_their_order():
    async def wait(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return str(seconds)

    model = ScriptedModel(call_all(*[("wait", {"seconds": seconds}) for seconds in (0.05, 0.0, 0.02)]), "Done.")
    async with Agent(model, [wait]) as agent:
        events = [event async for event in agent.stream("Do it.")]
    kinds = [type(event) for event in events]
    expected = {RunStarted: 1, ToolStarted: 3, ToolFinished: 3, ModelReplied: 2, RunFinished: 1}
    assert {kind: kinds.count(kind) for kind in expected} == expected
    assert list_results(events[-1]) == ["0.05", "0.0", "0.02"]


async def test_ids_that_a_server_gives_twice_stay_apart():
    def echo(n: int) -> int:
        return n

    reply = assistant_message("", (ToolCall("x", "echo", {"n": 1}), ToolCall("x", "echo", {"n": 2})))
    async with Agent(ScriptedModel(reply, reply, "Done."), [echo]) as agent:
        end = await agent.run("Do it.")
    ids = [call.id for message in end.messages for call in message.tool_calls]
    assert [message.call_id for message in end.messages if message.role == "tool"] == ids
    assert len(set(ids)) >= 3
    assert list_results(end) == ["1", "2", "1", "2"]


class QuestionEcho:
    """A model that calls `answer` with the question, and answers with the result."""

    name = "echo"

    async def stream(self, messages, tools=(), options=None):
        await asyncio.sleep(0)
        last = messages[-1]
        call = ToolCall("c", "answer", {"question": last.content})
        yield Reply(assistant_message("", (call,)) if last.role == "user" else assistant_message(last.content))

    async def aclose(self):
        """Nothing to close."""


async def test_runs_of_one_agent_at_the_same_time_share_nothing():
    async def answer(question: str, context: CallContext) -> str:
        await asyncio.sleep(0.01)
        return f"{question} {context.run_id}"

    async with Agent(QuestionEcho(), [answer]) as agent:
        ends = await asyncio.gather(*(agent.run(str(n), CallContext(run_id=f"r{n}")) for n in range(30)))
    assert [end.text for end in ends] == [f"{n} r{n}" for n in range(30)]


async def test_a_tool_sees_the_context_variables_of_its_caller():
    user = ContextVar("user", default="nobody")
    user.set("ann")

    async def ask_async() -> str:
        return user.get()

    model = ScriptedModel(call_all(("get", {}), ("ask_async", {})), "Done.")
    async with Agent(model, [ask_async, FunctionTool(lambda: user.get(), tool_id="get")]) as agent:
        assert list_results(await agent.run("Do it.")) == ["ann", "ann"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ExceptionGroup("unhandled errors in a TaskGroup", [ValueError("no such city")]), "ValueError: no such city"),
        (ExceptionGroup("g", [ValueError("a"), ExceptionGroup("h", [KeyError("b")])]), "ValueError: a; KeyError: 'b'"),
        (SystemExit(3), "SystemExit: 3"),
        (StopIteration(), "StopIteration"),
        (asyncio.CancelledError(), "cancelled"),
        (NotImplementedError(), "NotImplementedError"),
        (FileNotFoundError(2, "No such file", "/y"), "No such file: '/y'"),
        (RecursionError("deep"), "RecursionError: deep"),
        (MemoryError(), "MemoryError"),
        (AssertionError(), "AssertionError"),
    ],
)
async def test_whatever_a_tool_raises_reaches_the_model(error, said):
    def fail():
        raise error

    async with Agent(ScriptedModel(call_all(("fail", {})), "Done."), [fail]) as agent:
        end = await asyncio.wait_for(agent.run("Do it."), 20)
    assert end.text == "Done."
    assert said in list_results(end)[0]


@pytest.mark.parametrize("name", ["shop.item", "shop_item", "查询天气", "functions.shop_item"])
async def test_a_tool_is_found_by_its_id_and_by_its_name(name):
    tools = [FunctionTool(lambda: "ok", tool_id=tool_id) for tool_id in ("shop.item", "查询天气")]
    async with Agent(ScriptedModel(call_all((name, {})), "Done."), tools) as agent:
        assert list_results(await agent.run("Do it.")) == ["ok"]


@pytest.mark.parametrize("task", ["", " ", "你好\n"])
async def test_the_task_reaches_the_model_as_it_is(task):
    model = ScriptedModel("Done.")
    async with Agent(model) as agent:
        await agent.run(task)
    assert [message.content for message in model.requests[0].messages] == [task]
