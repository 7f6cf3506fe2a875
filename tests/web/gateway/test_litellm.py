"""LiteLLM as a client of the gateway, in an environment of its own: it needs an older SDK of OpenAI."""

import asyncio
import subprocess
from pathlib import Path

import orjson
import pytest
from tests.web.gateway.clients import ORDER, STATUS, SYSTEM, TASK, TOOLS, ToolLog
from tests.web.gateway.test_clients import written
from tests.web.installed_clients import install_python_packages
from tests.web.serving import serve_models

from opposable.models.scripted import ScriptedModel
from opposable.models.text_protocol import TextProtocolModel

pytestmark = pytest.mark.anyio

SCRIPT = Path(__file__).parent / "litellm_client.py"


@pytest.fixture(scope="session")
def litellm_python() -> Path:
    """The Python of an environment with LiteLLM, which imports `mcp` for tools but does not require it."""
    return install_python_packages("litellm", "litellm==1.106.2", "mcp>=2,<3")


async def run_task(python: Path, url: str, api: str, log: ToolLog) -> str:
    """Run the task, and the tools that it calls."""
    environment = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_PROXY": "127.0.0.1"}
    process = await asyncio.create_subprocess_exec(
        *(str(python), str(SCRIPT), url, "m", api),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    sent: object = {"system": SYSTEM, "task": TASK, "tools": TOOLS}
    while True:
        process.stdin.write(orjson.dumps(sent) + b"\n")
        line = await process.stdout.readline()
        if not line:
            pytest.fail((await process.stderr.read()).decode()[-3000:])
        received = orjson.loads(line)
        if isinstance(received, str):
            await process.communicate()
            return received
        [argument] = received["arguments"].values()
        sent = log.call(received["name"], argument)


@pytest.mark.parametrize("api", ["chat", "chat-streamed", "responses", "messages"])
async def test_litellm_completes_both_steps(litellm_python, api):
    model = TextProtocolModel(ScriptedModel(lambda messages: written("hermes", messages), chunk_size=5), "protocol")
    log = ToolLog()
    async with serve_models(model) as url:
        answer = await run_task(litellm_python, url, api, log)
    assert log.calls == [("find_order", "Ada Byron"), ("order_status", ORDER)]
    assert answer == f"The order was {STATUS}."
