"""Expert traces through the service over HTTP: nothing is changed, refused, asked again or added.

One service runs all traces, and each difference is reported with the name of its trace.
"""

import json
from contextlib import asynccontextmanager

import pytest
from tests.harmless.everyday import ALL_TRACES
from tests.harmless.test_agent import TraceTool, messages_of, replies_of, tools_of
from tests.harmless.test_gateway import DEFINITIONS, results_of
from tests.harmless.test_gateway import to_json as to_openai
from tests.harmless.traces import TOOLS, Trace
from tests.web.api.chat_serving import read_events, serve_service

from opposable.app.agents import DEFAULT_INSTRUCTIONS
from opposable.domain.language import detect_language
from opposable.domain.specs import AgentSpec, AgentToolBinding, FunctionToolSpec
from opposable.models.scripted import ScriptedModel
from opposable.tools.invocation import value_to_text

pytestmark = pytest.mark.anyio


class CurrentModel:
    """A model that replies as the current trace does."""

    name = "m"

    def __init__(self):
        self.scripted = ScriptedModel()

    def stream(self, messages, tools=(), options=None):
        return self.scripted.stream(messages, tools, options)

    async def aclose(self):
        """Nothing to close."""


@asynccontextmanager
async def serve_traces(folder):
    """A session, the model, and an agent for each system message, bound to the tools of the traces."""
    model = CurrentModel()
    async with serve_service(folder, model) as (session, service):
        for name, (description, _) in TOOLS.items():
            spec = FunctionToolSpec(
                tool_id=name,
                description=description,
                module_path="opposable.builtin_tools.echo",
                function_name="echo",
            )
            await service.store.tools.save(spec)
        await service.refresh()
        tools = tuple(AgentToolBinding(tool_id=name) for name in TOOLS)
        for number, system in enumerate(sorted({trace.system for trace in ALL_TRACES})):
            agent = AgentSpec(agent_id=f"expert{number}", instructions=system, tools=tools)
            await service.store.agents.add(agent)
        yield session, service, model


def get_agent_id(trace: Trace) -> str:
    return f"expert{sorted({one.system for one in ALL_TRACES}).index(trace.system)}"


def install_tools(service, trace: Trace) -> list[TraceTool]:
    tools = tools_of(trace)
    for tool in tools:
        service.library.replace(service.library.get_spec(tool.tool_id), [tool])
    return tools


async def send(session, path: str, body: dict, headers: dict[str, str]) -> tuple[str, list[tuple[str, dict]], list]:
    """Return the text, the calls, and the contents of the results that the client received."""
    async with session.post(path, json=body, headers=headers) as response:
        assert response.status == 200, await response.text()
        if not body.get("stream"):
            answer = await response.json()
            calls = [(call["tool"], call["arguments"]) for call in answer["tool_calls"]]
            return answer["response"], calls, []
        events = [event async for event in read_events(response)]
    text = "".join(data["content"] for _, kind, data in events if kind == "" and data != "[DONE]")
    calls = [(data["name"], data["arguments"]) for _, kind, data in events if kind == "tool_started"]
    return text, calls, [data["result"] for _, kind, data in events if kind == "tool_finished"]


@pytest.mark.parametrize(
    ("path", "stream"),
    [("/agent/chat", None), ("/api/agent", False), ("/api/agent", True)],
    ids=["agent/chat", "api/agent whole", "api/agent streamed"],
)
async def test_every_trace_passes_through_an_agent_of_the_service_unchanged(tmp_path, path, stream):
    differences = {}
    async with serve_traces(tmp_path) as (session, service, model):
        for number, trace in enumerate(ALL_TRACES):
            headers = {"X-Agent-ID": get_agent_id(trace)}
            body = {"message": trace.task, "conversation_id": f"c{number}"}
            body |= {} if stream is None else {"stream": stream}
            for (_, question), (_, answer) in zip(trace.earlier[::2], trace.earlier[1::2], strict=True):
                model.scripted = ScriptedModel(answer)
                await send(session, path, {**body, "message": question}, headers)
            model.scripted, tools = ScriptedModel(*replies_of(trace)), install_tools(service, trace)
            text, calls, results = await send(session, path, body, headers)
            found = find_differences(trace, model.scripted, tools, text, calls, results if stream else None)
            if found:
                differences[trace.name] = found
    assert len(ALL_TRACES) >= 150
    assert differences == {}


def find_differences(trace, model, tools, text, calls, results):
    """Return what differs from the trace: requests, calls, results, messages or the answer."""
    replies = replies_of(trace)
    expected = [call for turn in trace.turns if not isinstance(turn, str) for call in turn]
    last = model.requests[-1].messages
    system = trace.system or DEFAULT_INSTRUCTIONS[detect_language(trace.task)]
    start = [system, *(message.content for message in messages_of(trace))]
    sent_replies = [message for message in last if message.role == "assistant"][len(trace.earlier) // 2 :]
    texts = [value_to_text(call.outcome) for call in expected if not isinstance(call.outcome, Exception)]
    checks = {
        "requests": (len(model.requests), len(replies)),
        "answer": (text, trace.turns[-1]),
        "calls": (calls, [(call.name, call.arguments) for call in expected]),
        "executed": (
            {tool.tool_id: tool.received for tool in tools},
            {name: [call.arguments for call in expected if call.name == name] for name in TOOLS},
        ),
        "messages": ([message.content for message in last[: len(start)]], start),
        "roles": (sum(message.role in ("user", "system") for message in last), 2 + len(trace.earlier) // 2),
        "replies": ([reply.tool_calls for reply in sent_replies], [reply.tool_calls for reply in replies[:-1]]),
        "results": ([text for text in texts if text not in [message.content for message in last]], []),
        "received results": ([text for text in texts if results is not None and text not in results], []),
        "tools": (
            {tool.name: tool.description for tool in model.requests[-1].tools},
            {name: description for name, (description, _) in TOOLS.items()},
        ),
    }
    return {name: pair for name, pair in checks.items() if pair[0] != pair[1]}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_every_trace_passes_through_the_completions_of_the_service_unchanged(tmp_path, stream):
    differences = {}
    async with serve_traces(tmp_path) as (session, _, model):
        for trace in ALL_TRACES:
            history = [{"role": "system", "content": trace.system}] if trace.system else []
            history += [to_openai(message) for message in messages_of(trace)]
            for turn, expected in enumerate(replies_of(trace)):
                model.scripted = ScriptedModel(expected)
                body = {"model": "m", "messages": history, "tools": DEFINITIONS, "stream": stream}
                content, calls = await complete(session, body)
                received = [message.content for message in model.scripted.requests[0].messages]
                checks = {
                    "requests": (len(model.scripted.requests), 1),
                    "messages": (received, [message["content"] for message in history]),
                    "content": (content, expected.content),
                    "calls": (calls, [(call.name, call.arguments_json) for call in expected.tool_calls]),
                }
                found = {name: pair for name, pair in checks.items() if pair[0] != pair[1]}
                if found:
                    differences[trace.name] = found
                if expected.tool_calls:
                    history = [*history, json.loads(json.dumps(to_openai(expected)))]
                    history += results_of(trace, turn, expected)
    assert differences == {}


async def complete(session, body: dict) -> tuple[str, list[tuple[str, str]]]:
    """Return the text and the calls of a completion."""
    async with session.post("/v1/chat/completions", json=body) as response:
        assert response.status == 200, await response.text()
        if not body["stream"]:
            message = (await response.json())["choices"][0]["message"]
            calls = [call["function"] for call in message.get("tool_calls") or ()]
            return message["content"] or "", [(call["name"], call["arguments"]) for call in calls]
        content, calls = "", {}
        async for _, _, data in read_events(response):
            for choice in data["choices"] if data != "[DONE]" else ():
                delta = choice["delta"]
                content += delta.get("content") or ""
                for call in delta.get("tool_calls") or ():
                    name, arguments = calls.get(call["index"], ("", ""))
                    function = call["function"]
                    calls[call["index"]] = (name or function.get("name", ""), arguments + function.get("arguments", ""))
    return content, list(calls.values())
