"""Tokens and costs by key and model."""

from contextlib import aclosing
from datetime import UTC, date, datetime

import aiohttp
import pytest
from tests.models.chat_server import chat_server, respond_json
from tests.web.api.chat_serving import create_settings
from tests.web.gateway.test_relay import connect
from tests.web.serving import serve_app

from opposable.models.fallback import FallbackModel
from opposable.models.scripted import ScriptedModel
from opposable.service.service import open_service
from opposable.store.keys import generate_key
from opposable.web.server import create_app

pytestmark = pytest.mark.anyio

CACHED_REPLY = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}},
}


async def test_relayed_and_other_requests_are_counted_by_key_and_model(tmp_path):
    key, record = generate_key("front end", ("chat",))
    admin_key, admin = generate_key("admin", ("admin",))
    settings = create_settings(tmp_path, prices={"openai:upstream": (1_000_000, 2_000_000, 500_000)})
    async with (
        chat_server(respond_json(CACHED_REPLY)) as server,
        aclosing(FallbackModel("relayed", [connect(server)])) as relayed,
        open_service(settings, {"relayed": relayed, "other": ScriptedModel("hi")}) as service,
    ):
        for stored in (record, admin):
            await service.store.keys.add(stored)
        async with serve_app(create_app(service)) as url, aiohttp.ClientSession(url) as session:
            for name in ("relayed", "other", "other"):
                body = {"model": name, "messages": [{"role": "user", "content": "hi"}]}
                headers = {"authorization": f"Bearer {key}"}
                async with session.post("/v1/chat/completions", json=body, headers=headers) as response:
                    assert response.status == 200
            async with session.get("/api/usage", headers=headers) as response:
                assert response.status == 403
            headers = {"authorization": f"Bearer {admin_key}"}
            async with session.get("/api/usage", headers=headers) as response:
                usage = await response.json()
            async with session.get("/api/usage", params={"since": "2999-01-01"}, headers=headers) as response:
                assert await response.json() == {"items": [], "days": [], "cost": 0}
    [day] = usage.pop("days")
    assert (date.fromisoformat(day.pop("day")) - datetime.now(UTC).date()).days in (-1, 0)
    assert day == {"requests": 3, "input_tokens": 31, "output_tokens": 17, "cached_tokens": 4, "cost": 23.0}
    common = {"key_id": record.key_id, "key_name": "front end"}
    assert usage == {
        "items": [
            {
                **common,
                "model": "scripted",
                "requests": 2,
                "input_tokens": 20,
                "output_tokens": 10,
                "cached_tokens": 0,
                "cost": None,
            },
            {
                **common,
                "model": "upstream",
                "requests": 1,
                "input_tokens": 11,
                "output_tokens": 7,
                "cached_tokens": 4,
                "cost": 23.0,
            },
        ],
        "cost": 23.0,
    }
