"""A library as a toolset of pydantic-ai."""

import re

import openai
import pytest
from pydantic_ai import Agent, BinaryContent, DocumentUrl, ImageUrl
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from tests.adapters.frameworks import SYSTEM, TASK, create_library, create_media_library, serve_written_calls
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


def create_agent(library: ToolLibrary, *calls: ToolCallPart):
    """Return an agent whose model makes these calls, one a turn, and the list of the parts and tools it was sent."""
    requests = []

    def reply(messages, info):
        requests.append((messages[-1].parts, [tool.name for tool in info.function_tools]))
        return ModelResponse([calls[len(requests) - 1] if len(requests) <= len(calls) else TextPart("done")])

    return Agent(FunctionModel(reply), toolsets=[create_toolset(library)]), requests


async def test_images_and_files_follow_the_text():
    agent, requests = create_agent(create_media_library(), ToolCallPart("show", {}))
    await agent.run("hi")
    assert requests[1][0][0].content[1:] == [
        BinaryContent(b"png", media_type="image/png"),
        ImageUrl("https://example.com/b.png"),
        BinaryContent(b"pdf", media_type="application/pdf"),
        DocumentUrl("https://example.com/b.pdf"),
    ]


async def test_a_failure_has_the_outcome_failed_and_its_text_unchanged():
    def pay() -> str:
        raise ValueError("no money")

    agent, requests = create_agent(ToolLibrary([pay]), ToolCallPart("pay", {}))
    await agent.run("hi")
    [result] = requests[1][0]
    assert (result.outcome, result.content) == ("failed", "pay failed: ValueError: no money")


async def test_a_result_that_was_cut_can_be_read_on():
    def log() -> str:
        return "a" * 900 + "the end" + "b" * 900

    library = ToolLibrary([log], max_result_characters=1000)
    agent, requests = create_agent(library, ToolCallPart("log", {}), read_on := ToolCallPart("read_result", {}))

    def find_handle(messages, info):
        text = str(messages[-1].parts[0].content)
        if match := re.search(r"read_result\(handle='(\w+)'", text):
            read_on.args = {"handle": match[1], "find": "the end"}
        return reply(messages, info)

    reply, agent.model.function = agent.model.function, find_handle
    await agent.run("hi")
    assert [tools for _, tools in requests] == [["log"], ["log", "read_result"], ["log", "read_result"]]
    assert "the end" in requests[2][0][0].content
