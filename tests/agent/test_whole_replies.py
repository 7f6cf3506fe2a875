"""Runs whose replies are not streamed: the loop asks a model of this library for each without its generator."""

import asyncio
import time

import pytest
from aiohttp import web
from tests.models.chat_server import build_completion, chat_server, respond_events, respond_json, respond_text

from opposable import Agent, Limits
from opposable.domain.errors import ModelError
from opposable.domain.messages import assistant_message, user_message
from opposable.models.openai_compatible import OpenAICompatibleModel
from opposable.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

MARKED_CALL = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'
FULL = respond_json({"error": {"message": "maximum context length exceeded"}}, 400)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def never(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(30)
    return web.Response()


async def test_calls_in_markers_and_a_full_window():
    history = [user_message("task"), assistant_message("word " * 2000), user_message("Add 2 and 3.")]
    async with (
        chat_server(FULL, build_completion(f"Let me add them: {MARKED_CALL}"), build_completion("It is 5.")) as server,
        Agent(f"{server.url}#m", [add]) as agent,
    ):
        finished = await agent.run(history)
    assert (finished.text, finished.turns, finished.tool_calls) == ("It is 5.", 2, 1)
    assert [message.content for message in finished.messages] == ["Let me add them:", "5", "It is 5."]
    assert ["stream" in body for body in server.bodies] == [False] * 3
    assert [message["role"] for message in server.bodies[1]["messages"]] == ["system", "user"]


async def test_the_deadline_and_a_cancellation_end_the_request():
    async with chat_server(never) as server, Agent(f"{server.url}#m", limits=Limits(seconds=0.2)) as agent:
        started = time.monotonic()
        assert (await agent.run("Wait.")).reason == "time"
        task = asyncio.create_task(agent.run("Wait."))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("choices", ["null", "[" * 1010 + "]" * 1010, "[" * 5000 + "]" * 5000])
@pytest.mark.parametrize("field", ["choices", "error"])
async def test_an_error_of_the_server_is_raised(choices, field):
    response = respond_text(f'{{"{field}": {choices}}}', content_type="application/json")
    async with chat_server(response) as server, Agent(f"{server.url}#m") as agent:
        with pytest.raises(ModelError, match=r"sent no chat completion|broke off|is not JSON"):
            await agent.run("Hello.")


class ModelWithAReply(ScriptedModel):
    """A model of a user, with methods of its own."""

    async def reply(self, prompt: str) -> str:
        """Answer one prompt."""
        return prompt

    async def fetch_whole_reply(self, prompt: str) -> str:
        """Answer one prompt."""
        return prompt


class RecordingModel(OpenAICompatibleModel):
    """A model of a user that changes how a model of this library streams."""

    def __init__(self, name, url):
        super().__init__(name, url)
        self.request_count = 0

    async def stream(self, *request):
        """Count the request."""
        self.request_count += 1
        async for part in super().stream(*request):
            yield part


async def test_a_model_is_asked_by_its_stream_alone():
    async with Agent(ModelWithAReply("Hello")) as agent:
        assert (await agent.run("Hi.")).text == "Hello"


async def test_a_replaced_stream_is_used():
    async with chat_server(build_completion("One."), build_completion("Two.")) as server:
        recording, replaced = RecordingModel("m", server.url), OpenAICompatibleModel("m", server.url)
        replaced.stream = recording.stream
        for model, answer in ((recording, "One."), (replaced, "Two.")):
            async with Agent(model) as agent:
                assert (await agent.run("Hi.")).text == answer
        await recording.aclose()
        await replaced.aclose()
    assert recording.request_count == 2


@pytest.mark.parametrize("count", [-1, 1e300, "many", [1], None])
@pytest.mark.parametrize("name", [5, ["add"], None])
@pytest.mark.parametrize("stream", [True, False])
async def test_values_of_wrong_types_in_a_reply_do_not_end_the_run(count, name, stream):
    call = {"index": 0, "id": 7, "type": "function", "function": {"name": name, "arguments": "{}"}}
    usage = {"prompt_tokens": count, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": count}}
    said = {"role": "assistant", "content": None, "reasoning_content": {"a": 1}, "tool_calls": [call]}
    kind = "delta" if stream else "message"
    body = {"choices": [{"index": 0, kind: said, "finish_reason": "tool_calls"}], "usage": usage}
    respond = respond_events if stream else respond_json
    async with chat_server(respond(body), build_completion("Done.")) as server, Agent(f"{server.url}#m") as agent:
        events = [event async for event in agent.stream("go")] if stream else [await agent.run("go")]
    finished = events[-1]
    assert (finished.text, finished.usage.input_tokens, finished.usage.output_tokens) == ("Done.", 11, 10)
    assert [(call.id, type(call.name)) for call in finished.messages[0].tool_calls] == [("7", str)]
