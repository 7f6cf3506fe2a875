"""Agents ready for a task or a conversation."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from opposable.agent.agent import Agent
from opposable.app.data import asking
from opposable.app.given import limits
from opposable.app.models import OnProgress, ready_model
from opposable.app.tools import tools_and_data
from opposable.domain.language import Language, language_of
from opposable.settings import Settings

INSTRUCTIONS: dict[Language, str] = {"en": "You are a helpful assistant.", "zh": "你是一个有用的助手。"}
"""Few words on purpose: with more of them the embedded model explains its tools instead of calling them (measured)."""


@asynccontextmanager
async def agent(
    settings: Settings,
    text: str,
    model: str | None = None,
    tools: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> AsyncIterator[Agent]:
    """An agent for tasks in the language of `text`, with the tools named or all that only read; closed at the end."""
    async with tools_and_data(settings, names=tools) as (library, _):
        opened = await ready_model(settings, model, on_progress)
        instructions = INSTRUCTIONS[language_of(text)]
        async with Agent(opened, library, instructions=instructions, limits=limits(settings, model)) as made:
            yield made


@asynccontextmanager
async def chat_agent(
    settings: Settings,
    model: str | None = None,
    names: Sequence[str] = (),
    database: str | None = None,
    on_progress: OnProgress | None = None,
) -> AsyncIterator[Agent]:
    """An agent for a conversation, with the tools named or all that only read, and those over a database if given."""
    async with tools_and_data(settings, database, names) as (library, data):
        instructions = INSTRUCTIONS["en"] if data is None else await asking(data, "en")
        opened = await ready_model(settings, model, on_progress)
        async with Agent(opened, library, instructions=instructions, limits=limits(settings, model)) as made:
            yield made
