"""Agents as models of the gateway."""

import orjson
import pytest
from tests.web.api.chat_serving import serve_service

from opposable.domain.events import Reply
from opposable.domain.messages import assistant_message
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("preamble", ["", "Let me check.", "Let me think about that. " * 20])
async def test_the_deltas_of_an_agent_are_its_whole_answer(tmp_path, preamble):
    call = reply_with_calls(tool_call("calculator", '{"expression": "25*4"}'), text=preamble)
    body = {"model": "agent/default", "messages": [{"role": "user", "content": "25*4"}], "stream": True}
    async with (
        serve_service(tmp_path, ScriptedModel(call, "It is 100.")) as (session, service),
        session.post("/v1/chat/completions", json=body) as response,
    ):
        lines = [line[6:] for line in (await response.text()).splitlines() if line.startswith("data: {")]
        [active_run] = service.runner._ended_runs.values()
    deltas = [choice["delta"].get("content") for line in lines for choice in orjson.loads(line)["choices"]]
    assert "".join(filter(None, deltas)) == active_run.run.text
    assert active_run.run.text.endswith("It is 100.")


@pytest.mark.parametrize(
    ("finish", "completion_reason", "message_reason"),
    [
        ("stop", "stop", "end_turn"),
        ("length", "length", "max_tokens"),
        ("content_filter", "content_filter", "refusal"),
        ("incomplete", "length", "max_tokens"),
    ],
)
async def test_an_answer_that_was_cut_off_is_reported_as_such(tmp_path, finish, completion_reason, message_reason):
    body = {"model": "agent/default", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}
    reply = Reply(assistant_message("It is"), finish)
    async with serve_service(tmp_path, ScriptedModel(reply, reply)) as (session, _):
        async with session.post("/v1/chat/completions", json=body) as response:
            assert (await response.json())["choices"][0]["finish_reason"] == completion_reason
        async with session.post("/v1/messages", json=body) as response:
            assert (await response.json())["stop_reason"] == message_reason
