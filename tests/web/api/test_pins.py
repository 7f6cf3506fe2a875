"""The accepted and waiting tools of an MCP server."""

import json
import sys
from pathlib import Path

import pytest
from tests.web.api.asking import open_service_client

pytestmark = pytest.mark.anyio
RAW_SERVER = Path(__file__).parents[2] / "tools" / "mcp" / "raw_server.py"
LOOKUP = {"name": "lookup", "description": "Finds a word.", "inputSchema": {"type": "object"}}


async def test_a_new_tool_waits_until_its_definition_is_accepted(tmp_path):
    (tmp_path / "tools.json").write_text(json.dumps([LOOKUP]))
    server = {
        "tool_type": "mcp_server",
        "tool_id": "words",
        "command": sys.executable,
        "args": [str(RAW_SERVER), str(tmp_path / "tools.json")],
        "pin": "ask",
    }
    async with open_service_client(tmp_path, programs=True) as ask:
        created = await ask.request_json("POST", "/api/tools", server, 201)
        assert created["accepted"] == []
        path = "/api/tools/words/pins"
        [pin] = (await ask.request_json("GET", path))["items"]
        assert (pin["tool"], pin["status"], pin["definition"], pin["pending"]) == ("lookup", "new", {}, LOOKUP)
        await ask.request_json("POST", path, {"tool": "lookup", "sha256": "0" * 64}, 409)
        body = {"tool": "lookup", "sha256": pin["pending_sha256"]}
        await ask.request_json("POST", path, body, 403, key=await ask.create_key("tools:read"))
        [accepted] = (await ask.request_json("POST", path, body))["items"]
        assert (accepted["status"], accepted["definition"], accepted["pending"]) == ("accepted", LOOKUP, None)
        assert [skill["skill_id"] for skill in (await ask.request_json("GET", "/skills"))["skills"]].count(
            "words.lookup"
        )
        await ask.request_json("GET", "/api/tools/missing/pins", status=404)
