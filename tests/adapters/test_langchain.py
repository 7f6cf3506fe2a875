"""A library as tools of LangChain."""

import json

import openai
import pytest
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from tests.adapters.frameworks import SYSTEM, TASK, create_library, create_media_library, serve_written_calls
from tests.web.gateway.clients import ORDER, STATUS, ToolLog

from opposable import ToolDefinition, ToolLibrary
from opposable.adapters.langchain import create_tools

pytestmark = pytest.mark.anyio


async def test_an_agent_completes_both_steps_with_the_tools_of_a_library():
    log = ToolLog()
    async with serve_written_calls() as url, openai.DefaultAsyncHttpxClient() as http:
        chat = ChatOpenAI(model="m", base_url=url, api_key="none", http_async_client=http)
        agent = create_agent(chat, create_tools(create_library(log)), system_prompt=SYSTEM)
        state = await agent.ainvoke({"messages": [("user", TASK)]})
    assert state["messages"][-1].text == f"The order was {STATUS}."
    assert log.calls == [("find_order", "Ada Byron"), ("order_status", ORDER)]


async def test_a_failure_is_an_error_message():
    [find, _] = create_tools(create_library(ToolLog()))
    call = {"type": "tool_call", "id": "c1", "name": "find_order", "args": {}}
    message = await find.ainvoke(call)
    assert (message.status, "customer" in message.content) == ("error", True)


async def test_arguments_may_have_the_names_of_parameters_of_langchain():
    class Deploy:
        tool_id, timeout = "deploy", 5
        names = ("config", "run_manager", "self", "callbacks", "arguments", "tool_input")
        definition = ToolDefinition("deploy", "Deploy.", {"type": "object", "properties": {name: {} for name in names}})

        async def run(self, arguments, context):
            return arguments

    [deploy] = create_tools(ToolLibrary([Deploy()]))
    arguments = dict.fromkeys(Deploy.names, "production")
    message = await deploy.ainvoke({"type": "tool_call", "id": "c1", "name": "deploy", "args": arguments})
    assert json.loads(message.content) == arguments


async def test_images_and_files_are_content_blocks_where_the_api_takes_them():
    call = {"type": "tool_call", "id": "c1", "name": "show", "args": {}}
    [[show], [text_only]] = (
        create_tools(create_media_library(), media_in_content=True),
        create_tools(create_media_library()),
    )
    message, text = await show.ainvoke(call), await text_only.ainvoke(call)
    assert (text.content, text.artifact) == (message.content[0]["text"], message.artifact)
    assert message.content[1:] == message.artifact
    assert message.artifact == [
        {"type": "image", "base64": "cG5n", "mime_type": "image/png"},
        {"type": "image", "url": "https://example.com/b.png"},
        {"type": "file", "filename": "a.pdf", "base64": "cGRm", "mime_type": "application/pdf"},
        {"type": "file", "url": "https://example.com/b.pdf"},
    ]
    assert message.content_blocks[1]["base64"] == "cG5n"
