"""Databases: the list, the schema, and read-only queries."""

from pathlib import Path

import pytest
from tests.web.api.asking import open_service_client

from opposable.domain.specs import AgentSpec

pytestmark = pytest.mark.anyio
SAMPLE = Path(__file__).parents[3] / "examples" / "data" / "chinook.sqlite"
URL = f"sqlite:///{SAMPLE}"
ANALYST = {"x-agent-id": "analyst"}


async def test_the_database_of_an_agent_is_described_and_queried(tmp_path):
    async with open_service_client(tmp_path) as ask:
        await ask.service.store.agents.add(AgentSpec(agent_id="analyst", name="Music", database=URL))
        key = await ask.create_key("chat", "tools:read", "tools:write")
        listed = await ask.request_json("GET", "/api/databases", key=key)
        assert listed["items"] == [{"agent_id": "analyst", "database": "", "name": "Music", "has_semantics": False}]
        schema = await ask.request_json("GET", "/api/databases/schema", key=key, headers=ANALYST)
        tables = {table["name"]: table for table in schema["tables"]}
        assert (schema["dialect"], tables["Genre"]["row_count"]) == ("sqlite", 25)
        assert tables["Album"]["columns"][2]["references"] == "Artist.ArtistId"
        body = {"sql": "SELECT Name FROM Genre ORDER BY 1 LIMIT 2"}
        result = await ask.request_json("POST", "/api/databases/query", body, key=key, headers=ANALYST)
        assert (result["columns"], result["rows"]) == (["Name"], [["Alternative"], ["Alternative & Punk"]])


async def test_admins_can_ask_the_sample_database(tmp_path):
    async with open_service_client(tmp_path) as ask:
        [sample] = (await ask.request_json("GET", "/api/databases"))["items"]
        schema = await ask.request_json("GET", "/api/databases/schema", params={"database": sample["database"]})
        assert "Invoice" in [table["name"] for table in schema["tables"]]


async def test_a_query_cannot_write_and_only_admins_name_databases(tmp_path):
    async with open_service_client(tmp_path) as ask:
        key = await ask.create_key("chat", "tools:read", "tools:write")
        body = {"sql": "DELETE FROM Genre", "database": URL}
        await ask.request_json("POST", "/api/databases/query", body, key=key, status=403)
        error = await ask.request_json("POST", "/api/databases/query", body, status=400)
        assert "SELECT" in error["error"]["message"]
        await ask.request_json("POST", "/api/databases/query", {"sql": "SELECT 1"}, status=400)
