"""The routes of API keys."""

import pytest
from tests.web.api.asking import open_service_client

from opposable.web.principal import SCOPES

pytestmark = pytest.mark.anyio


async def test_a_key_may_have_every_scope(tmp_path):
    async with open_service_client(tmp_path) as ask:
        created = await ask.request_json("POST", "/api/keys", {"name": "all", "scopes": sorted(SCOPES)}, 201)
        assert created["details"]["scopes"] == sorted(SCOPES)


@pytest.mark.parametrize("rate_limit", [{"calls": 10**30}, {"calls": 1, "seconds": 1e308}])
async def test_a_rate_limit_beyond_every_use_is_rejected(tmp_path, rate_limit):
    async with open_service_client(tmp_path) as ask:
        body = {"name": "fast", "rate_limit": rate_limit}
        response = await ask.request_json("POST", "/api/keys", body, 422)
        assert [field["field"].startswith("body.rate_limit.") for field in response["error"]["fields"]] == [True]
