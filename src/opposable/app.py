"""The composition root: opens model, tools and data, and closes them."""

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opposable.agent.agent import Agent
from opposable.agent.limits import Limits
from opposable.domain.errors import BadInput
from opposable.domain.events import RunFinished
from opposable.domain.language import Language, language_of
from opposable.domain.messages import user
from opposable.domain.tools import ToolResult
from opposable.domain.usage import Price
from opposable.models.base import Model, ModelOptions, Named
from opposable.models.build import KEY_VARIABLES, build, raw
from opposable.models.exam import Mark, examine
from opposable.models.http import Patience
from opposable.models.ways import WAYS, Way, asked, remember
from opposable.models.weights import QWEN_CODER, Progress, default_directory, installed, pull
from opposable.settings import Settings
from opposable.tools.base import Tool
from opposable.tools.build import builtin_tools, sql_tools
from opposable.tools.library import ToolLibrary
from opposable.tools.sql.database import Database, open_database

OnProgress = Callable[[Progress], None]
FREE = Price(0, 0)
PATIENCE = Patience(connect=2.5)
"""An address where nothing answers is told of within ten seconds, in three tries."""
LONGEST_TASK = 100_000
"""Characters of one task or question; what is longer belongs into a file."""

INSTRUCTIONS: dict[Language, str] = {"en": "You are a helpful assistant.", "zh": "你是一个有用的助手。"}
"""Few words on purpose: with more of them the embedded model explains its tools instead of calling them (measured)."""

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


def models_directory(settings: Settings) -> Path:
    """Where models are kept."""
    return default_directory(settings.home)


async def ready_model(settings: Settings, name: str | None = None, on_progress: OnProgress | None = None) -> Model:
    """The model called `name` (by default the settings'); the embedded one is fetched when it is not there yet.

    Raises: `BadInput` for a name no model has, `WeightsError` when the weights cannot be had.
    """
    name = name or settings.model
    await _fetched(settings, name, on_progress)
    return build(name, models_directory=models_directory(settings), patience=PATIENCE)


async def ready_raw(settings: Settings, name: str, on_progress: OnProgress | None = None) -> Model:
    """The model called `name` as it is, whatever it makes of tools. Raises: as `ready_model`."""
    await _fetched(settings, name, on_progress)
    return raw(name, models_directory=models_directory(settings), patience=PATIENCE)


async def _fetched(settings: Settings, name: str, on_progress: OnProgress | None) -> None:
    directory = models_directory(settings)
    if name == "local" and installed(QWEN_CODER, directory) is None:
        await pull(QWEN_CODER, directory, on_progress)


def ready_tools(settings: Settings, names: Sequence[str] = ()) -> ToolLibrary:
    """The built-in tools, or those of them that are named. Raises: `BadInput` for a name there is not."""
    every = ToolLibrary(builtin_tools([root.resolve() for root in settings.roots]))
    return chosen(every, names) if names else every


def chosen(library: ToolLibrary, names: Sequence[str]) -> ToolLibrary:
    """The tools of those names. Raises: `BadInput` for a name there is not."""
    tools = {tool.tool_id: tool for tool in (found(library, name) for name in names)}
    return ToolLibrary(tools.values())


def found(library: ToolLibrary, name: str) -> Tool:
    """The tool called `name`. Raises: `BadInput`, saying which there are."""
    tool = library.find(name)
    if tool is None:
        near = library.nearest(name)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise BadInput(f"There is no tool named {name!r}.{meant} The tools are: {', '.join(library.names)}.")
    return tool


def task(text: str) -> str:
    """A task or question as given by a user. Raises: `BadInput` when it is empty or too long."""
    text = text.encode("utf-8", "replace").decode()
    if not text.strip():
        raise BadInput("The task is empty; say in a sentence what to do.")
    if len(text) > LONGEST_TASK:
        raise BadInput(
            f"The task has {len(text):,} characters; at most {LONGEST_TASK:,} are taken. Put long material into a file and let a tool read it."
        )
    return text


def limits(settings: Settings, model: str | None = None) -> Limits:
    """The limits of one run with `model`. Raises: `BadInput` for a cost when the model's price is not known."""
    name = model or settings.model
    per_million = settings.prices.get(name)
    price = Price(*per_million) if per_million else FREE if name == "local" else None
    if settings.cost is not None and price is None:
        raise BadInput(
            f"A limit on the cost is set, but the price of {name!r} is not: give what a million tokens cost, read and "
            f"written, as in OPPOSABLE_PRICES='{{\"{name}\": [0.5, 2]}}'."
        )
    return Limits(
        turns=settings.turns,
        tool_calls=settings.tool_calls,
        seconds=settings.seconds,
        tokens=settings.tokens,
        cost=settings.cost,
        price=price,
    )


@asynccontextmanager
async def agent(
    settings: Settings,
    text: str,
    model: str | None = None,
    tools: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> AsyncIterator[Agent]:
    """An agent with the built-in tools for tasks in the language of `text`; closed at the end."""
    library = ready_tools(settings, tools)
    opened = await ready_model(settings, model, on_progress)
    async with Agent(
        opened, library, instructions=INSTRUCTIONS[language_of(text)], limits=limits(settings, model)
    ) as made:
        yield made


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


@asynccontextmanager
async def chat_agent(
    settings: Settings,
    model: str | None = None,
    names: Sequence[str] = (),
    database: str | None = None,
    on_progress: OnProgress | None = None,
) -> AsyncIterator[Agent]:
    """An agent for a conversation: the built-in tools, and those over a database if one is given."""
    async with _tools_and_data(settings, database) as (every, data):
        instructions = INSTRUCTIONS["en"] if data is None else await asking(data, "en")
        library = chosen(every, names) if names else every
        opened = await ready_model(settings, model, on_progress)
        async with Agent(opened, library, instructions=instructions, limits=limits(settings, model)) as made:
            yield made


@asynccontextmanager
async def tools(settings: Settings, database: str | None = None) -> AsyncIterator[ToolLibrary]:
    """The built-in tools, and those over a database if one is given; closed at the end."""
    async with _tools_and_data(settings, database) as (library, _):
        yield library


@asynccontextmanager
async def _tools_and_data(
    settings: Settings, database: str | None
) -> AsyncIterator[tuple[ToolLibrary, Database | None]]:
    library = ready_tools(settings)
    if database is None:
        yield library, None
        return
    async with closing(await open_database(database)) as opened:
        for tool in sql_tools(opened):
            library.register(tool)
        yield library, opened


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


async def pull_embedded(settings: Settings, on_progress: OnProgress | None = None) -> Path:
    """Fetch the embedded model if it is not there. Raises: `WeightsError`."""
    return await pull(QWEN_CODER, models_directory(settings), on_progress)


def model_kinds(settings: Settings) -> list[tuple[str, bool, str]]:
    """The kinds of model: name, whether it can be used now, and a note."""
    there = installed(QWEN_CODER, models_directory(settings))
    kinds = [("local", there is not None, str(there) if there else "fetch it with: opposable models pull")]
    for kind, variable in KEY_VARIABLES.items():
        is_set = bool(os.environ.get(variable))
        kinds.append((f"{kind}:NAME", is_set, f"{variable} is {'set' if is_set else 'not set'}"))
    return [
        *kinds,
        ("http://HOST:PORT/v1#NAME", True, "any OpenAI-compatible server; key in OPPOSABLE_API_KEY if it wants one"),
    ]


async def check_model(
    settings: Settings,
    name: str,
    ways: Sequence[Way] = WAYS,
    on_progress: OnProgress | None = None,
    on_mark: Callable[[Way, Mark], None] | None = None,
) -> dict[Way, list[Mark]]:
    """Try each way of asking a model for calls on a short exam, and remember the best for this model.

    Raises: `ModelError` when the model cannot be reached at all, else as `ready_model`.
    """
    inner = await ready_raw(settings, name, on_progress)
    marks: dict[Way, list[Mark]] = {}
    try:
        async with aclosing(inner.stream((user("Say hello."),), (), ModelOptions(stream=False, max_tokens=5))) as parts:
            async for _ in parts:  # a wrong key or address is told at once, not as failed questions
                pass
        for way in ways:
            marks[way] = []
            async for mark in examine(asked(way, inner)):
                marks[way].append(mark)
                if on_mark is not None:
                    on_mark(way, mark)
    finally:
        await inner.aclose()
    if any(mark.right for each in marks.values() for mark in each):
        remember(models_directory(settings), name, best_way(marks))
    return marks


def best_way(marks: Mapping[Way, Sequence[Mark]]) -> Way:
    """The way with the most right answers; among equals the one that took the fewest tokens."""
    return max(marks, key=lambda way: (sum(m.right for m in marks[way]), -sum(m.tokens for m in marks[way])))


@asynccontextmanager
async def closing(database: Database) -> AsyncIterator[Database]:
    """The database, closed at the end."""
    try:
        yield database
    finally:
        await database.close()
