"""A service that takes one prompt and gives back text or a dict, and knows nothing of tools: it gets them by text.

python examples/plain_text_service.py              a service of ten lines that answers from a script
python examples/plain_text_service.py local        the embedded model, asked for plain text only
"""

import asyncio
import re
import sys
from contextlib import AsyncExitStack
from typing import Any

from opposable import Agent, CallableModel, Message, Model, TextProtocolModel
from opposable.domain.events import Reply
from opposable.models.factory import create_unwrapped_model


def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


def answer_prompt(prompt: str) -> dict[str, Any]:
    """Answer a prompt with a dict that contains text, as an HTTP endpoint might."""
    result = re.search(r"Result of add:\n(\d+)", prompt)
    if result:
        return {"response": f'{{"action": "finish", "content": "The sum is {result[1]}."}}'}
    return {
        "response": """I will add them.
```json
{"reasoning": "a sum", "action": "tool_call", "tool_calls": [{"name": "add", "arguments": {"a": "2500", "b": 42}}]}
```"""
    }


def make_text_only_model(model: Model) -> CallableModel:
    """Reduce a model to a service as above: it takes a prompt and returns text."""

    async def generate(prompt: str) -> str:
        async for event in model.stream((Message("user", prompt),)):
            if isinstance(event, Reply):
                return event.message.content
        return ""

    return CallableModel(generate, model.name)


async def main(model_name: str = "") -> None:
    """Ask one question that needs the tool."""
    async with AsyncExitStack() as stack:
        plain = CallableModel(answer_prompt, "a service")
        if model_name:
            real = create_unwrapped_model(model_name)
            stack.push_async_callback(real.aclose)
            plain = make_text_only_model(real)
        agent = await stack.enter_async_context(Agent(TextProtocolModel(plain, "protocol"), [add]))
        run_finished = await agent.run("What is 2500 + 42?")
    for call in [call for message in run_finished.messages for call in message.tool_calls]:
        print(
            f"{call.name}{call.arguments_json} written as {call.dialect}, repaired: {', '.join(call.repairs) or 'nothing'}"
        )
    print(run_finished.text)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))
