"""Real clients of the APIs, each doing one task with tools in two steps."""

import json
from collections.abc import Awaitable, Callable
from functools import partial

import anthropic
import openai

TASK = "Customer Ada Byron asks where her order is. Find her order number first; you do not know it yet."
SYSTEM = "You are a helpful assistant."
STATUS = "delivered on 14 May"
ORDER = "4711"

FIND = "Find the order number of a customer."
LOOK = "Look up the status of an order."


def run_tool(name: str, argument: str) -> str:
    """The tools themselves: the second only works with what the first one gives."""
    if name == "find_order":
        return f"order number: {ORDER}" if argument.lower() == "ada byron" else "there is no such customer"
    return (
        f"status: {STATUS}"
        if argument == ORDER
        else f"error: there is no order {argument}; find_order tells the number"
    )


class ToolLog:
    """The tools with what was called of them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def call(self, name: str, argument: str) -> str:
        self.calls.append((name, argument))
        return run_tool(name, argument)

    def find_order(self, customer: str) -> str:
        return self.call("find_order", customer)

    def order_status(self, order_number: str) -> str:
        return self.call("order_status", order_number)


def build_tool_schema(name: str, about: str, parameter: str) -> dict:
    parameters = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    return {"type": "function", "function": {"name": name, "description": about, "parameters": parameters}}


TOOLS = [build_tool_schema("find_order", FIND, "customer"), build_tool_schema("order_status", LOOK, "order_number")]


async def openai_sdk(url: str, model: str, key: str, log: ToolLog) -> str:
    """The loop everybody writes by hand, with whole replies."""
    async with openai.AsyncOpenAI(base_url=url, api_key=key) as sdk:
        history = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
        for _ in range(6):
            said = (await sdk.chat.completions.create(model=model, messages=history, tools=TOOLS)).choices[0].message
            history.append(said.model_dump(exclude_none=True))
            if not said.tool_calls:
                return said.content or ""
            history += [_run_call(call, log) for call in said.tool_calls]
    return ""


async def openai_sdk_stream(url: str, model: str, key: str, log: ToolLog) -> str:
    """The same, streamed."""
    async with openai.AsyncOpenAI(base_url=url, api_key=key) as sdk:
        history = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
        for _ in range(6):
            async with sdk.chat.completions.stream(model=model, messages=history, tools=TOOLS) as stream:
                said = (await stream.get_final_completion()).choices[0].message
            history.append({"role": "assistant", "content": said.content, **_dump_calls(said.tool_calls)})
            if not said.tool_calls:
                return said.content or ""
            history += [_run_call(call, log) for call in said.tool_calls]
    return ""


def _dump_calls(calls) -> dict:
    made = [
        {"id": c.id, "type": "function", "function": c.function.model_dump(include={"name", "arguments"})}
        for c in calls or ()
    ]
    return {"tool_calls": made} if made else {}


def _run_call(call, log: ToolLog) -> dict:
    [argument] = json.loads(call.function.arguments).values()
    return {"role": "tool", "tool_call_id": call.id, "content": log.call(call.function.name, argument)}


async def openai_responses(url: str, model: str, key: str, log: ToolLog, *, streamed: bool = False) -> str:
    """The responses API; each request continues the previous response."""
    tools = [{"type": "function", **tool["function"]} for tool in TOOLS]
    items, previous = TASK, None
    async with openai.AsyncOpenAI(base_url=url, api_key=key) as sdk:
        for _ in range(6):
            options = {"model": model, "input": items, "instructions": SYSTEM, "tools": tools}
            if previous:
                options["previous_response_id"] = previous
            if streamed:
                async with sdk.responses.stream(**options) as stream:
                    response = await stream.get_final_response()
            else:
                response = await sdk.responses.create(**options)
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                return response.output_text
            previous = response.id
            items = []
            for call in calls:
                [argument] = json.loads(call.arguments).values()
                output = log.call(call.name, argument)
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
    return ""


async def anthropic_sdk(url: str, model: str, key: str, log: ToolLog, *, streamed: bool = False) -> str:
    """The messages API of Anthropic."""
    tools = [
        {
            "name": t["function"]["name"],
            "description": t["function"]["description"],
            "input_schema": t["function"]["parameters"],
        }
        for t in TOOLS
    ]
    history = [{"role": "user", "content": TASK}]
    async with anthropic.AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key=key) as sdk:
        for _ in range(6):
            options = {"model": model, "max_tokens": 500, "system": SYSTEM, "messages": history, "tools": tools}
            if streamed:
                async with sdk.messages.stream(**options) as stream:
                    message = await stream.get_final_message()
            else:
                message = await sdk.messages.create(**options)
            history.append({"role": "assistant", "content": message.content})
            uses = [block for block in message.content if block.type == "tool_use"]
            if not uses:
                return "".join(block.text for block in message.content if block.type == "text")
            results = []
            for use in uses:
                [argument] = use.input.values()
                results.append({"type": "tool_result", "tool_use_id": use.id, "content": log.call(use.name, argument)})
            history.append({"role": "user", "content": results})
    return ""


async def pydantic_ai(url: str, model: str, key: str, log: ToolLog, *, api: str = "chat") -> str:
    from pydantic_ai import Agent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    async with (
        openai.AsyncOpenAI(base_url=url, api_key=key) as sdk,
        anthropic.AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key=key) as anthropic_sdk,
    ):
        if api == "anthropic":
            chat = AnthropicModel(model, provider=AnthropicProvider(anthropic_client=anthropic_sdk))
        else:
            kind = OpenAIChatModel if api == "chat" else OpenAIResponsesModel
            chat = kind(model, provider=OpenAIProvider(openai_client=sdk))
        agent = Agent(chat, instructions=SYSTEM)

        agent.tool_plain(description=FIND)(log.find_order)
        agent.tool_plain(description=LOOK)(log.order_status)
        return (await agent.run(TASK)).output


async def langchain_anthropic(url: str, model: str, key: str, log: ToolLog) -> str:
    from langchain.agents import create_agent
    from langchain_anthropic import ChatAnthropic
    from langchain_core.tools import tool

    tools = [tool(description=FIND)(log.find_order), tool(description=LOOK)(log.order_status)]
    chat = ChatAnthropic(model=model, base_url=url.removesuffix("/v1"), api_key=key, max_tokens=500)
    agent = create_agent(chat, tools, system_prompt=SYSTEM)
    try:
        state = await agent.ainvoke({"messages": [("user", TASK)]})
    finally:
        await chat._async_client.close()
    return state["messages"][-1].text


async def langchain(url: str, model: str, key: str, log: ToolLog, *, responses: bool = False) -> str:
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    tools = [tool(description=FIND)(log.find_order), tool(description=LOOK)(log.order_status)]
    async with openai.DefaultAsyncHttpxClient() as http:
        chat = ChatOpenAI(model=model, base_url=url, api_key=key, http_async_client=http, use_responses_api=responses)
        agent = create_agent(chat, tools, system_prompt=SYSTEM)
        state = await agent.ainvoke({"messages": [("user", TASK)]})
    return state["messages"][-1].text


async def openai_agents(
    url: str, model: str, key: str, log: ToolLog, *, streamed: bool = False, responses: bool = False
) -> str:
    from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner, Tool, function_tool

    tools: list[Tool] = [
        function_tool(log.find_order, description_override=FIND),
        function_tool(log.order_status, description_override=LOOK),
    ]
    async with openai.AsyncOpenAI(base_url=url, api_key=key) as sdk:
        chat = OpenAIResponsesModel(model, sdk) if responses else OpenAIChatCompletionsModel(model, sdk)
        agent = Agent("clerk", instructions=SYSTEM, model=chat, tools=tools)
        config = RunConfig(tracing_disabled=True)
        if not streamed:
            return str((await Runner.run(agent, TASK, run_config=config)).final_output)
        run = Runner.run_streamed(agent, TASK, run_config=config)
        async for _ in run.stream_events():
            pass
        return str(run.final_output)


Client = Callable[[str, str, str, ToolLog], Awaitable[str]]
"""Takes base URL, model, key and the tools; gives the answer."""

CLIENTS: dict[str, Client] = {
    "openai": openai_sdk,
    "openai, streamed": openai_sdk_stream,
    "openai responses": openai_responses,
    "openai responses, streamed": partial(openai_responses, streamed=True),
    "anthropic": anthropic_sdk,
    "anthropic, streamed": partial(anthropic_sdk, streamed=True),
    "pydantic-ai": pydantic_ai,
    "pydantic-ai, responses": partial(pydantic_ai, api="responses"),
    "pydantic-ai, anthropic": partial(pydantic_ai, api="anthropic"),
    "langchain-openai": langchain,
    "langchain-openai, responses": partial(langchain, responses=True),
    "langchain-anthropic": langchain_anthropic,
    "openai-agents": openai_agents,
    "openai-agents, streamed": partial(openai_agents, streamed=True),
    "openai-agents, responses": partial(openai_agents, responses=True),
    "openai-agents, responses, streamed": partial(openai_agents, streamed=True, responses=True),
}
