"""A library as tools of openai-agents."""

from typing import Literal

import openai
import pytest
from agents import (
    Agent,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    ToolOutputFileContent,
    ToolOutputImage,
)
from agents.tool_context import ToolContext
from tests.adapters.frameworks import SYSTEM, TASK, create_library, create_media_library, serve_written_calls
from tests.web.gateway.clients import ORDER, STATUS, ToolLog

from opposable.adapters.openai_agents import create_tools
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio


async def test_an_agent_completes_both_steps_with_the_tools_of_a_library():
    log = ToolLog()
    async with serve_written_calls() as url, openai.AsyncOpenAI(base_url=url, api_key="none") as sdk:
        model = OpenAIResponsesModel("m", sdk)
        agent = Agent("clerk", instructions=SYSTEM, model=model, tools=create_tools(create_library(log)))
        run = await Runner.run(agent, TASK, run_config=RunConfig(tracing_disabled=True))
    assert str(run.final_output) == f"The order was {STATUS}."
    assert log.calls == [("find_order", "Ada Byron"), ("order_status", ORDER)]


@pytest.mark.parametrize("arguments", ["{}", '{"customer": [', "nothing"])
async def test_invalid_arguments_are_reported_to_the_model(arguments):
    [find, _] = create_tools(create_library(log := ToolLog()))
    context = ToolContext(None, tool_name="find_order", tool_call_id="c1", tool_arguments=arguments)
    assert await find.on_invoke_tool(context, arguments)
    assert log.calls == []


async def test_valid_arguments_are_not_changed():
    received = []

    def show(ref: Literal["HEAD"] | str) -> str:
        """Show a commit."""
        received.append(ref)
        return "shown"

    [tool] = create_tools(ToolLibrary([show]))
    context = ToolContext(None, tool_name="show", tool_call_id="c1", tool_arguments='{"ref": "head"}')
    assert await tool.on_invoke_tool(context, '{"ref": "head"}') == "shown"
    assert received == ["head"]


async def test_images_and_files_follow_the_text():
    [tool] = create_tools(create_media_library())
    context = ToolContext(None, tool_name="show", tool_call_id="c1", tool_arguments="{}")
    output = await tool.on_invoke_tool(context, "{}")
    assert output[1:] == [
        ToolOutputImage(image_url="data:image/png;base64,cG5n"),
        ToolOutputImage(image_url="https://example.com/b.png"),
        ToolOutputFileContent(file_data="data:application/pdf;base64,cGRm", filename="a.pdf"),
        ToolOutputFileContent(file_url="https://example.com/b.pdf"),
    ]
