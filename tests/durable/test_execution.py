"""Two replicas over HTTP and worker processes on one PostgreSQL: a run streams from any replica, while it goes on and after."""

import asyncio

import orjson
import pytest
from aiohttp import web
from tests.durable.farm import get_environment, kill, start_worker
from tests.models.chat_server import build_delta, chat_server
from tests.service.processes import serve_process

from opposable.client import Client
from opposable.domain.batches import BatchTask
from opposable.domain.specs import AgentSpec, RateLimit
from opposable.durable.call_slots import CallSlots
from opposable.durable.execution import RunExecutor
from opposable.models.scripted import ScriptedModel
from opposable.service.batches import create_batch
from opposable.service.service import open_service
from opposable.settings import Settings

pytestmark = pytest.mark.anyio

CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "echo", "arguments": '{"text":"the order"}'}}
WORDS = [f"word {number:03} " for number in range(60)]
HALF = 30


class HangingModel:
    """Streams a remark and a call, then a long answer, which hangs in the middle the first time."""

    def __init__(self) -> None:
        self.answers = 0
        self.url = ""

    @property
    def model(self) -> str:
        return f"{self.url}#scripted"

    async def reply(self, request: web.Request) -> web.StreamResponse:
        messages = orjson.loads(await request.read())["messages"]
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        if messages[-1]["role"] != "tool":
            chunks = [build_delta(content="Let me check."), build_delta(tool_calls=[CALL]), build_delta("tool_calls")]
        else:
            self.answers += 1
            chunks = [build_delta(content=word) for word in WORDS] + [build_delta("stop")]
        for number, chunk in enumerate(chunks):
            if number == HALF and self.answers == 1:
                await asyncio.sleep(3600)
            await response.write(b"data: " + orjson.dumps(chunk) + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response


async def test_a_run_streams_from_any_replica_and_outlives_its_worker(url, tmp_path):
    scripted = HangingModel()
    env = {name: value for name, value in get_environment(url, tmp_path).items() if name != "OPPOSABLE_HOME"}
    async with chat_server(scripted.reply) as upstream:
        scripted.url = upstream.url
        async with (
            serve_process(tmp_path, scripted.model, "--durable", **env) as (first, url_a),
            serve_process(tmp_path, scripted.model, "--durable", **env) as (_, url_b),
            Client(url_a) as a,
            Client(url_b) as b,
        ):
            worker = await start_worker(url, tmp_path, scripted)
            async for event in a.stream("Where is it?", conversation_id="c1"):
                run_id = event.run_id
                break  # the client leaves; a durable run goes on
            live = []
            async for event in b.follow_run(run_id):
                live.append(event)
                if "word 020" in get_content(live) and worker is not None:  # in the middle of the answer
                    assert (await b.get_run(run_id)).status == "running"
                    second = await start_worker(url, tmp_path, scripted)
                    await kill(worker)
                    worker = None
            first.kill()
            replayed = [event async for event in b.follow_run(run_id)]
            rest = [event async for event in b.follow_run(run_id, after=live[3].id)]
            run = await b.get_run(run_id)
            conversation = await b.get_conversation("c1")
            await kill(second)
    assert (run.status, run.text, scripted.answers) == ("finished", "".join(WORDS), 2)
    assert get_content(live) == run.text
    assert [event.data for event in live if event.kind == "commentary"] == [{"text": "Let me check."}]
    kinds = [event.kind for event in live if event.kind != "text"]
    assert kinds == [
        "run_started",
        "model_replied",
        "commentary",
        "tool_started",
        "tool_finished",
        "resumed",
        "model_replied",
        "run_finished",
    ]
    assert (replayed, rest) == (live, live[4:])
    assert [message["role"] for message in conversation.messages] == ["user", "assistant", "tool", "assistant"]


def get_content(events) -> str:
    return "".join(event.content for event in events if event.kind == "text")


async def test_the_limits_of_a_batch_delay_no_other_batch(url, tmp_path):
    settings = Settings(_env_file=None, home=tmp_path, database_url=url)
    async with open_service(settings, {"m": ScriptedModel()}) as service, CallSlots(url) as slots:

        async def add_batch(owner, seconds):
            agent, tasks = AgentSpec(agent_id="a"), [BatchTask("1", "task")]
            rates = {"search": RateLimit(calls=1, seconds=seconds)}
            return await create_batch(
                service.store, agent, tasks, owner=owner, tool_rates=rates, tool_concurrency={"search": 1}
            )

        async def set_owner(key_id):
            pass

        executor = RunExecutor(service, slots, set_owner)
        slow, fast = await add_batch("one", 9_000_000), await add_batch("other", 0.01)
        async with asyncio.timeout(10), executor._limit_call(slow, "m", "search"):
            for _ in range(2):
                async with executor._limit_call(fast, "m", "search"):
                    pass
