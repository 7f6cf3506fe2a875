"""Agents as models of the gateway."""

import orjson
import pytest
from tests.web.api.chat_serving import serve_service

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
