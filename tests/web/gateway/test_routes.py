"""The routes of the gateway in the application of the service."""

import pytest
from tests.web.api.chat_serving import create_settings

from opposable.models.scripted import ScriptedModel
from opposable.service.service import open_service
from opposable.web.server import create_app

pytestmark = pytest.mark.anyio


async def test_the_routes_of_the_gateway_are_matched_first_and_documented(tmp_path):
    """A request passes the routes before its own one by one."""
    async with open_service(create_settings(tmp_path), {"m": ScriptedModel("hi")}) as service:
        app = create_app(service)
        paths = [getattr(route, "path", "") for route in app.routes]
        assert paths[:3] == ["/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens"]
        assert {"/v1/chat/completions", "/v1/responses", "/api/tools"} <= app.openapi()["paths"].keys()
