"""What the service stores and returns: the values as models get them, and conversations that go on as they were."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from decimal import Decimal

import pytest
from pydantic import BaseModel
from tests.web.api.chat_serving import read_events, serve_service

from opposable.domain.content import ImagePart
from opposable.domain.events import TextDelta
from opposable.domain.messages import Message, NativeReply
from opposable.domain.specs import AgentSpec, AgentToolBinding, FunctionToolSpec
from opposable.domain.tools import ToolCall
from opposable.models.base import DEFAULT_OPTIONS
from opposable.models.profile import ModelProfile
from opposable.models.scripted import ScriptedModel
from opposable.tools.function import FunctionTool

pytestmark = pytest.mark.anyio

PNG = ImagePart("", b"\x89PNG\r\n", "image/png")
AGENT = {"X-Agent-ID": "a"}


class City(BaseModel):
    name: str
    tags: set[str] = {"x"}


def get_city() -> City:
    return City(name="北京")


def get_values() -> dict:
    return {"city": City(name="b"), "set": {1}, "price": Decimal("1.10"), "raw": b"\xffb", "keys": {"k": 1}.keys()}


def get_picture(q: str) -> list:
    return [q, PNG]


def get_number() -> dict:
    return {"n": 2**80}


def fail():
    raise ValueError("no such city")


FUNCTIONS = {function.__name__: function for function in (get_city, get_values, get_picture, get_number, fail)}
OUTPUTS = {
    "get_city": {"name": "北京", "tags": ["x"]},
    "get_values": {
        "city": {"name": "b", "tags": ["x"]},
        "set": [1],
        "price": "1.10",
        "raw": "<2 bytes>",
        "keys": ["k"],
    },
    "get_picture": ["q", {"url": "", "data": "<6 bytes>", "media_type": "image/png", "detail": ""}],
    "get_number": {"n": 2**80},
}


class CurrentModel(ScriptedModel):
    """A scripted model whose replies can be replaced."""

    name = "m"
    profile = ModelProfile(images=True)

    def set_replies(self, *replies: Message | str) -> None:
        super().__init__(*replies)
        self.name = "m"


async def add_tools(service) -> None:
    for name in FUNCTIONS:
        module = {"module_path": "opposable.builtin_tools.echo", "function_name": "echo"}
        await service.store.tools.save(FunctionToolSpec(tool_id=name, description=name, **module))
    await service.refresh()
    for name, function in FUNCTIONS.items():
        service.library.replace(service.library.get_spec(name), [FunctionTool(function, tool_id=name)])
    bindings = tuple(AgentToolBinding(tool_id=name) for name in FUNCTIONS)
    await service.store.agents.add(AgentSpec(agent_id="a", instructions="I", tools=bindings))


async def test_a_conversation_goes_on_with_every_field_of_its_messages(tmp_path):
    model = CurrentModel()
    raw = '{ "q" : "你" }'
    calls = (ToolCall.from_json("c1", "get_picture", raw), ToolCall("c2", "fail", {}), ToolCall("c3", "get_number", {}))
    native = NativeReply("m", ({"type": "reasoning", "encrypted_content": "gAAA"},))
    reply = Message("assistant", "Let me  look.\n", tool_calls=calls, thinking="hm 你", native=native)
    answer = Message("assistant", "  Done.  \n", thinking="t", native=native)
    attachments = [
        {"url": "data:image/png;base64,iVBORw0KGgo="},
        {"url": "data:application/pdf;base64,JVBERi0xLjQK", "name": "报告.pdf"},
    ]
    async with serve_service(tmp_path, model) as (session, service):
        await add_tools(service)
        model.set_replies(reply, answer)
        body = {"message": "  look at\r\nthis 你 \u200b", "conversation_id": "k", "attachments": attachments}
        async with session.post("/agent/chat", json=body, headers=AGENT) as response:
            assert (response.status, (await response.json())["response"]) == (200, answer.content)
        first = [*model.requests[-1].messages, answer]
        model.set_replies("Again.")
        body = {"message": "more", "conversation_id": "k"}
        async with session.post("/agent/chat", json=body, headers=AGENT) as response:
            assert response.status == 200
        second = list(model.requests[-1].messages[:-1])
    assert first[1].content == "  look at\r\nthis 你 \u200b"
    assert [message.is_error for message in second if message.role == "tool"] == [False, True, False]
    assert [call.arguments_json for message in second for call in message.tool_calls] == [raw, "{}", "{}"]
    assert [replace(message, tool_calls=()) for message in second] == [
        replace(message, tool_calls=()) for message in first
    ]


async def test_the_values_of_tools_are_returned_as_models_get_them(tmp_path):
    model = CurrentModel()
    async with serve_service(tmp_path, model) as (session, service):
        await add_tools(service)
        calls = tuple(ToolCall(name, name, {"q": "q"} if name == "get_picture" else {}) for name in OUTPUTS)
        model.set_replies(Message("assistant", "", tool_calls=calls), "Done.")
        async with session.post("/agent/chat", json={"message": "go"}, headers=AGENT) as response:
            answer = await response.json()
        assert {call["tool"]: call["result"]["output"] for call in answer["tool_calls"]} == OUTPUTS


class InterruptedModel(CurrentModel):
    """Streams a text and then waits, but answers the second request."""

    async def stream(self, messages, tools=(), options=DEFAULT_OPTIONS):
        async with aclosing(super().stream(messages, tools, options)) as events:
            async for event in events:
                yield event
                if len(self.requests) == 1 and type(event) is TextDelta:
                    await asyncio.Event().wait()


async def test_the_next_turn_has_what_the_user_saw_of_a_cancelled_answer(tmp_path):
    model = InterruptedModel()
    model.set_replies("Once upon a time", "Shorter.")
    body = {"message": "Tell a story.", "conversation_id": "k"}
    async with serve_service(tmp_path, model) as (session, service):
        await add_tools(service)
        async with session.post("/api/agent", json=body, headers=AGENT) as response:
            async for event_id, _, data in read_events(response):
                if "content" in data:
                    async with session.post(f"/api/runs/{event_id.partition(':')[0]}/cancel") as cancelled:
                        assert cancelled.status == 200
        body = {"message": "Make it shorter.", "conversation_id": "k"}
        async with session.post("/agent/chat", json=body, headers=AGENT) as response:
            assert response.status == 200
    assert [(message.role, message.content) for message in model.requests[-1].messages[1:]] == [
        ("user", "Tell a story."),
        ("assistant", "Once upo\n\n[The run ended here without an answer.]"),
        ("user", "Make it shorter."),
    ]
