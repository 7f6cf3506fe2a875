"""The semantic model of an agent with its check, and confirmed questions."""

from pathlib import Path

import pytest
from tests.web.api.asking import open_service_client

from opposable.domain.specs import AgentSpec

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]
URL = f"sqlite:///{ROOT / 'examples' / 'data' / 'chinook.sqlite'}"
ANALYST = {"x-agent-id": "analyst"}
MODEL = """
tables:
  invoice: {source: Invoice}
metrics:
  revenue: {expr: "sum(invoice.Total)", table: invoice, synonyms: [sales], unit: USD}
  mistake: {expr: "sum(invoice.Price)", table: invoice}
dimensions:
  country: {expr: invoice.BillingCountry, table: invoice}
"""


async def test_the_semantic_model_is_described_and_checked(tmp_path):
    (tmp_path / "model.yaml").write_text(MODEL)
    analyst = AgentSpec(agent_id="analyst", database=URL, semantics=str(tmp_path / "model.yaml"))
    async with open_service_client(tmp_path) as ask:
        await ask.service.store.agents.add(analyst)
        key = await ask.create_key("tools:read")
        found = await ask.request_json("GET", "/api/databases/semantics", key=key, headers=ANALYST)
        terms = {term["id"]: (term["section"], term["unit"], term["synonyms"]) for term in found["terms"]}
        assert terms == {
            "revenue": ("metrics", "USD", ["sales"]),
            "mistake": ("metrics", "", []),
            "country": ("dimensions", "", []),
        }
        finding = found["findings"][0]
        assert (finding["severity"], "Price" in finding["problem"]) == ("error", True)
        assert "mistake" in finding["location"]
        await ask.request_json("GET", "/api/databases/semantics", status=404)


async def test_questions_are_confirmed_listed_and_deleted(tmp_path):
    async with open_service_client(tmp_path) as ask:
        await ask.service.store.agents.add(AgentSpec(agent_id="analyst", database=URL))
        reader, writer = await ask.create_key("tools:read"), await ask.create_key("tools:write")
        path, body = "/api/databases/examples", {"question": "How many?", "sql": "SELECT count(*) FROM Genre"}
        await ask.request_json("POST", path, body, 403, key=reader, headers=ANALYST)
        wrong = await ask.request_json("POST", path, {**body, "sql": "DROP TABLE Genre"}, 400, headers=ANALYST)
        assert "does not run" in wrong["error"]["message"]
        added = await ask.request_json("POST", path, body, 201, key=writer, headers=ANALYST)
        listed = await ask.request_json("GET", path, key=reader, headers=ANALYST)
        assert listed["items"] == [added]
        await ask.request_json("DELETE", f"{path}/other", status=404, headers=ANALYST)
        await ask.request_json("DELETE", f"{path}/{added['example_id']}", status=204, headers=ANALYST)
        assert (await ask.request_json("GET", path, headers=ANALYST))["items"] == []
