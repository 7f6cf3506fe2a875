"""A library as a toolset of pydantic-ai."""

import openai
import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from tests.adapters.frameworks import SYSTEM, TASK, create_library, serve_written_calls
from tests.web.gateway.clients import ORDER, STATUS, ToolLog

from opposable import ToolLibrary
from opposable.adapters.pydantic_ai import create_toolset

pytestmark = pytest.mark.anyio


async def test_an_agent_completes_both_steps_with_the_tools_of_a_library():
    log = ToolLog()
    async with serve_written_calls() as url, openai.AsyncOpenAI(base_url=url, api_key="none") as sdk:
        model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=sdk))
        agent = Agent(model, instructions=SYSTEM, toolsets=[create_toolset(create_library(log))])
        assert (await agent.run(TASK)).output == f"The order was {STATUS}."
    assert log.calls == [("find_order", "Ada Byron"), ("order_status", ORDER)]


async def test_invalid_arguments_are_retried():
    replies = [[ToolCallPart("find_order", {})], [TextPart("done")]]
    seen = []

    def reply(messages, info):
        seen.append(getattr(messages[-1].parts[-1], "outcome", ""))
        return ModelResponse(replies[len(seen) - 1])

    agent = Agent(FunctionModel(reply), toolsets=[create_toolset(create_library(ToolLog()))])
    assert (await agent.run("hi")).output == "done"
    assert seen == ["", "retried"]


async def test_an_argument_may_be_named_context():
    def search(context: str, self: str) -> str:
        return f"{context} {self}"

    replies = [[ToolCallPart("search", {"context": "all", "self": "me"})], [TextPart("done")]]
    seen = []

    def reply(messages, info):
        seen.append(messages[-1].parts[-1].content)
        return ModelResponse(replies[len(seen) - 1])

    agent = Agent(FunctionModel(reply), toolsets=[create_toolset(ToolLibrary([search]))])
    await agent.run("hi")
    assert seen == ["hi", "all me"]
