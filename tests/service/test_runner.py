"""Runs of a service on a real store: events, records, memory, cancellation, approval."""

import asyncio
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from opposable.agent.loop import run as loop_run
from opposable.domain.errors import ModelUnavailable, StoreUnavailable
from opposable.domain.messages import assistant_message, tool_message, user_message
from opposable.domain.records import Conversation, ConversationTurn, ExecutionFilter, Run, get_utc_now
from opposable.domain.specs import FunctionToolSpec
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.service.runner import Runner
from opposable.store.factory import open_store
from opposable.store.recorder import Recorder
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def forever() -> str:
    """Never ends."""
    await asyncio.sleep(3600)
    return ""


@asynccontextmanager
async def open_runner(tmp_path: Path, **more):
    async with (
        open_store(f"sqlite:///{tmp_path}/s.sqlite") as store,
        Recorder(store.executions, store.runs) as recorder,
        Runner(store, recorder, ToolLibrary(), **more) as runner,
    ):
        yield store, runner


def create_event_source(model, library, message):
    return lambda context: loop_run(model, library, (message,), context=context)


def create_run(**more) -> Run:
    return Run(run_id=more.pop("run_id", "r1"), started_at=get_utc_now(), **more)


async def wait_until_stored(runner, store, run_id: str = "r1") -> None:
    async with asyncio.timeout(5):
        while await store.runs.get(run_id) is None:  # noqa: ASYNC110 - the store has no event for it
            await asyncio.sleep(0.05)


async def list_event_kinds(runner, run_id: str, after: int = 0) -> list[str]:
    async with aclosing(runner.follow(run_id, after)) as events:
        return [event.kind async for event in events]


async def test_a_run_is_streamed_recorded_and_remembered(tmp_path):
    model = ScriptedModel(reply_with_calls(tool_call("add", '{"a": 1, "b": 2}', "c1")), "It is 3.")
    asked = user_message("1 加 2 是多少？")
    async with open_runner(tmp_path) as (store, runner):
        going = await runner.start(
            create_run(conversation_id="v1", trace_id="t"),
            (asked,),
            create_event_source(model, ToolLibrary([add]), asked),
        )
        live = await list_event_kinds(runner, "r1")
        ended = await going.wait_until_ended()
        assert live == [
            "run_started",
            "model_replied",
            "tool_started",
            "tool_finished",
            "model_replied",
            "text",
            "run_finished",
        ]
        assert (ended.status, ended.text, ended.tool_calls) == ("finished", "It is 3.", 1)
        said = await store.conversations.list_messages("v1")
        assert [message.role for message in said] == ["user", "assistant", "tool", "assistant"]
    async with open_store(f"sqlite:///{tmp_path}/s.sqlite") as store:
        page = await store.executions.list(ExecutionFilter(run_id="r1"))
        assert [(e.tool_id, e.arguments, e.result, e.trace_id) for e in page.items] == [
            ("add", {"a": 1, "b": 2}, "3", "t")
        ]
        stored_events = await store.runs.list_events("r1")
        assert [event.kind for event in stored_events] == live
        assert (await store.runs.get("r1")).status == "finished"


async def test_a_stream_is_resumed_after_the_last_received_event(tmp_path):
    model = ScriptedModel("A rather long answer in several pieces.")
    async with open_runner(tmp_path) as (_, runner):
        going = await runner.start(create_run(), (), create_event_source(model, ToolLibrary(), user_message("hi")))
        await going.wait_until_ended()
        every = [event async for event in going.event_log.follow()]
        assert [event.sequence for event in every] == list(range(1, len(every) + 1))
        assert [event async for event in going.event_log.follow(2)] == every[2:]
        assert (
            "".join(event.data["content"] for event in every if event.kind == "text")
            == "A rather long answer in several pieces."
        )


async def test_a_cancelled_run_stores_its_calls_with_their_results(tmp_path):
    calls = reply_with_calls(tool_call("add", '{"a": 1, "b": 2}', "c1"), tool_call("forever", "{}", "c2"))
    asked = user_message("wait")
    async with open_runner(tmp_path) as (store, runner):
        await store.conversations.append_turns([ConversationTurn("t", Conversation("v1"), ())])
        going = await runner.start(
            create_run(conversation_id="v1"),
            (asked,),
            create_event_source(ScriptedModel(calls), ToolLibrary([add, forever]), asked),
        )
        async with aclosing(going.event_log.follow()) as events:
            async for event in events:
                if event.kind == "tool_finished":
                    break
        assert await runner.cancel("r1")
        assert (await runner.get("r1")).status == "cancelled"
        stored = await store.conversations.list_messages("v1")
        assert [(message.role, message.call_id) for message in stored] == [
            ("user", ""),
            ("assistant", ""),
            ("tool", "c1"),
            ("tool", "c2"),
            ("assistant", ""),
        ]
        assert stored[2].content == "3"
        assert "outcome is unknown" in stored[3].content
        assert (await list_event_kinds(runner, "r1"))[-1] == "error"
        assert not await runner.cancel("r1")


async def test_a_run_that_fails_after_a_call_stores_the_call(tmp_path):
    call = tool_call("add", '{"a": 1, "b": 2}', "c1")
    model = ScriptedModel(reply_with_calls(call, text="Let me add."), ModelUnavailable("The model is away."))
    asked = user_message("1 + 2?")
    async with open_runner(tmp_path) as (store, runner):
        source = create_event_source(model, ToolLibrary([add]), asked)
        going = await runner.start(create_run(conversation_id="v1"), (asked,), source)
        assert (await going.wait_until_ended()).status == "failed"
        stored = await store.conversations.list_messages("v1")
        assert stored[:-1] == (asked, assistant_message("Let me add.", (call,)), tool_message("c1", "add", "3"))
        assert stored[-1] == assistant_message("[The run ended here without an answer.]")


@pytest.mark.parametrize(
    ("needs_approval", "awaited", "is_unknown"),
    [(False, {"tool_finished"}, True), (True, {"tool_finished", "approval_needed"}, False)],
    ids=["the call runs", "the call waits for a person"],
)
async def test_a_call_of_a_cancelled_run_is_recorded(tmp_path, needs_approval, awaited, is_unknown):
    library = ToolLibrary([add])
    spec = FunctionToolSpec(
        tool_id="forever", module_path="m", function_name="forever", needs_approval=needs_approval, idempotent=False
    )
    library.register(spec, [FunctionTool(forever)])
    calls = reply_with_calls(tool_call("add", '{"a": 1, "b": 2}', "c1"), tool_call("forever", "{}", "c2"))
    async with open_runner(tmp_path) as (store, runner):
        going = await runner.start(
            create_run(), (), create_event_source(ScriptedModel(calls), library, user_message("go"))
        )
        async with aclosing(going.event_log.follow()) as events:
            async for event in events:
                awaited = awaited - {event.kind}
                if not awaited:
                    break
        assert await runner.cancel("r1")
        assert [e.kind for e in going.event_log.events][-2:] == ["tool_finished", "error"]
        assert (await runner.get("r1")).tool_calls == 2
    async with open_store(f"sqlite:///{tmp_path}/s.sqlite") as store:
        executions = (await store.executions.list(ExecutionFilter(run_id="r1"))).items
        assert {e.tool_id: e.failure for e in executions} == {"add": None, "forever": "cancelled"}
        [cancelled] = [e for e in executions if e.failure == "cancelled"]
        assert cancelled.result.startswith("The task ended before forever did; the call was cancelled.")
        assert ("outcome is unknown" in cancelled.result) is is_unknown


async def test_a_cancellation_request_of_another_process_is_executed(tmp_path):
    model = ScriptedModel(reply_with_calls(tool_call("forever", "{}", "c1")))
    async with open_runner(tmp_path) as (store, runner):
        going = await runner.start(
            create_run(), (), create_event_source(model, ToolLibrary([forever]), user_message("wait"))
        )
        await wait_until_stored(runner, store)
        async with open_store(f"sqlite:///{tmp_path}/s.sqlite") as other:
            assert await other.runs.request_cancel("r1")
        assert (await going.wait_until_ended()).status == "cancelled"


def fail_at_once(context):
    async def events():
        raise ModelUnavailable("The model is away.")
        yield

    return events()


async def test_an_unavailable_model_fails_the_run_with_its_message(tmp_path):
    async with open_runner(tmp_path) as (_, runner):
        going = await runner.start(create_run(), (), fail_at_once)
        assert (await going.wait_until_ended()).status == "failed"
        assert going.event_log.events[-1].data == {"kind": "model_unavailable", "message": "The model is away."}


async def test_overlapping_first_runs_of_two_owners_store_a_conversation_each(tmp_path):
    asked = user_message("hi")
    async with open_runner(tmp_path) as (store, runner):
        for run_id, owner in (("r1", "ann"), ("r2", "ben"), ("r3", "ben")):
            run = create_run(run_id=run_id, conversation_id="v1", owner=owner)
            source = create_event_source(ScriptedModel(f"Hello {owner}."), ToolLibrary(), asked)
            assert (await (await runner.start(run, (asked,), source)).wait_until_ended()).status == "finished"
        assert await store.conversations.list_messages("v1") == (asked, assistant_message("Hello ann."))
        assert await store.conversations.list_messages("v1~ben") == (asked, assistant_message("Hello ben.")) * 2
        assert (await store.conversations.get("v1~ben")).owner == "ben"


async def test_a_conversation_whose_first_run_fails_is_listed_without_messages(tmp_path):
    async with open_runner(tmp_path) as (store, runner):
        run = replace(create_run(conversation_id="v1"), task="good\nmorning", owner="ann")
        going = await runner.start(run, (user_message("good\nmorning"),), fail_at_once)
        await going.wait_until_ended()
        [conversation] = (await store.conversations.list("ann")).items
        assert (conversation.conversation_id, conversation.title, conversation.messages) == ("v1", "good morning", 0)


async def test_an_unfinished_run_ends_although_its_conversation_cannot_be_stored(tmp_path, monkeypatch):
    async def fail(turns, *, skip_existing=False):
        raise StoreUnavailable("The store is away.")

    monkeypatch.setattr("opposable.service.runner.MAX_CONVERSATION_WAIT_SECONDS", 0.1)
    async with open_runner(tmp_path) as (store, runner):
        monkeypatch.setattr(store.conversations, "append_turns", fail)
        going = await runner.start(create_run(conversation_id="v1"), (user_message("hi"),), fail_at_once)
        async with asyncio.timeout(5):
            assert (await going.wait_until_ended()).status == "failed"


@pytest.mark.parametrize(
    ("status", "failure", "text"), [("approved", None, "3"), ("denied", "denied", "too much")], ids=["yes", "no"]
)
async def test_a_tool_that_needs_approval_waits_for_a_decision(tmp_path, status, failure, text):
    library = ToolLibrary()
    spec = FunctionToolSpec(tool_id="add", module_path="m", function_name="add", needs_approval=True)
    library.register(spec, [FunctionTool(add)])
    model = ScriptedModel(reply_with_calls(tool_call("add", '{"a": 1, "b": 2}', "c1")), "Done.")
    async with open_runner(tmp_path) as (store, runner):
        going = await runner.start(create_run(owner="k1"), (), create_event_source(model, library, user_message("go")))
        async with aclosing(going.event_log.follow()) as events:
            async for event in events:
                if event.kind == "approval_needed":
                    break
        waiting = (await store.approvals.list(status="pending")).items
        assert (waiting[0].arguments, waiting[0].owner) == ({"a": 1, "b": 2}, "k1")
        await store.approvals.decide(
            waiting[0].approval_id, status, decided_by="boss", reason="" if failure is None else text
        )
        await going.wait_until_ended()
        result = going.finished_calls[0].result
        assert result.failure == failure
        assert text in result.content
        assert [e.kind for e in going.event_log.events if e.kind.startswith("approval")] == [
            "approval_needed",
            "approval_decided",
        ]


async def test_a_call_is_denied_when_the_approval_times_out(tmp_path):
    library = ToolLibrary()
    spec = FunctionToolSpec(tool_id="add", module_path="m", function_name="add", needs_approval=True)
    library.register(spec, [FunctionTool(add)])
    model = ScriptedModel(reply_with_calls(tool_call("add", '{"a": 1, "b": 2}', "c1")), "Done.")
    async with open_runner(tmp_path, approval_seconds=0.1) as (store, runner):
        going = await runner.start(create_run(), (), create_event_source(model, library, user_message("go")))
        await going.wait_until_ended()
        assert going.finished_calls[0].result.failure == "denied"
        assert (await store.approvals.list(status="expired")).items
