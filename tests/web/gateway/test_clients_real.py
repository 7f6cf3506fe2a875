"""Real clients on the embedded model: through the gateway they do both steps, on the raw server none."""

import pytest
from tests.web.gateway.clients import CLIENTS, ORDER, STATUS, ToolLog
from tests.web.serving import serve_models

from opposable.domain.messages import user_message
from opposable.models.base import ModelOptions
from opposable.models.embedded.llama_cpp import LocalModel
from opposable.models.embedded.weights import QWEN_CODER, get_models_directory, pull_weights
from opposable.models.factory import create_model
from opposable.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.real_model]


@pytest.fixture(scope="module")
def anyio_backend():
    """One loop for all tests here: they share one loaded model."""
    return "asyncio"


@pytest.fixture(scope="module")
async def local(anyio_backend):
    directory = get_models_directory(Settings().home)
    await pull_weights(QWEN_CODER, directory)
    model = create_model("local", models_directory=directory)
    async for _ in model.stream((user_message("hi"),), (), ModelOptions(max_tokens=1)):
        pass  # the weights are loaded now
    yield model
    await model.aclose()


def raw(model):
    """The model without anything around it."""
    while not isinstance(model, LocalModel):
        model = model.inner
    return model


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
async def test_through_the_gateway_each_client_completes_both_steps(local, client):
    async with serve_models({"local": local}) as url:
        answer = await client(url, "local", "none", log := ToolLog())
    assert log.calls[0] == ("find_order", "Ada Byron")
    assert log.calls[-1] == ("order_status", ORDER)
    assert STATUS.split()[0] in answer


RAW_CLIENTS = {name: client for name, client in CLIENTS.items() if "responses" not in name}
"""Without those of the responses API, which the raw server streams in a form that the SDK cannot read."""


@pytest.mark.parametrize("client", RAW_CLIENTS.values(), ids=RAW_CLIENTS)
async def test_on_the_raw_server_no_client_makes_a_single_call(local, client):
    server, endpoint = raw(local)._server, raw(local)._client._endpoint
    key = endpoint._headers["authorization"].removeprefix("Bearer ")
    answer = await client(f"{server.listening_address}/v1", local.name, key, log := ToolLog())
    assert log.calls == []
    assert STATUS.split()[0] not in answer
