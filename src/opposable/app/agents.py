"""Agents for a task or a conversation, with their model and tools opened."""

import functools
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

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
"""Deliberately short: with longer ones, the embedded model explains its tools instead of calling them (measured)."""

DATA_CHAT_INSTRUCTIONS = "You are a helpful assistant. Answer questions about the data with ask_data."


def open_agent(
    settings: Settings,
    text: str,
    model: str | None = None,
    tool_names: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> AbstractAsyncContextManager[Agent]:
    """Open an agent for a task in the language of `text`; closed at the end.

    It has the named tools, or all tools without optional dependencies.
    """
    instructions = DEFAULT_INSTRUCTIONS[detect_language(text)]
    return open_chat_agent(settings, model, tool_names, on_progress=on_progress, instructions=instructions)


@asynccontextmanager
async def open_chat_agent(
    settings: Settings,
    model: str | None = None,
    tool_names: Sequence[str] = (),
    database: str | None = None,
    on_progress: OnProgress | None = None,
    *,
    instructions: str = "",
) -> AsyncIterator[Agent]:
    """Open an agent for a conversation; closed at the end.

    It has the named tools, or all tools without optional dependencies. With a database, it also has the tools over it,
    including `ask_data`, which asks the data team.
    """
    limits = create_limits(settings, model)
    opened_models: list[Model] = []

    async def get_model() -> Model:
        """Open the model after the database, so that a wrong path fails before any download."""
        if not opened_models:
            opened_models.append(await open_model(settings, model, on_progress))
        return opened_models[0]

    try:
        open_extra_tool = functools.partial(open_ask_data_tool, settings, get_model)
        async with (
            open_tools_and_database(settings, database, tool_names, open_extra_tool=open_extra_tool) as (
                library,
                opened_database,
            ),
            open_failure_memory(settings) as failure_memory,
        ):
            instructions = instructions or (
                DEFAULT_INSTRUCTIONS["en"] if opened_database is None or tool_names else DATA_CHAT_INSTRUCTIONS
            )
            yield Agent(
                await get_model(), library, instructions=instructions, limits=limits, failure_memory=failure_memory
            )
    finally:
        for opened_model in opened_models:
            await opened_model.aclose()
