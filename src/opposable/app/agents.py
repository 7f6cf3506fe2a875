"""Agents ready for a task or a conversation."""

import functools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from opposable.agent.agent import Agent
from opposable.app.ask import ask_data_tool
from opposable.app.inputs import limits
from opposable.app.lazy_failure_store import learning
from opposable.app.models import OnProgress, ready_model
from opposable.app.tools import tools_and_data
from opposable.domain.language import Language, language_of
from opposable.models.base import Model
from opposable.settings import Settings

INSTRUCTIONS: dict[Language, str] = {"en": "You are a helpful assistant.", "zh": "你是一个有用的助手。"}
"""Few words on purpose: with more of them the embedded model explains its tools instead of calling them (measured)."""

ASK_THE_TEAM = "You are a helpful assistant. Answer questions about the data with ask_data."


@asynccontextmanager
async def agent(
    settings: Settings,
    text: str,
    model: str | None = None,
    tools: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> AsyncIterator[Agent]:
    """An agent for tasks in the language of `text`, with the tools named or all that only read; closed at the end."""
    async with tools_and_data(settings, names=tools) as (library, _), learning(settings) as learnt:
        opened = await ready_model(settings, model, on_progress)
        instructions = INSTRUCTIONS[language_of(text)]
        bounds = limits(settings, model)
        async with Agent(opened, library, instructions=instructions, limits=bounds, learning=learnt) as made:
            yield made


@asynccontextmanager
async def chat_agent(
    settings: Settings,
    model: str | None = None,
    names: Sequence[str] = (),
    database: str | None = None,
    on_progress: OnProgress | None = None,
) -> AsyncIterator[Agent]:
    """An agent for a conversation, with the tools named or all that only read, and those over a database if given.

    One of these is the team that answers questions about data, `ask_data`.
    """
    opened: list[Model] = []

    async def answering() -> Model:
        """The model, opened once the database is: a wrong path is told before anything is fetched."""
        if not opened:
            opened.append(await ready_model(settings, model, on_progress))
        return opened[0]

    try:
        asking = functools.partial(ask_data_tool, settings, answering)
        async with (
            tools_and_data(settings, database, names, asking=asking) as (library, data),
            learning(settings) as learnt,
        ):
            instructions = INSTRUCTIONS["en"] if data is None or names else ASK_THE_TEAM
            bounds = limits(settings, model)
            yield Agent(await answering(), library, instructions=instructions, limits=bounds, learning=learnt)
    finally:
        for each in opened:
            await each.aclose()
