"""An expert's trace through the agent: nothing is changed, refused, asked again or added."""

import json
from typing import Any

import pytest
from tests.harmless.everyday import ALL_TRACES
from tests.harmless.traces import TOOLS, Call, Trace

from opposable import Agent
from opposable.domain.call_context import CallContext
from opposable.domain.messages import Message, assistant_message, user_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.scripted import ScriptedModel
from opposable.tools.invocation import value_to_text

pytestmark = pytest.mark.anyio


class TraceTool:
    """A tool with the outcomes of a trace."""

    timeout = None

    def __init__(self, name: str, calls: list[Call]) -> None:
        description, parameters = TOOLS[name]
        self.tool_id = name
        self.definition = ToolDefinition(name, description, parameters)
        self.received: list[dict[str, Any]] = []
        self._calls = calls

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        self.received.append(arguments)
        call = next(call for call in self._calls if call.arguments == arguments)
        self._calls.remove(call)
        if isinstance(call.outcome, Exception):
            raise call.outcome
        return call.outcome


def tools_of(trace: Trace) -> list[TraceTool]:
    calls = [call for turn in trace.turns if not isinstance(turn, str) for call in turn]
    return [TraceTool(name, [call for call in calls if call.name == name]) for name in TOOLS]


def replies_of(trace: Trace) -> list[Message]:
    replies = []
    for n, turn in enumerate(trace.turns):
        if isinstance(turn, str):
            replies.append(assistant_message(turn))
            continue
        calls = tuple(
            ToolCall.from_json(f"call_{n}_{i}", call.name, json.dumps(call.arguments, ensure_ascii=False))
            for i, call in enumerate(turn)
        )
        replies.append(assistant_message("", calls))
    return replies


def messages_of(trace: Trace) -> list[Message]:
    roles = {"user": user_message, "assistant": assistant_message}
    return [*(roles[role](text) for role, text in trace.earlier), user_message(trace.task)]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("trace", ALL_TRACES, ids=lambda trace: f"{trace.rule} {trace.name}")
async def test_a_trace_passes_through_the_agent_unchanged(trace, stream):
    replies, tools = replies_of(trace), tools_of(trace)
    model = ScriptedModel(*replies)
    async with Agent(model, tools, instructions=trace.system) as agent:
        if stream:
            events = [event async for event in agent.stream(messages_of(trace))]
            end = events[-1]
        else:
            end = await agent.run(messages_of(trace))
    assert len(model.requests) == len(replies)
    expected = [call for turn in trace.turns if not isinstance(turn, str) for call in turn]
    received = {tool.tool_id: tool.received for tool in tools}
    assert received == {name: [call.arguments for call in expected if call.name == name] for name in TOOLS}
    assert [message.tool_calls for message in end.messages if message.role == "assistant"] == [
        reply.tool_calls for reply in replies
    ]
    assert [message.role for message in end.messages if message.role not in ("assistant", "tool")] == []
    results = [message.content for message in end.messages if message.role == "tool"]
    assert len(results) == len(expected)
    for call, content in zip(expected, results, strict=True):
        if not isinstance(call.outcome, Exception):
            assert content == value_to_text(call.outcome)
    assert end.reason == "answer"
    assert end.text == trace.turns[-1]
    last = model.requests[-1].messages
    assert [message.content for message in last] == [
        *([trace.system] if trace.system else []),
        *[message.content for message in messages_of(trace)],
        *[message.content for message in end.messages[:-1]],
    ]
    descriptions = {tool.name: tool.description for tool in model.requests[-1].tools}
    assert descriptions == {name: description for name, (description, _) in TOOLS.items()}


@pytest.mark.parametrize("raw", ["", " ", "null", "{}", " { } "])
async def test_no_arguments_in_any_form_reach_a_tool_without_parameters(raw):
    tool = TraceTool("checkout", [Call("checkout", {})])
    model = ScriptedModel(assistant_message("", (ToolCall.from_json("c", "checkout", raw),)), "Done.")
    async with Agent(model, [tool]) as agent:
        end = await agent.run("Check out.")
    assert (tool.received, end.text, len(model.requests)) == ([{}], "Done.", 2)
