"""Questions about a database: the team that answers them, and an agent with the SQL tools."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from opposable.agent.agent import Agent
from opposable.app.inputs import create_limits
from opposable.app.lazy_failure_store import open_failure_memory
from opposable.app.models import OnProgress, open_model
from opposable.app.tool_factory import create_sql_tools
from opposable.app.tools import closing_database
from opposable.ask.catalog.index_cache import get_default_cache_dir
from opposable.ask.semantics.draft import draft_semantic_model
from opposable.ask.semantics.lint import Finding, lint_semantic_model
from opposable.ask.semantics.loader import load_semantic_model
from opposable.ask.team import answer_text as telling
from opposable.ask.team.factory import open_team
from opposable.ask.team.interfaces import TeamOptions
from opposable.ask.team.team import Team
from opposable.domain.answers import DataAnswer
from opposable.domain.events import RunFinished
from opposable.domain.language import Language, detect_language
from opposable.domain.localized_text import localize
from opposable.domain.tools import ToolResult
from opposable.domain.usage import Usage
from opposable.models.base import ForcedTool, Model, ModelOptions
from opposable.parsers import escape_special_tokens
from opposable.settings import Settings
from opposable.sql.database import Database
from opposable.sql.factory import open_database
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary

SQL_AGENT_INSTRUCTIONS: dict[Language, str] = {
    "en": """You answer questions about a {dialect} database. Call sql_execute with one {dialect} SELECT statement that gives just what is asked for; write the values you look for into it.
Use only these tables and columns:

{schema}

When you see the rows, answer the question from them in one short sentence.""",
    "zh": """你回答关于 {dialect} 数据库的问题。用一条 {dialect} SELECT 语句调用 sql_execute，只查询问题所要的内容，条件的值直接写进语句。
只能使用以下表和列：

{schema}

看到结果后，根据结果用一句简短的中文回答问题。""",
}


SQL_AGENT_OPTIONS = ModelOptions(tool_choice=ForcedTool("sql_execute"))
"""A data question begins with a query; what follows is the model's choice."""

MAX_TOOL_ROWS = 20
"""Rows of an answer that the tool `ask_data` tells a model."""


@asynccontextmanager
async def open_data_team(
    settings: Settings,
    database: str,
    model: str | None = None,
    semantics: str | Path = "",
    on_progress: OnProgress | None = None,
) -> AsyncIterator[Team]:
    """The team over one database, in the terms of the semantic model in the file `semantics` if one is given.

    All is closed at the end. Raises: `BadInput` when there is no such database, or the semantic model cannot be read.
    """
    async with closing_database(await open_database(database)) as opened:
        defined = load_semantic_model(semantics) if semantics else None
        answering = await open_model(settings, model, on_progress)
        try:
            cache, parts = catalog_directory(settings), TeamOptions(time_limit_seconds=settings.seconds)
            async with open_team(answering, opened, semantics=defined, cache_directory=cache, options=parts) as team:
                yield team
        finally:
            await answering.aclose()


class TeamPool:
    """Teams by what they answer from, each opened when it is first asked for: `async with Teams(...)` closes them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._exit_stack = AsyncExitStack()
        self._teams: dict[tuple[str, str, str], Team] = {}
        self._open_lock = asyncio.Lock()

    async def get(self, model: Model, database: str, semantics: str = "") -> Team:
        """The team over this database. Raises: `BadInput` as `data_team`."""
        key = (model.name, database, semantics)
        async with self._open_lock:
            if key not in self._teams:
                defined = load_semantic_model(semantics) if semantics else None
                opened = await self._exit_stack.enter_async_context(closing_database(await open_database(database)))
                team = open_team(model, opened, semantics=defined, cache_directory=catalog_directory(self._settings))
                self._teams[key] = await self._exit_stack.enter_async_context(team)
            return self._teams[key]

    async def __aenter__(self) -> "TeamPool":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exit_stack.aclose()


async def lint_semantics(file: str | Path, database: str) -> tuple[Finding, ...]:
    """What is wrong with a semantic model on this database, errors first. Raises: `BadInput`."""
    model = load_semantic_model(file)
    async with closing_database(await open_database(database)) as opened:
        return await lint_semantic_model(model, opened)


async def draft_semantics(database: str) -> str:
    """The YAML of a first semantic model of this database. Raises: `BadInput`."""
    async with closing_database(await open_database(database)) as opened:
        return await draft_semantic_model(opened)


def catalog_directory(settings: Settings) -> Path:
    """The folder where catalogues are kept."""
    return settings.home / "catalogs" if settings.home is not None else get_default_cache_dir()


def create_ask_data_tool(team: Team, tool_id: str = "ask_data") -> FunctionTool:
    """A team as a tool for any agent: `ask_data(question)`, which only reads."""

    async def ask_data(question: str) -> dict[str, Any]:
        """Answer a question about the data in the database: how many, which, top, average, trends.

        Args:
            question: The whole question in plain words, in English or Chinese. No SQL.
        """
        answer, _ = await team.answer(question)
        told = {
            "answer": answer.text,
            "sql": answer.sql,
            "columns": answer.columns,
            "rows": answer.rows[:MAX_TOOL_ROWS],
            "row_count": len(answer.rows),
            "assumptions": answer.assumptions,
        }
        return {key: value for key, value in told.items() if value not in ("", ())}

    return FunctionTool(ask_data, tool_id=tool_id, timeout=600.0)


@asynccontextmanager
async def open_ask_data_tool(
    settings: Settings, get_model: Callable[[], Awaitable[Model]], database: Database
) -> AsyncIterator[FunctionTool]:
    """`ask_data` over an opened database, by the model that `answering` gives; what it opens is closed at the end."""
    model = await get_model()
    async with open_team(
        model,
        database,
        cache_directory=catalog_directory(settings),
        options=TeamOptions(time_limit_seconds=settings.seconds),
    ) as team:
        yield create_ask_data_tool(team)


@asynccontextmanager
async def open_data_agent(
    settings: Settings, question: str, database: str, model: str | None = None, on_progress: OnProgress | None = None
) -> AsyncIterator[Agent]:
    """An agent with the SQL tools over one database, which is told its schema; both are closed at the end.

    Raises: `BadInput` when there is no such database.
    """
    async with closing_database(await open_database(database)) as opened:
        answering = await open_model(settings, model, on_progress)
        library = ToolLibrary(create_sql_tools(opened))
        instructions = await build_sql_agent_instructions(opened, detect_language(question))
        async with (
            open_failure_memory(settings) as learnt,
            Agent(
                answering,
                library,
                instructions=instructions,
                limits=create_limits(settings, model),
                options=SQL_AGENT_OPTIONS,
                failure_memory=learnt,
            ) as made,
        ):
            yield made


async def build_sql_agent_instructions(database: Database, language: Language) -> str:
    """What a model is told of a database before it is asked about it."""
    schema = await database.get_schema()
    return SQL_AGENT_INSTRUCTIONS[language].format(
        dialect=database.dialect, schema=escape_special_tokens(schema.to_ddl())
    )


def answer_from_run(run_finished: RunFinished, results: Sequence[ToolResult], language: Language = "en") -> DataAnswer:
    """The answer of an agent: the run's text with the last query that worked, its corrections in `language`.

    Nothing vouches for what an agent makes of rows, so its confidence is 0.5 where some came, else 0.
    """
    data: Mapping[str, Any] = next(
        (r.data for r in reversed(results) if r.failure is None and r.name == "sql_execute"),
        {},
    )
    columns, rows = tuple(data.get("columns", ())), tuple(tuple(row) for row in data.get("rows", ()))
    return DataAnswer(
        run_finished.text,
        data.get("sql", ""),
        columns,
        rows,
        bool(data.get("truncated")),
        telling.build_chart(columns, rows),
        corrections=tuple(localize(correction, language) for correction in data.get("corrections", ())),
        confidence=0.5 if data else 0.0,
    )


def answer_to_json(answer: DataAnswer, usage: Usage) -> dict[str, Any]:
    """An answer for scripts and clients."""
    return {
        "answer": answer.text,
        "sql": answer.sql,
        "columns": answer.columns,
        "rows": answer.rows,
        "truncated": answer.truncated,
        "chart": answer.chart,
        "assumptions": answer.assumptions,
        "corrections": answer.corrections,
        "confidence": answer.confidence,
        "usage": {"total_tokens": usage.total_tokens, "model_calls": usage.requests},
    }
