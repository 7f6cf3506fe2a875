"""Real clients on the embedded model: through the gateway they do both steps, on the raw server none."""

import pytest

from opposable.domain.messages import user
from opposable.models.base import ModelOptions
from opposable.models.local import LocalModel
from opposable.models.text_protocol import TextProtocolModel
from opposable.models.weights import QWEN_CODER, default_directory, pull
from opposable.settings import Settings

from .clients import CLIENTS, ORDER, STATUS, Log
from .serving import serving

pytestmark = [pytest.mark.anyio, pytest.mark.real_model]


@pytest.fixture(scope="module")
def anyio_backend():
    """One loop for all tests here: they share one loaded model."""
    return "asyncio"


@pytest.fixture(scope="module")
async def local(anyio_backend):
    model = LocalModel(await pull(QWEN_CODER, default_directory(Settings().home)), context=4096)
    async for _ in model.stream((user("hi"),), (), ModelOptions(max_tokens=1)):
        pass  # the weights are loaded now
    yield model
    await model.aclose()


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
async def test_through_the_gateway_each_client_does_both_steps(local, client):
    async with serving({"local": TextProtocolModel(local, "protocol")}) as url:
        answer = await client(url, "local", "none", log := Log())
    assert ("order_status", ORDER) in log.calls
    assert STATUS.split()[0] in answer


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
async def test_on_the_raw_server_no_client_makes_a_single_call(local, client):
    url, key = f"{local._server.listening_address}/v1", local._client._endpoint._headers["authorization"].split()[1]
    answer = await client(url, local.name, key, log := Log())
    assert log.calls == []
    assert STATUS.split()[0] not in answer
