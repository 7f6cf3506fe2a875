"""Unknown fields in request bodies are reported, not ignored."""

import pytest
from tests.web.api.asking import open_service_client

pytestmark = pytest.mark.anyio

BODIES = {
    ("POST", "/api/approvals/a"): {"decision": "approve"},
    ("POST", "/api/databases/query"): {"sql": "SELECT 1"},
    ("PUT", "/agent/conversations/a"): {"title": "Stock"},
    ("POST", "/api/batches"): {"tasks": [{"id": "1", "task": "Greet."}]},
}


async def test_an_unknown_field_is_named(tmp_path):
    async with open_service_client(tmp_path) as ask:
        for (method, path), body in BODIES.items():
            error = (await ask.request_json(method, path, body | {"nonsense": 1}, 422))["error"]
            assert (path, "body.nonsense" in error["message"]) == (path, True)
