"""Answers to questions about databases, scored by what their SQL brings."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from opposable.ask.one_prompt import asked_once
from opposable.ask.team.team import Parts, Team
from opposable.domain.errors import OpposableError
from opposable.domain.usage import NO_USAGE, Usage
from opposable.evals.sql_scoring import same_rows
from opposable.evals.sql_sets import Question
from opposable.models.base import Model
from opposable.tools.sql.database import Database, Limits, Rows, open_database

ALL_PARTS = Parts()
LIMITS = Limits(rows=100_000, cell_characters=100_000, seconds=30.0)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What an answerer gave: its final SQL ("" for none), what it used, and notes to read when it is wrong."""

    sql: str
    usage: Usage = NO_USAGE
    notes: tuple[str, ...] = ()


Answerer = Callable[[Database, Question], Awaitable[Attempt]]


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
    opened: dict[str, Database] = {}
    try:
        for question in questions:
            if question.database not in opened:
                opened[question.database] = await open_database(question.database)
            yield await _scored(opened[question.database], question, answerer)
    finally:
        for database in opened.values():
            await database.close()


async def _scored(database: Database, question: Question, answerer: Answerer) -> Score:
    started = time.perf_counter()
    attempt = await answerer(database, question)
    seconds = time.perf_counter() - started
    gold = await database.run(question.gold, None, LIMITS)
    given, problem = await _run(database, attempt.sql)
    right = given is not None and same_rows(gold.rows, given.rows, _ordered(question.gold))
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


def _ordered(sql: str) -> bool:
    """Whether the outermost query asks for an order."""
    import sqlglot

    return bool(sqlglot.parse_one(sql, dialect="sqlite").args.get("order"))


def one_prompt(model: Model) -> Answerer:
    """The baseline: the whole schema and the question in one prompt, the SQL of the reply as it is."""

    async def answer(database: Database, question: Question) -> Attempt:
        schema = await database.schema()
        sql, reply = await asked_once(model, database.dialect, schema.text(), question.text)
        return Attempt(sql, reply.usage)

    return answer


def team(model: Model, parts: Parts = ALL_PARTS) -> Answerer:
    """The team, with the parts given."""

    async def answer(database: Database, question: Question) -> Attempt:
        told, end = await Team(model, database, parts=parts).answer(question.text)
        return Attempt(told.sql, end.usage, (*told.corrections, *told.assumptions))

    return answer


def answerers(model: Model) -> dict[str, Answerer]:
    """One prompt, the team, and the team with each part switched off."""
    return {
        "one prompt": one_prompt(model),
        "team": team(model),
        "without opinions": team(model, replace(ALL_PARTS, opinions=0)),
        "without corrections": team(model, replace(ALL_PARTS, corrections=False, opinions=0)),
        "without values": team(model, replace(ALL_PARTS, values=False)),
        "without captain": team(model, replace(ALL_PARTS, captain=False)),
    }
