"""Event streams: clients that disconnect, silent models, concurrent clients."""

import asyncio

import aiohttp
import httpx2
import orjson
import pytest
from tests.models.chat_server import build_delta, chat_server
from tests.web.serving import SlowModel, serve_models

from opposable.domain.events import Reply, TextDelta
from opposable.domain.messages import assistant_message
from opposable.models.openai_compatible import OpenAICompatibleModel
from opposable.models.scripted import ScriptedModel
from opposable.models.text_protocol import TextProtocolModel
from opposable.web import sse_response as sse
from opposable.web.openai_errors import to_gateway_error

pytestmark = pytest.mark.anyio

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
TOOLS = [{"type": "function", "function": {"name": "add"}}]


@pytest.mark.parametrize("tools", [None, TOOLS], ids=["plain", "tools"])
@pytest.mark.parametrize("pause", [0.02, 1000], ids=["in mid-stream", "before the first word"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_disconnect_stops_the_model(stream, pause, tools):
    model = SlowModel(pause)
    async with serve_models(model) as url, aiohttp.ClientSession() as session:
        asking = asyncio.create_task(
            session.post(f"{url}/chat/completions", json=BODY | {"stream": stream, "tools": tools})
        )
        await asyncio.wait_for(model.begun.wait(), 5)
        await asyncio.sleep(0.2)
        assert not model.closed.is_set()
        if stream and pause < 1:
            (await asking).close()
        else:
            asking.cancel()
        await asyncio.wait_for(model.closed.wait(), 10)  # the model writes for 20 or more
        async with session.get(f"{url}/models") as response:  # the service goes on
            assert response.status == 200


async def test_a_disconnect_reaches_the_upstream_server():
    left = asyncio.Event()

    async def slowly(request):
        response = aiohttp.web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        try:
            while True:
                await response.write(b"data: " + orjson.dumps(build_delta(content="a")) + b"\n\n")
                await asyncio.sleep(0.02)
        finally:
            left.set()

    async with chat_server(slowly) as server:
        model = TextProtocolModel(OpenAICompatibleModel("up", server.url))
        async with serve_models(model) as url, aiohttp.ClientSession() as session:
            response = await session.post(f"{url}/chat/completions", json=BODY | {"stream": True})
            await response.content.readline()
            response.close()
            await asyncio.wait_for(left.wait(), 10)
        await model.aclose()


async def test_a_silent_model_keeps_the_connection_alive_with_comments(monkeypatch):
    monkeypatch.setattr(sse, "KEEPALIVE_SECONDS", 0.05)
    async with serve_models(SlowModel(0.2, 2)) as url, aiohttp.ClientSession() as session:
        response = await session.post(f"{url}/chat/completions", json=BODY | {"stream": True})
        lines = (await response.read()).decode().split("\n\n")
    assert lines[0] == ": still working"
    chunks = [line for line in lines if line and not line.startswith(":")]
    assert [orjson.loads(line[6:])["choices"][0]["delta"] for line in chunks[:-1]] == [
        {"role": "assistant", "content": ""},
        {"content": "a"},
        {"content": "a"},
        {},
    ]
    assert chunks[-1] == "data: [DONE]"


class MeetingModel:
    """Answers each request once `expected` of them are open."""

    name = "meeting"

    def __init__(self, expected):
        self.expected = expected
        self.open_requests = 0
        self.complete = asyncio.Event()

    async def stream(self, messages, tools=(), options=None):
        self.open_requests += 1
        if self.open_requests == self.expected:
            self.complete.set()
        await self.complete.wait()
        yield TextDelta("hello")
        yield Reply(assistant_message("hello"))

    async def aclose(self):
        pass


async def test_many_requests_are_answered_concurrently():
    async with (
        serve_models(MeetingModel(60)) as url,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):

        async def one(stream):
            async with session.post(f"{url}/chat/completions", json=BODY | {"stream": stream}) as response:
                return (await response.read()).decode()

        answers = await asyncio.wait_for(asyncio.gather(*(one(n % 2 == 0) for n in range(60))), 30)
    assert all("hello" in answer for answer in answers)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("chat/completions", BODY),
        ("messages", {**BODY, "max_tokens": 9}),
        ("responses", {"model": "m", "input": "hi"}),
    ],
)
async def test_each_event_is_one_line_for_every_client(path, body):
    """The lines of httpx, and so of LiteLLM, end at separators of Unicode too."""
    text = "a\u2028b\u2029c\x85\\\u2028d"
    async with (
        serve_models(ScriptedModel(text)) as url,
        httpx2.AsyncClient(trust_env=False) as client,
        client.stream("POST", f"{url}/{path}", json={**body, "stream": True}) as response,
    ):
        lines = [line async for line in response.aiter_lines() if line.startswith("data: {")]
    events = [orjson.loads(line.removeprefix("data: ")) for line in lines]
    if path == "chat/completions":
        deltas = [event["choices"][0]["delta"].get("content", "") for event in events]
    else:
        deltas = [event["delta"] for event in events if isinstance(event.get("delta"), str | dict)]
        deltas = [delta if isinstance(delta, str) else delta.get("text", "") for delta in deltas]
    assert "".join(deltas) == text


async def test_a_client_that_stops_reading_holds_a_bounded_part_of_the_stream(monkeypatch):
    monkeypatch.setattr(sse, "MAX_PENDING_BYTES", 1000)
    produced, can_read = [], asyncio.Event()
    received = bytearray()

    async def write():
        for number in range(100):
            event = b"data: " + bytes(94)
            produced.append(number)
            yield event
            await asyncio.sleep(0)

    async def send(message):
        await can_read.wait()
        received.extend(message.get("body", b""))

    async def receive():
        await asyncio.Event().wait()

    task = asyncio.create_task(sse.SseResponse(write(), to_gateway_error)({}, receive, send))
    await asyncio.sleep(0.2)
    assert len(produced) < 30
    can_read.set()
    await asyncio.wait_for(task, 10)
    assert len(received) == 100 * 100
