"""Questions about a database: the team that answers them, and an agent with the SQL tools."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from opposable.agent.agent import Agent
from opposable.app.inputs import limits
from opposable.app.lazy_failure_store import learning
from opposable.app.models import OnProgress, ready_model
from opposable.app.tool_factory import sql_tools
from opposable.app.tools import closing
from opposable.ask.catalog.catalog import default_cache
from opposable.ask.semantics.draft import draft
from opposable.ask.semantics.lint import Finding, lint
from opposable.ask.semantics.loader import load_semantics
from opposable.ask.team import answer_text as telling
from opposable.ask.team.factory import open_team
from opposable.ask.team.team import Parts, Team
from opposable.ask.team.translations import in_language
from opposable.domain.answers import DataAnswer
from opposable.domain.events import RunFinished
from opposable.domain.language import Language, language_of
from opposable.domain.tools import ToolResult
from opposable.domain.usage import Usage
from opposable.models.base import Model, ModelOptions, Named
from opposable.parsers import defuse
from opposable.settings import Settings
from opposable.sql.database import Database
from opposable.sql.factory import open_database
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary

ASKING: dict[Language, str] = {
    "en": """You answer questions about a {dialect} database. Call sql_execute with one {dialect} SELECT statement that gives just what is asked for; write the values you look for into it.
Use only these tables and columns:

{schema}

When you see the rows, answer the question from them in one short sentence.""",
    "zh": """你回答关于 {dialect} 数据库的问题。用一条 {dialect} SELECT 语句调用 sql_execute，只查询问题所要的内容，条件的值直接写进语句。
只能使用以下表和列：

{schema}

看到结果后，根据结果用一句简短的中文回答问题。""",
}


ASK_THE_DATABASE = ModelOptions(tool_choice=Named("sql_execute"))
"""A data question begins with a query; what follows is the model's choice."""

SHOWN_ROWS = 20
"""Rows of an answer that the tool `ask_data` tells a model."""


@asynccontextmanager
async def data_team(
    settings: Settings,
    database: str,
    model: str | None = None,
    semantics: str | Path = "",
    on_progress: OnProgress | None = None,
) -> AsyncIterator[Team]:
    """The team over one database, in the terms of the semantic model in the file `semantics` if one is given.

    All is closed at the end. Raises: `BadInput` when there is no such database, or the semantic model cannot be read.
    """
    async with closing(await open_database(database)) as opened:
        defined = load_semantics(semantics) if semantics else None
        answering = await ready_model(settings, model, on_progress)
        try:
            cache, parts = catalogs(settings), Parts(seconds=settings.seconds)
            async with open_team(answering, opened, semantics=defined, cache=cache, parts=parts) as team:
                yield team
        finally:
            await answering.aclose()


class Teams:
    """Teams by what they answer from, each opened when it is first asked for: `async with Teams(...)` closes them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._closing = AsyncExitStack()
        self._opened: dict[tuple[str, str, str], Team] = {}
        self._opening = asyncio.Lock()

    async def get(self, model: Model, database: str, semantics: str = "") -> Team:
        """The team over this database. Raises: `BadInput` as `data_team`."""
        key = (model.name, database, semantics)
        async with self._opening:
            if key not in self._opened:
                defined = load_semantics(semantics) if semantics else None
                opened = await self._closing.enter_async_context(closing(await open_database(database)))
                team = open_team(model, opened, semantics=defined, cache=catalogs(self._settings))
                self._opened[key] = await self._closing.enter_async_context(team)
            return self._opened[key]

    async def __aenter__(self) -> "Teams":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._closing.aclose()


async def lint_semantics(file: str | Path, database: str) -> tuple[Finding, ...]:
    """What is wrong with a semantic model on this database, errors first. Raises: `BadInput`."""
    model = load_semantics(file)
    async with closing(await open_database(database)) as opened:
        return await lint(model, opened)


async def draft_semantics(database: str) -> str:
    """The YAML of a first semantic model of this database. Raises: `BadInput`."""
    async with closing(await open_database(database)) as opened:
        return await draft(opened)


def catalogs(settings: Settings) -> Path:
    """The folder where catalogues are kept."""
    return settings.home / "catalogs" if settings.home is not None else default_cache()


def ask_data(team: Team, tool_id: str = "ask_data") -> FunctionTool:
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
            "rows": answer.rows[:SHOWN_ROWS],
            "row_count": len(answer.rows),
            "assumptions": answer.assumptions,
        }
        return {key: value for key, value in told.items() if value not in ("", ())}

    return FunctionTool(ask_data, tool_id=tool_id, timeout=600.0)


@asynccontextmanager
async def ask_data_tool(
    settings: Settings, answering: Callable[[], Awaitable[Model]], database: Database
) -> AsyncIterator[FunctionTool]:
    """`ask_data` over an opened database, by the model that `answering` gives; what it opens is closed at the end."""
    model = await answering()
    async with open_team(model, database, cache=catalogs(settings), parts=Parts(seconds=settings.seconds)) as team:
        yield ask_data(team)


@asynccontextmanager
async def data_agent(
    settings: Settings, question: str, database: str, model: str | None = None, on_progress: OnProgress | None = None
) -> AsyncIterator[Agent]:
    """An agent with the SQL tools over one database, which is told its schema; both are closed at the end.

    Raises: `BadInput` when there is no such database.
    """
    async with closing(await open_database(database)) as opened:
        answering = await ready_model(settings, model, on_progress)
        library = ToolLibrary(sql_tools(opened))
        instructions = await asking(opened, language_of(question))
        async with (
            learning(settings) as learnt,
            Agent(
                answering,
                library,
                instructions=instructions,
                limits=limits(settings, model),
                options=ASK_THE_DATABASE,
                learning=learnt,
            ) as made,
        ):
            yield made


async def asking(database: Database, language: Language) -> str:
    """What a model is told of a database before it is asked about it."""
    schema = await database.schema()
    return ASKING[language].format(dialect=database.dialect, schema=defuse(schema.text()))


def answer(end: RunFinished, results: Sequence[ToolResult], language: Language = "en") -> DataAnswer:
    """The answer of an agent: the run's text with the last query that worked, its corrections in `language`.

    Nothing vouches for what an agent makes of rows, so its confidence is 0.5 where some came, else 0.
    """
    data: Mapping[str, Any] = next(
        (r.data for r in reversed(results) if r.failure is None and r.name == "sql_execute"),
        {},
    )
    columns, rows = tuple(data.get("columns", ())), tuple(tuple(row) for row in data.get("rows", ()))
    return DataAnswer(
        end.text,
        data.get("sql", ""),
        columns,
        rows,
        bool(data.get("truncated")),
        telling.chart(columns, rows),
        corrections=tuple(in_language(told, language) for told in data.get("corrections", ())),
        confidence=0.5 if data else 0.0,
    )


def answer_as_json(answer: DataAnswer, usage: Usage) -> dict[str, Any]:
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
