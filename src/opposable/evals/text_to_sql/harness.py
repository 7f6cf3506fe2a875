"""Answers to questions about databases, scored by what their SQL brings."""

import datetime
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from opposable.ask.semantics.model import SemanticModel
from opposable.ask.single_prompt import generate_sql
from opposable.ask.team.factory import open_team
from opposable.ask.team.interfaces import DEFAULT_TEAM_OPTIONS, TeamOptions
from opposable.domain.errors import OpposableError
from opposable.domain.usage import NO_USAGE, Usage
from opposable.evals.text_to_sql.datasets import EvalQuestion
from opposable.evals.text_to_sql.scoring import are_same_rows
from opposable.models.base import Model
from opposable.sql.database import Database, QueryLimits, QueryResult
from opposable.sql.factory import open_database

QUERY_LIMITS = QueryLimits(max_rows=100_000, max_cell_characters=100_000, timeout_seconds=30.0)


@dataclass(frozen=True, slots=True)
class SqlAttempt:
    """What an answerer gave: its final SQL ("" for none), what it used, and notes to read when it is wrong."""

    sql: str
    usage: Usage = NO_USAGE
    notes: tuple[str, ...] = ()


AnswerFunction = Callable[[EvalQuestion], Awaitable[SqlAttempt]]

AnswererFactory = Callable[[Database], AbstractAsyncContextManager[AnswerFunction]]
"""Gets ready to answer questions about one database; what it opens is closed at the end."""


@dataclass(frozen=True, slots=True)
class SqlScore:
    """One question's outcome. `runs` says whether the final SQL could be run, `right` whether its rows are gold's."""

    question: EvalQuestion
    sql: str
    is_correct: bool
    is_executable: bool
    problem: str
    usage: Usage
    seconds: float
    notes: tuple[str, ...] = ()
    gold_rows: tuple[tuple[Any, ...], ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()


@dataclass(slots=True)
class SqlScoreSheet:
    """Scores of one answerer added up."""

    scores: list[SqlScore] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """Accuracy and share that runs in percent; model calls, tokens and seconds a question."""
        count = max(1, len(self.scores))
        return {
            "questions": len(self.scores),
            "accuracy": round(100 * sum(score.is_correct for score in self.scores) / count, 1),
            "executable": round(100 * sum(score.is_executable for score in self.scores) / count, 1),
            "model_calls": round(sum(score.usage.requests for score in self.scores) / count, 2),
            "tokens": round(sum(score.usage.total_tokens for score in self.scores) / count, 1),
            "seconds": round(sum(score.seconds for score in self.scores) / count, 2),
        }


async def score_questions(
    questions: Sequence[EvalQuestion], open_answerer: AnswererFactory
) -> AsyncGenerator[SqlScore, None]:
    """The outcome of each question, as it is known; databases are opened once. Raises: `ModelError` kinds."""
    opened: dict[str, tuple[Database, AnswerFunction]] = {}
    async with AsyncExitStack() as stack:
        for question in questions:
            if question.database not in opened:
                database = await open_database(question.database)
                stack.push_async_callback(database.close)
                opened[question.database] = database, await stack.enter_async_context(open_answerer(database))
            yield await _score_question(*opened[question.database], question)


async def _score_question(database: Database, answer: AnswerFunction, question: EvalQuestion) -> SqlScore:
    started = time.perf_counter()
    attempt = await answer(question)
    seconds = time.perf_counter() - started
    gold = await database.run(question.gold_sql, None, QUERY_LIMITS)
    given, problem = await _run_sql(database, attempt.sql)
    same = attempt.sql == question.gold_sql  # is right however an engine of several threads ends a tie this time
    right = given is not None and (
        same or are_same_rows(gold.rows, given.rows, _has_order_by(question.gold_sql, database))
    )
    rows = given.rows[:5] if given is not None else ()
    return SqlScore(
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


async def _run_sql(database: Database, sql: str) -> tuple[QueryResult | None, str]:
    if not sql:
        return None, "no SQL"
    try:
        return await database.run(sql, None, QUERY_LIMITS), ""
    except OpposableError as error:
        return None, str(error)


def _has_order_by(sql: str, database: Database) -> bool:
    """Whether the outermost query asks for an order."""
    import sqlglot

    return bool(sqlglot.parse_one(sql, dialect=database.dialect).args.get("order"))


def make_single_prompt_answerer(model: Model) -> AnswererFactory:
    """The baseline: the whole schema and the question in one prompt, the SQL of the reply as it is."""

    @asynccontextmanager
    async def ready(database: Database) -> AsyncIterator[AnswerFunction]:
        schema = (await database.get_schema()).to_ddl()

        async def answer(question: EvalQuestion) -> SqlAttempt:
            sql, reply = await generate_sql(model, database.dialect, schema, question.prompt_text)
            return SqlAttempt(sql, reply.usage)

        yield answer

    return ready


def make_team_answerer(
    model: Model,
    options: TeamOptions = DEFAULT_TEAM_OPTIONS,
    *,
    semantics: SemanticModel | None = None,
    cache_directory: Path | None = None,
) -> AnswererFactory:
    """The team, with the parts given; `semantics` is a model of the databases asked, `cache` keeps catalogues."""

    @asynccontextmanager
    async def ready(database: Database) -> AsyncIterator[AnswerFunction]:
        today = [datetime.date.today()]  # noqa: DTZ011 - "this year" is the asker's
        opening = open_team(
            model,
            database,
            semantics=semantics,
            cache_directory=cache_directory,
            options=options,
            today=lambda: today[0],
        )
        async with opening as opened:

            async def answer(question: EvalQuestion) -> SqlAttempt:
                today[0] = question.today or datetime.date.today()  # noqa: DTZ011
                told, end = await opened.answer(question.prompt_text)
                return SqlAttempt(told.sql, end.usage, (*told.corrections, *told.assumptions))

            yield answer

    return ready


def make_answerers(
    model: Model, *, semantics: SemanticModel | None = None, cache_directory: Path | None = None
) -> dict[str, AnswererFactory]:
    """One prompt, the team, and the team with each part switched off."""

    def without(**off: Any) -> AnswererFactory:
        return make_team_answerer(
            model, replace(DEFAULT_TEAM_OPTIONS, **off), semantics=semantics, cache_directory=cache_directory
        )

    every = {
        "one prompt": make_single_prompt_answerer(model),
        "team": without(),
        "without opinions": without(extra_candidates=0),
        "without corrections": without(allow_corrections=False, extra_candidates=0),
        "without values": without(check_values=False),
        "without shape": without(check_result_shape=False),
        "without captain": without(model_decides_when_stuck=False),
    }
    return every | ({"without semantics": without(use_semantics=False)} if semantics is not None else {})
