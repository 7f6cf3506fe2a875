"""Questions about a database."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from opposable.agent.agent import Agent
from opposable.app.given import limits
from opposable.app.models import OnProgress, ready_model
from opposable.app.tools import closing
from opposable.domain.events import RunFinished
from opposable.domain.language import Language, language_of
from opposable.domain.tools import ToolResult
from opposable.models.base import ModelOptions, Named
from opposable.settings import Settings
from opposable.tools.build import sql_tools
from opposable.tools.library import ToolLibrary
from opposable.tools.sql.database import Database, open_database

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


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a data question: the sentence, the SQL that was run last, its columns and rows."""

    text: str
    sql: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool
    corrections: tuple[str, ...]
    end: RunFinished


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
        async with Agent(
            answering, library, instructions=instructions, limits=limits(settings, model), options=ASK_THE_DATABASE
        ) as made:
            yield made


async def asking(database: Database, language: Language) -> str:
    """What a model is told of a database before it is asked about it."""
    schema = await database.schema()
    return ASKING[language].format(dialect=database.dialect, schema=schema.text())


def answer(end: RunFinished, results: Sequence[ToolResult]) -> Answer:
    """The answer of a data question: the run's text with the last query that worked."""
    data: dict[str, Any] = next(
        (r.data for r in reversed(results) if r.failure is None and r.name == "sql_execute"),
        {},
    )
    return Answer(
        end.text,
        data.get("sql", ""),
        tuple(data.get("columns", ())),
        tuple(tuple(row) for row in data.get("rows", ())),
        bool(data.get("truncated")),
        tuple(data.get("corrections", ())),
        end,
    )


def answer_as_json(answer: Answer) -> dict[str, Any]:
    """An answer for scripts."""
    usage = answer.end.usage
    return {
        "answer": answer.text,
        "sql": answer.sql,
        "columns": answer.columns,
        "rows": answer.rows,
        "truncated": answer.truncated,
        "corrections": answer.corrections,
        "reason": answer.end.reason,
        "usage": {"total_tokens": usage.total_tokens, "model_calls": usage.requests},
    }
