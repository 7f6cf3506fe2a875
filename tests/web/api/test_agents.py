"""The routes of agents."""

import pytest
from tests.web.api.asking import open_service_client
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


async def test_the_password_of_a_database_is_for_admins(tmp_path):
    url = "postgresql://reader:sekret@db.example.com/shop"
    async with open_service_client(tmp_path) as ask:
        created = await ask.request_json("POST", "/api/agents", {"agent_id": "clerk", "database": url}, 201)
        assert created["agent"]["database"] == url
        key = await ask.create_key("tools:read", "tools:write")
        redacted = "postgresql://[redacted]@db.example.com/shop"
        shown = await ask.request_json("GET", "/api/agents/clerk", key=key)
        assert shown["agent"]["database"] == redacted
        for path in ("", "/clerk/versions", "/clerk/export"):
            assert "sekret" not in (await ask("GET", f"/api/agents{path}", key=key)).text
        export = (await ask("GET", "/api/agents/clerk/export", key=key)).text
        bound = await ask.request_json("POST", "/api/agents/clerk/tools", {"tool_id": "echo"}, key=key)
        assert bound["agent"]["database"] == redacted
        unbound = await ask.request_json("DELETE", "/api/agents/clerk/tools/echo", key=key)
        assert unbound["agent"]["database"] == redacted
        changed = shown["agent"] | {"name": "Clerk"}
        assert (await ask.request_json("PUT", "/api/agents/clerk", changed, key=key))["agent"]["database"] == redacted
        assert (await ask("POST", "/api/agents/import", key=key, content=export)).status_code == 200
        assert (await ask.request_json("GET", "/api/agents/clerk"))["agent"]["database"] == url
        other = shown["agent"] | {"database": "postgresql://db.example.com/shop"}
        await ask.request_json("PUT", "/api/agents/clerk", other, 403, key=key)
