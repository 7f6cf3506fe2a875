"""Questions about a database: the data team, and an agent with the SQL tools."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from opposable.agent.agent import Agent
from opposable.app.data_sources import closing_database, open_data_source
from opposable.app.inputs import create_limits
from opposable.app.lazy_failure_store import open_failure_memory
from opposable.app.models import MissingModel, OnProgress, is_missing, open_model
from opposable.app.query_examples import load_examples
from opposable.app.tool_factory import create_sql_tools
from opposable.ask.semantics.draft import draft_semantic_model
from opposable.ask.semantics.lint import Finding, lint_semantic_model
from opposable.ask.semantics.loader import load_semantic_model
from opposable.ask.team.answer_text import build_chart
from opposable.ask.team.factory import open_team
from opposable.ask.team.team import Team, TeamOptions
from opposable.domain.answers import DataAnswer
from opposable.domain.errors import OpposableError
from opposable.domain.events import RunFinished
from opposable.domain.language import Language, detect_language
from opposable.domain.localized_text import localize
from opposable.domain.records import QueryExample
from opposable.domain.tools import ToolResult
from opposable.domain.usage import Usage
from opposable.models.base import DEFAULT_OPTIONS, ForcedTool, Model, ModelOptions
from opposable.models.profile import get_profile
from opposable.parsers import escape_special_tokens
from opposable.settings import Settings
from opposable.sql.database import Database
from opposable.sql.factory import open_database
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary

log = logging.getLogger("opposable.ask")

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
"""The first call of a small model must be a query. Others may ask a question, or say that the data lack the answer."""

TEAM_SECONDS = 600.0
"""The age at which a team of a service reads its database again. No question takes as long."""

MAX_TOOL_ROWS = 20
"""Rows of an answer that the tool `ask_data` returns to a model."""


@asynccontextmanager
async def open_data_team(
    settings: Settings,
    database: str,
    model: str | None = None,
    semantics: str | Path = "",
    on_progress: OnProgress | None = None,
) -> AsyncIterator[Team]:
    """Open the team over one database; everything is closed at the end.

    With a semantic model, whose questions need no model, the embedded one is not downloaded.

    Args:
        settings: The settings.
        database: The URL or path of the database.
        model: The name of the model (default: that of the settings).
        semantics: The path of a semantic model.
        on_progress: Called while the embedded model is downloaded.

    Raises:
        BadInput: The database does not exist, or the semantic model is invalid.
    """
    async with open_data_source(database) as opened:
        semantic_model = await asyncio.to_thread(load_semantic_model, semantics) if semantics else None
        needs_no_model = semantic_model is not None and is_missing(settings, model)
        opened_model = MissingModel(settings) if needs_no_model else await open_model(settings, model, on_progress)
        try:
            async with open_team(
                opened_model,
                opened,
                semantics=semantic_model,
                options=create_team_options(settings),
                load_examples=lambda: load_examples(settings, opened.identity),
            ) as team:
                yield team
        finally:
            await opened_model.aclose()


def create_team_options(settings: Settings) -> TeamOptions:
    """Return the options of a team that the settings name."""
    return TeamOptions(time_limit_seconds=settings.seconds, private_columns=settings.private_columns)


_TeamKey = tuple[int, str, str, bool | None]


@dataclass(frozen=True, slots=True)
class _PooledTeam:
    team: Team
    resources: AsyncExitStack
    opened_at: float


class TeamPool:
    """A pool of teams by model, database and semantic model, opened on first use.

    A team older than `TEAM_SECONDS` is replaced, so that new tables, columns and values are known, or closed if its
    database is asked no more. Questions that it is answering go on: it is closed as much later.

    Args:
        settings: The settings.
        load_examples: Returns the confirmed questions of a database by its identity.
        clock: Returns a time in seconds.
    """

    def __init__(
        self,
        settings: Settings,
        load_examples: Callable[[str], Awaitable[Sequence[QueryExample]]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._load_examples = load_examples
        self._clock = clock
        self._teams: dict[_TeamKey, _PooledTeam] = {}
        self._open_locks: WeakValueDictionary[_TeamKey, asyncio.Lock] = WeakValueDictionary()
        self._closings: set[asyncio.Task[None]] = set()

    async def get(self, model: Model, database: str, semantics: str = "", *, assisted: bool | None = None) -> Team:
        """Return the team over this database. `assisted` None follows the model's profile.

        Raises:
            BadInput: The database does not exist, or the semantic model is invalid. Once a team is open, it is returned.
        """
        key = (id(model), database, semantics, assisted)  # models of two servers may have the same name
        if not self._is_current(self._teams.get(key)):
            async with self._open_locks.setdefault(key, asyncio.Lock()):
                earlier = self._teams.get(key)
                if not self._is_current(earlier):
                    opening = self._open(model, database, semantics, assisted=assisted)
                    self._teams[key] = await (opening if earlier is None else self._replace(earlier, opening))
                    self._close_expired_teams()
        return self._teams[key].team

    def _close_expired_teams(self) -> None:
        """Close the teams that were asked nothing for `TEAM_SECONDS`, but for those that are opened again now."""
        expired = [key for key, pooled in self._teams.items() if not self._is_current(pooled)]
        for key in expired:
            if key not in self._open_locks:
                self._close_later(self._teams.pop(key))

    def _is_current(self, pooled: _PooledTeam | None) -> bool:
        return pooled is not None and self._clock() - pooled.opened_at < TEAM_SECONDS

    async def _replace(self, earlier: _PooledTeam, opening: Awaitable[_PooledTeam]) -> _PooledTeam:
        """Return the team that is opened in place of an earlier one, or the earlier one if that fails."""
        try:
            current = await opening
        except OpposableError as error:
            log.info("The tables of a database cannot be read again: %s", error)
            return replace(earlier, opened_at=self._clock())
        self._close_later(earlier)
        return current

    def _close_later(self, pooled: _PooledTeam) -> None:
        async def close() -> None:
            async with pooled.resources:
                await asyncio.sleep(TEAM_SECONDS)

        task = asyncio.create_task(close())
        self._closings.add(task)
        task.add_done_callback(self._closings.discard)

    async def _open(self, model: Model, database: str, semantics: str, *, assisted: bool | None) -> _PooledTeam:
        semantic_model = await asyncio.to_thread(load_semantic_model, semantics) if semantics else None
        async with AsyncExitStack() as stack:  # closes the database if the team cannot be opened
            opened = await stack.enter_async_context(closing_database(await open_database(database)))
            team = await stack.enter_async_context(
                open_team(
                    model,
                    opened,
                    semantics=semantic_model,
                    options=replace(create_team_options(self._settings), assisted=assisted),
                    load_examples=partial(self._load_examples, opened.identity) if self._load_examples else None,
                )
            )
            return _PooledTeam(team, stack.pop_all(), self._clock())

    async def __aenter__(self) -> "TeamPool":
        return self

    async def __aexit__(self, *_: object) -> None:
        closings = [*self._closings]
        for task in closings:
            task.cancel()
        await asyncio.gather(*closings, return_exceptions=True)
        async with AsyncExitStack() as stack:  # closes all, also if one fails
            for pooled in self._teams.values():
                await stack.enter_async_context(pooled.resources)


async def lint_semantics(file: str | Path, database: str) -> tuple[Finding, ...]:
    """Check a semantic model against a database and return the findings, errors first.

    Raises:
        BadInput: The file or the database cannot be read.
    """
    model = await asyncio.to_thread(load_semantic_model, file)
    async with open_data_source(database) as opened:
        return await lint_semantic_model(model, opened)


async def draft_semantics(database: str) -> str:
    """Return the YAML of a draft semantic model of a database.

    Raises:
        BadInput: The database cannot be read.
    """
    async with open_data_source(database) as opened:
        return await draft_semantic_model(opened)


def create_ask_data_tool(team: Team, tool_id: str = "ask_data") -> FunctionTool:
    """Create the read-only tool `ask_data(question)`, which asks a team."""

    async def ask_data(question: str) -> dict[str, Any]:
        """Answer a question about the data in the database: how many, which, top, average, trends.

        Args:
            question: The whole question in plain words, in English or Chinese. No SQL.
        """
        answer, _ = await team.answer(question)
        fields = {
            "answer": answer.text,
            "sql": answer.sql,
            "columns": answer.columns,
            "rows": answer.rows[:MAX_TOOL_ROWS],
            "row_count": len(answer.rows),
            "assumptions": answer.assumptions,
            "warnings": answer.warnings,
        }
        return {key: value for key, value in fields.items() if value not in ("", ())}

    return FunctionTool(ask_data, tool_id=tool_id, timeout=600.0, read_only=True, untrusted_output=True)


@asynccontextmanager
async def open_ask_data_tool(
    settings: Settings, get_model: Callable[[], Awaitable[Model]], database: Database
) -> AsyncIterator[FunctionTool]:
    """Open the tool `ask_data` over an opened database.

    Args:
        settings: The settings.
        get_model: Returns the model of the team.
        database: The database; the caller closes it.
    """
    model = await get_model()
    async with open_team(model, database, options=create_team_options(settings)) as team:
        yield create_ask_data_tool(team)


@asynccontextmanager
async def open_data_agent(
    settings: Settings, question: str, database: str, model: str | None = None, on_progress: OnProgress | None = None
) -> AsyncIterator[Agent]:
    """Open an agent with the SQL tools over one database.

    Its instructions contain the schema.

    Raises:
        BadInput: The database does not exist.
    """
    async with open_data_source(database) as opened:
        instructions = await build_sql_agent_instructions(opened, detect_language(question))
        limits = create_limits(settings, model)
        opened_model = await open_model(settings, model, on_progress)
        async with (
            open_failure_memory(settings) as failure_memory,
            Agent(
                opened_model,
                ToolLibrary(create_sql_tools(opened)),
                instructions=instructions,
                limits=limits,
                options=SQL_AGENT_OPTIONS if get_profile(opened_model).assisted else DEFAULT_OPTIONS,
                failure_memory=failure_memory,
            ) as agent,
        ):
            yield agent


async def build_sql_agent_instructions(database: Database, language: Language) -> str:
    """Build the instructions of an SQL agent from the schema of its database."""
    schema = await database.get_schema()
    return SQL_AGENT_INSTRUCTIONS[language].format(
        dialect=database.dialect, schema=escape_special_tokens(schema.to_ddl())
    )


def answer_from_run(run_finished: RunFinished, results: Sequence[ToolResult], language: Language = "en") -> DataAnswer:
    """Build the answer of an agent's run.

    The data are those of the last query that succeeded.

    Args:
        run_finished: The end of the run.
        results: The results of its calls.
        language: The language of the corrections.
    """
    data: Mapping[str, Any] = next(
        (r.data for r in reversed(results) if r.failure is None and r.name == "sql_execute"),
        {},
    )
    columns, rows = tuple(data.get("columns", ())), tuple(tuple(row) for row in data.get("rows", ()))
    reason = run_finished.reason
    return DataAnswer(
        run_finished.text,
        data.get("sql", ""),
        columns,
        rows,
        bool(data.get("truncated")),
        build_chart(columns, rows),
        corrections=tuple(localize(correction, language) for correction in data.get("corrections", ())),
        error="" if reason in ("answer", "repeats") else f"The run ended without an answer ({reason}).",
    )


def answer_to_json(answer: DataAnswer, usage: Usage) -> dict[str, Any]:
    """Return the JSON form of an answer for scripts and clients."""
    return {
        "success": answer.success,
        "error": answer.error or None,
        "answer": answer.text,
        "sql": answer.sql,
        "columns": answer.columns,
        "rows": answer.rows,
        "truncated": answer.truncated,
        "chart": answer.chart,
        "assumptions": answer.assumptions,
        "corrections": answer.corrections,
        "warnings": answer.warnings,
        "confidence": answer.confidence,
        "doubts": answer.doubts,
        "candidates": [asdict(candidate) for candidate in answer.candidates],
        "intent": answer.intent,
        "history": [asdict(turn) for turn in answer.history],
        "usage": {"total_tokens": usage.total_tokens, "model_calls": usage.requests},
    }
