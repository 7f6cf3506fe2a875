"""Answers to questions about databases, scored by what their SQL brings."""

import datetime
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from opposable.ask.semantics.model import SemanticModel
from opposable.ask.single_prompt import asked_once
from opposable.ask.team.factory import open_team
from opposable.ask.team.team import Parts
from opposable.domain.errors import OpposableError
from opposable.domain.usage import NO_USAGE, Usage
from opposable.evals.text_to_sql.datasets import Question
from opposable.evals.text_to_sql.scoring import same_rows
from opposable.models.base import Model
from opposable.sql.database import Database, Limits, Rows
from opposable.sql.factory import open_database

ALL_PARTS = Parts()
LIMITS = Limits(rows=100_000, cell_characters=100_000, seconds=30.0)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What an answerer gave: its final SQL ("" for none), what it used, and notes to read when it is wrong."""

    sql: str
    usage: Usage = NO_USAGE
    notes: tuple[str, ...] = ()


Answer = Callable[[Question], Awaitable[Attempt]]

Answerer = Callable[[Database], AbstractAsyncContextManager[Answer]]
"""Gets ready to answer questions about one database; what it opens is closed at the end."""


@dataclass(frozen=True, slots=True)
class Score:
    """One question's outcome. `runs` says whether the final SQL could be run, `right` whether its rows are gold's."""

    question: Question
    sql: str
    right: bool
    runs: bool
    problem: str
    usage: Usage
    seconds: float
    notes: tuple[str, ...] = ()
    gold_rows: tuple[tuple[Any, ...], ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()


@dataclass(slots=True)
class Tally:
    """Scores of one answerer added up."""

    scores: list[Score] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """Accuracy and share that runs in percent; model calls, tokens and seconds a question."""
        count = max(1, len(self.scores))
        return {
            "questions": len(self.scores),
            "accuracy": round(100 * sum(score.right for score in self.scores) / count, 1),
            "executable": round(100 * sum(score.runs for score in self.scores) / count, 1),
            "model_calls": round(sum(score.usage.requests for score in self.scores) / count, 2),
            "tokens": round(sum(score.usage.total_tokens for score in self.scores) / count, 1),
            "seconds": round(sum(score.seconds for score in self.scores) / count, 2),
        }


async def scored(questions: Sequence[Question], answerer: Answerer) -> AsyncGenerator[Score, None]:
    """The outcome of each question, as it is known; databases are opened once. Raises: `ModelError` kinds."""
    opened: dict[str, tuple[Database, Answer]] = {}
    async with AsyncExitStack() as stack:
        for question in questions:
            if question.database not in opened:
                database = await open_database(question.database)
                stack.push_async_callback(database.close)
                opened[question.database] = database, await stack.enter_async_context(answerer(database))
            yield await _scored(*opened[question.database], question)


async def _scored(database: Database, answer: Answer, question: Question) -> Score:
    started = time.perf_counter()
    attempt = await answer(question)
    seconds = time.perf_counter() - started
    gold = await database.run(question.gold, None, LIMITS)
    given, problem = await _run(database, attempt.sql)
    same = attempt.sql == question.gold  # is right however an engine of several threads ends a tie this time
    right = given is not None and (same or same_rows(gold.rows, given.rows, _ordered(question.gold, database)))
    rows = given.rows[:5] if given is not None else ()
    return Score(
        question,
        attempt.sql,
        right,
        given is not None,
        problem,
        attempt.usage,
        seconds,
        attempt.notes,
        gold.rows[:5],
        rows,
    )


async def _run(database: Database, sql: str) -> tuple[Rows | None, str]:
    if not sql:
        return None, "no SQL"
    try:
        return await database.run(sql, None, LIMITS), ""
    except OpposableError as error:
        return None, str(error)


def _ordered(sql: str, database: Database) -> bool:
    """Whether the outermost query asks for an order."""
    import sqlglot

    return bool(sqlglot.parse_one(sql, dialect=database.dialect).args.get("order"))


def one_prompt(model: Model) -> Answerer:
    """The baseline: the whole schema and the question in one prompt, the SQL of the reply as it is."""

    @asynccontextmanager
    async def ready(database: Database) -> AsyncIterator[Answer]:
        schema = (await database.schema()).text()

        async def answer(question: Question) -> Attempt:
            sql, reply = await asked_once(model, database.dialect, schema, question.text)
            return Attempt(sql, reply.usage)

        yield answer

    return ready


def team(
    model: Model, parts: Parts = ALL_PARTS, *, semantics: SemanticModel | None = None, cache: Path | None = None
) -> Answerer:
    """The team, with the parts given; `semantics` is a model of the databases asked, `cache` keeps catalogues."""

    @asynccontextmanager
    async def ready(database: Database) -> AsyncIterator[Answer]:
        today = [datetime.date.today()]  # noqa: DTZ011 - "this year" is the asker's
        opening = open_team(model, database, semantics=semantics, cache=cache, parts=parts, today=lambda: today[0])
        async with opening as opened:

            async def answer(question: Question) -> Attempt:
                today[0] = question.today or datetime.date.today()  # noqa: DTZ011
                told, end = await opened.answer(question.text)
                return Attempt(told.sql, end.usage, (*told.corrections, *told.assumptions))

            yield answer

    return ready


def answerers(
    model: Model, *, semantics: SemanticModel | None = None, cache: Path | None = None
) -> dict[str, Answerer]:
    """One prompt, the team, and the team with each part switched off."""

    def without(**off: Any) -> Answerer:
        return team(model, replace(ALL_PARTS, **off), semantics=semantics, cache=cache)

    every = {
        "one prompt": one_prompt(model),
        "team": without(),
        "without opinions": without(opinions=0),
        "without corrections": without(corrections=False, opinions=0),
        "without values": without(values=False),
        "without shape": without(shape=False),
        "without captain": without(captain=False),
    }
    return every | ({"without semantics": without(semantics=False)} if semantics is not None else {})
