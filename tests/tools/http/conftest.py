"""A web server and a client that may call it."""

import pytest
from tests.safety.network.web_server import run_web_server

from opposable.safety.network.guarded_client import GuardedClient


@pytest.fixture
async def server():
    async with run_web_server() as server:
        yield server


@pytest.fixture
async def client(server):
    client = GuardedClient([server.host])
    yield client
    await client.aclose()
