"""Real clients on the embedded model: through the gateway they do both steps, on the raw server none."""

from contextlib import aclosing

import openai
import pytest
from agents import Agent, OpenAIResponsesModel, RunConfig, Runner
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from tests.adapters.frameworks import create_library
from tests.web.api.chat_serving import serve_service
from tests.web.api.test_agui import build_input, read_agui_events
from tests.web.gateway.clients import CLIENTS, ORDER, STATUS, SYSTEM, TASK, ToolLog
from tests.web.gateway.test_litellm import run_task
from tests.web.installed_clients import install_python_packages
from tests.web.serving import serve_models

from opposable.adapters import langchain, openai_agents
from opposable.adapters.pydantic_ai import create_toolset
from opposable.domain.events import Reply
from opposable.domain.messages import user_message
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions
from opposable.models.embedded.llama_cpp import LocalModel
from opposable.models.embedded.pull import pull_weights
from opposable.models.embedded.weights import QWEN_CODER, get_models_directory
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
    reuse_replies(raw(model))
    yield model
    await model.aclose()


def reuse_replies(model):
    """Compute the reply to each request once: most clients lead to the same requests, and the temperature is 0."""
    stream, parts_by_request = model.stream, {}

    async def stream_once(messages, tools=(), options=DEFAULT_OPTIONS):
        request = repr((messages, tools, options))
        if request in parts_by_request:
            for part in parts_by_request[request]:
                yield part
            return
        parts = []
        async with aclosing(stream(messages, tools, options)) as computed:
            async for part in computed:
                parts.append(part)
                if type(part) is Reply:
                    parts_by_request[request] = parts
                yield part

    model.stream = stream_once


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


async def serve_embedded_library(local, run):
    """The answer of an agent of another framework with the tools of a library, on the embedded model."""
    log = ToolLog()
    async with serve_models({"local": local}) as url, openai.AsyncOpenAI(base_url=url, api_key="none") as sdk:
        answer = await run(sdk, create_library(log))
    assert log.calls == [("find_order", "Ada Byron"), ("order_status", ORDER)]
    assert STATUS.split()[0] in answer


async def test_an_agent_of_pydantic_ai_completes_both_steps_with_a_library(local):
    async def run(sdk, library):
        model = OpenAIChatModel("local", provider=OpenAIProvider(openai_client=sdk))
        agent = PydanticAgent(model, instructions=SYSTEM, toolsets=[create_toolset(library)])
        return (await agent.run(TASK)).output

    await serve_embedded_library(local, run)


async def test_an_agent_of_openai_agents_completes_both_steps_with_a_library(local):
    async def run(sdk, library):
        tools = openai_agents.create_tools(library)
        agent = Agent("clerk", instructions=SYSTEM, model=OpenAIResponsesModel("local", sdk), tools=tools)
        return str((await Runner.run(agent, TASK, run_config=RunConfig(tracing_disabled=True))).final_output)

    await serve_embedded_library(local, run)


async def test_an_agent_of_langchain_completes_both_steps_with_a_library(local):
    async def run(sdk, library):
        async with openai.DefaultAsyncHttpxClient() as http:
            chat = ChatOpenAI(model="local", base_url=str(sdk.base_url), api_key="none", http_async_client=http)
            agent = create_agent(chat, langchain.create_tools(library), system_prompt=SYSTEM)
            state = await agent.ainvoke({"messages": [("user", TASK)]})
        return state["messages"][-1].text

    await serve_embedded_library(local, run)


async def test_litellm_completes_both_steps(local):
    python = install_python_packages("litellm", "litellm==1.106.2", "mcp>=2,<3")
    async with serve_models({"m": local}) as url:
        answer = await run_task(python, url, "chat-streamed", log := ToolLog())
    assert log.calls == [("find_order", "Ada Byron"), ("order_status", ORDER)]
    assert STATUS.split()[0] in answer


async def test_a_client_of_agui_gets_the_answer_of_a_tool(local, tmp_path):
    async with serve_service(tmp_path, local) as (session, _):
        events = await read_agui_events(session, build_input("What is 4711 * 13? Use the calculator."))
    assert "61243" in "".join(event.content for event in events if event.type.value == "TOOL_CALL_RESULT")
    answer = "".join(event.delta for event in events if event.type.value == "TEXT_MESSAGE_CONTENT")
    assert "61243" in answer.replace(",", "")


RAW_CLIENTS = {name: CLIENTS[name] for name in ("openai", "openai, streamed", "anthropic")}
"""One of each API and form; the raw server streams the responses API in a form that the SDK cannot read."""


@pytest.mark.parametrize("client", RAW_CLIENTS.values(), ids=RAW_CLIENTS)
async def test_on_the_raw_server_no_client_makes_a_single_call(local, client):
    server = raw(local)._client
    key = server._endpoint._headers["authorization"].removeprefix("Bearer ")
    answer = await client(server._base_url, local.name, key, log := ToolLog())
    assert log.calls == []
    assert STATUS.split()[0] not in answer
