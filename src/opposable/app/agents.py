"""Agents ready for a task or a conversation."""

import functools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from opposable.agent.agent import Agent
from opposable.app.ask import open_ask_data_tool
from opposable.app.inputs import create_limits
from opposable.app.lazy_failure_store import open_failure_memory
from opposable.app.models import OnProgress, open_model
from opposable.app.tools import open_tools_and_database
from opposable.domain.language import Language, detect_language
from opposable.models.base import Model
from opposable.settings import Settings

DEFAULT_INSTRUCTIONS: dict[Language, str] = {"en": "You are a helpful assistant.", "zh": "你是一个有用的助手。"}
"""Few words on purpose: with more of them the embedded model explains its tools instead of calling them (measured)."""

DATA_CHAT_INSTRUCTIONS = "You are a helpful assistant. Answer questions about the data with ask_data."


@asynccontextmanager
async def open_agent(
    settings: Settings,
    text: str,
    model: str | None = None,
    tool_names: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> AsyncIterator[Agent]:
    """An agent for tasks in the language of `text`, with the tools named or all that only read; closed at the end."""
    async with (
        open_tools_and_database(settings, tool_names=tool_names) as (library, _),
        open_failure_memory(settings) as learnt,
    ):
        opened = await open_model(settings, model, on_progress)
        instructions = DEFAULT_INSTRUCTIONS[detect_language(text)]
        bounds = create_limits(settings, model)
        async with Agent(opened, library, instructions=instructions, limits=bounds, failure_memory=learnt) as made:
            yield made


@asynccontextmanager
async def open_chat_agent(
    settings: Settings,
    model: str | None = None,
    tool_names: Sequence[str] = (),
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
            opened.append(await open_model(settings, model, on_progress))
        return opened[0]

    try:
        asking = functools.partial(open_ask_data_tool, settings, answering)
        async with (
            open_tools_and_database(settings, database, tool_names, open_extra_tool=asking) as (library, data),
            open_failure_memory(settings) as learnt,
        ):
            instructions = DEFAULT_INSTRUCTIONS["en"] if data is None or tool_names else DATA_CHAT_INSTRUCTIONS
            bounds = create_limits(settings, model)
            yield Agent(await answering(), library, instructions=instructions, limits=bounds, failure_memory=learnt)
    finally:
        for each in opened:
            await each.aclose()
