"""The session of the console: what a key may do."""

import pytest
from tests.web.api.asking import open_service_client

pytestmark = pytest.mark.anyio


async def test_the_session_has_the_scopes_of_the_key(tmp_path):
    async with open_service_client(tmp_path) as ask:
        key = await ask.create_key("chat", "tools:read")
        session = await ask.request_json("GET", "/api/session", key=key)
        assert (session["scopes"], session["models"]) == (["chat", "tools:read"], ["m"])
        profile = {
            "calling": "native",
            "assisted": False,
            "images": False,
            "image_placeholders": False,
            "context": None,
        }
        assert session["profiles"] == {"m": profile}


async def test_signing_in_needs_a_valid_key(tmp_path):
    async with open_service_client(tmp_path) as ask:
        await ask.request_json("POST", "/api/session", key="wrong", status=401)
    async with open_service_client(tmp_path, api_key="") as ask:
        error = await ask.request_json("POST", "/api/session", key="", status=400)
        assert error["error"]["message"] == "Send the API key in the header: Authorization: Bearer KEY."
