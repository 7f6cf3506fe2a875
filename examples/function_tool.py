"""A Python function as a tool: its signature is the schema, and invalid arguments are reported to the model.

python examples/function_tool.py              with a scripted model
python examples/function_tool.py local        with the embedded model, or the name of another model
"""

import asyncio
import sys
from typing import Annotated

from pydantic import Field

from opposable import Agent, Model, ScriptedModel
from opposable.models.scripted import reply_with_calls, tool_call

STOCK = {"bolt": 4711, "nut": 12}


def stock(item: str, least: Annotated[int, Field(ge=0, le=9999)] = 0) -> dict[str, int | bool]:
    """How many pieces of an item are in stock, and whether these are enough.

    Args:
        item: the item's name, such as bolt.
        least: how many are needed.
    """
    pieces = STOCK.get(item, 0)
    return {"pieces": pieces, "enough": pieces >= least}


def make_scripted_model() -> ScriptedModel:
    """Return a model that sends an invalid argument and then corrects it."""
    return ScriptedModel(
        reply_with_calls(tool_call("stock", '{"item": "bolt", "least": "five thousand"}')),
        reply_with_calls(tool_call("stock", '{"item": "bolt", "least": 5000}')),
        "No: there are 4711 bolts.",
    )


async def main(model: Model | str) -> None:
    """Ask, then print the messages to the model and its answer."""
    async with Agent(model, [stock]) as agent:
        end = await agent.run("Are there 5000 pieces of the item 'bolt' in stock?")
    for message in end.messages:
        if message.role == "tool":
            print(f"sent to the model: {message.content}")
    print(f"answer: {end.text}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else make_scripted_model()))
