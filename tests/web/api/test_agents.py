"""The routes of agents."""

import pytest
from tests.web.api.chat_serving import serve_service

from opposable.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_agent_that_can_act_on_untrusted_text_gets_a_warning(tmp_path):
    async with serve_service(tmp_path, ScriptedModel()) as (session, _):
        for tool_id, method in (("mail", "GET"), ("pay", "POST")):
            endpoint = {"url_template": f"https://api.example.com/{tool_id}", "method": method}
            tool = {"tool_id": tool_id, "tool_type": "http", "endpoint": endpoint}
            async with session.post("/api/tools", json={**tool, "untrusted_output": tool_id == "mail"}) as response:
                assert response.status < 300, await response.text()
        agent = {"agent_id": "clerk", "tools": [{"tool_id": "mail"}, {"tool_id": "pay"}]}
        async with session.post("/api/agents", json=agent) as response:
            created = await response.json()
        async with session.put("/api/agents/clerk", json={**agent, "after_untrusted": "refuse"}) as response:
            changed = await response.json()
        async with session.get("/api/agents/clerk") as response:
            assert (await response.json()) == changed
        [warning] = created["warnings"]
        assert warning["message"].startswith("The agent reads untrusted text (mail) and can ")
        assert (warning["id"], warning["parameters"]) == ("untrusted_text", {"readers": "mail", "actors": "pay"})
        assert (changed["agent"]["after_untrusted"], changed["warnings"]) == ("refuse", [])
        async with session.put("/api/agents/clerk", json={**agent, "after_untrusted": "sometimes"}) as response:
            assert response.status == 422
