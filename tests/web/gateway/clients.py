"""Real clients of the OpenAI API, each doing one task with tools in two steps."""

import json
from collections.abc import Awaitable, Callable
from functools import partial

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


async def pydantic_ai(url: str, model: str, key: str, log: ToolLog) -> str:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async with openai.AsyncOpenAI(base_url=url, api_key=key) as sdk:
        agent = Agent(OpenAIChatModel(model, provider=OpenAIProvider(openai_client=sdk)), instructions=SYSTEM)

        @agent.tool_plain(description=FIND)
        def find_order(customer: str) -> str:
            return log.call("find_order", customer)

        @agent.tool_plain(description=LOOK)
        def order_status(order_number: str) -> str:
            return log.call("order_status", order_number)

        return (await agent.run(TASK)).output


async def langchain(url: str, model: str, key: str, log: ToolLog) -> str:
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool(description=FIND)
    def find_order(customer: str) -> str:
        return log.call("find_order", customer)

    @tool(description=LOOK)
    def order_status(order_number: str) -> str:
        return log.call("order_status", order_number)

    async with openai.DefaultAsyncHttpxClient() as http:
        chat = ChatOpenAI(model=model, base_url=url, api_key=key, http_async_client=http)
        agent = create_agent(chat, [find_order, order_status], system_prompt=SYSTEM)
        state = await agent.ainvoke({"messages": [("user", TASK)]})
    return state["messages"][-1].text


async def openai_agents(url: str, model: str, key: str, log: ToolLog, *, streamed: bool = False) -> str:
    from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool

    @function_tool(description_override=FIND)
    def find_order(customer: str) -> str:
        return log.call("find_order", customer)

    @function_tool(description_override=LOOK)
    def order_status(order_number: str) -> str:
        return log.call("order_status", order_number)

    async with openai.AsyncOpenAI(base_url=url, api_key=key) as sdk:
        chat = OpenAIChatCompletionsModel(model, sdk)
        agent = Agent("clerk", instructions=SYSTEM, model=chat, tools=[find_order, order_status])
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
    "pydantic-ai": pydantic_ai,
    "langchain": langchain,
    "openai-agents": openai_agents,
    "openai-agents, streamed": partial(openai_agents, streamed=True),
}
