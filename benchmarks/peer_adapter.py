"""The adapter for the peer benchmark. Copy it to `adapters/ours.py` and create a virtual environment `venvs/ours`
with this package only (`uv venv venvs/ours; uv pip install --python venvs/ours --compile-bytecode .`)."""

NAME = "opposable"
VENV = "ours"
IMPORT = "from opposable import Agent"
DISTS = ["opposable"]


def build(base_url, tools, max_turns):
    from opposable import Agent, Limits

    return Agent(f"{base_url}#gpt-4o", tools, limits=Limits(turns=max_turns, tool_calls=None))


async def run(agent, prompt):
    return (await agent.run(prompt)).text


async def stream(agent, prompt):
    from opposable import TextDelta

    async for event in agent.stream(prompt):
        if type(event) is TextDelta:
            yield event.text


async def close(agent):
    await agent.aclose()
