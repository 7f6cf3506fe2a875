"""The events of a run: text deltas, two concurrent calls, and each result as soon as it is available.

python examples/streaming.py              with a scripted model
python examples/streaming.py local        with the embedded model, or the name of another model
"""

import asyncio
import sys

from opposable import (
    Agent,
    Model,
    ModelOptions,
    ModelReplied,
    RunFinished,
    ScriptedModel,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from opposable.models.scripted import reply_with_calls, tool_call

POPULATION = {"Reykjavik": 139_000, "Oslo": 717_000}


async def population(city: str) -> int:
    """How many people live in a city.

    Args:
        city: the city's name, such as Oslo.
    """
    await asyncio.sleep(0.1 if city == "Oslo" else 0.05)
    return POPULATION[city]


def make_scripted_model() -> ScriptedModel:
    """Return a model that asks for two cities at once; the result of Reykjavik arrives first."""
    return ScriptedModel(
        reply_with_calls(
            tool_call("population", '{"city": "Oslo"}', "call_1"),
            tool_call("population", '{"city": "Reykjavik"}', "call_2"),
        ),
        "Oslo is larger than Reykjavik.",
        chunk_size=10,
    )


async def main(model: Model | str) -> None:
    """Print the events."""
    # A small model may answer from memory, so the first reply must call a tool.
    async with Agent(model, [population], options=ModelOptions(tool_choice="required")) as agent:
        async for event in agent.stream("Which city has more people, Oslo or Reykjavik?"):
            match event:
                case TextDelta(text):
                    print(f"text    {text!r}")
                case ToolStarted(call):
                    print(f"call    {call.name}{call.arguments_json}")
                case ToolFinished(call, result):
                    print(f"result  {call.arguments_json} -> {result.content}")
                case ModelReplied(turn):
                    print(f"reply   {turn}")
                case RunFinished(text, reason):
                    print(f"end     {reason}: {text}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else make_scripted_model()))
