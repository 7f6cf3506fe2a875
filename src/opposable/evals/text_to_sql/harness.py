"""Scores answerers of questions about databases by the rows of their SQL."""

import datetime
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from opposable.ask.semantics.model import SemanticModel
from opposable.ask.single_prompt import PROMPT_TEMPLATE, extract_sql
from opposable.ask.team.factory import open_team
from opposable.ask.team.team import DEFAULT_TEAM_OPTIONS, TeamOptions
from opposable.domain.errors import BadInput, OpposableError, ToolError
from opposable.domain.messages import system_message, user_message
from opposable.domain.records import QueryExample, get_utc_now
from opposable.domain.usage import NO_USAGE, Usage
from opposable.evals.text_to_sql.datasets import EvalQuestion
from opposable.evals.text_to_sql.scoring import are_same_rows
from opposable.models.base import Model, ModelOptions, adapt_options, request_reply
from opposable.sql.database import Database, QueryLimits, QueryResult
from opposable.sql.factory import open_database

QUERY_LIMITS = QueryLimits(max_rows=100_000, max_cell_characters=100_000, timeout_seconds=30.0)
_REPORTED_ROWS = 5


@dataclass(frozen=True, slots=True)
class SqlAttempt:
    """The answer to a question.

    Attributes:
        sql: The final SQL, "" for none.
        usage: The model usage.
        notes: Corrections and assumptions, for the report.
    """

    sql: str
    usage: Usage = NO_USAGE
    notes: tuple[str, ...] = ()


AnswerFunction = Callable[[EvalQuestion], Awaitable[SqlAttempt]]
"""Answers one question."""

AnswererFactory = Callable[[Database], AbstractAsyncContextManager[AnswerFunction]]
"""Opens an answerer for one database and closes it at the end."""


@dataclass(frozen=True, slots=True)
class SqlScore:
    """The score of one question.

    Attributes:
        is_correct: Whether the rows equal those of the gold SQL.
        is_executable: Whether the final SQL ran.
        problem: Why it did not run, "" if it did.
        gold_rows: The first rows of the gold SQL.
        rows: The first rows of the final SQL.
    """

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
    """The scores of one answerer."""

    scores: list[SqlScore] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """Return percentages of correct and executable SQL, and means per question."""
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
    """Answer and score questions in order, with each database opened once.

    Raises:
        BadInput: The gold SQL of a question does not run.
        ModelError: The model did not answer.
    """
    opened: dict[str, tuple[Database, AnswerFunction]] = {}
    async with AsyncExitStack() as stack:
        for question in questions:
            if question.database not in opened:
                database = await open_database(question.database)
                stack.push_async_callback(database.close)
                opened[question.database] = database, await stack.enter_async_context(open_answerer(database))
            yield await _score_question(*opened[question.database], question)


async def _score_question(database: Database, answer: AnswerFunction, question: EvalQuestion) -> SqlScore:
    try:
        gold = await database.run(question.gold_sql, None, QUERY_LIMITS)
    except ToolError as error:
        raise BadInput(f"The gold_sql of question {question.question_id!r} does not run: {error}") from error
    started_at = time.perf_counter()
    attempt = await answer(question)
    seconds = time.perf_counter() - started_at
    result, problem = await _run_sql(database, attempt.sql)
    is_correct = result is not None and (
        attempt.sql == question.gold_sql  # a multi-threaded engine may order ties differently in each run
        or are_same_rows(gold.rows, result.rows, _has_order_by(question.gold_sql, database))
    )
    rows = result.rows[:_REPORTED_ROWS] if result is not None else ()
    return SqlScore(
        question,
        attempt.sql,
        is_correct,
        result is not None,
        problem,
        attempt.usage,
        seconds,
        attempt.notes,
        gold.rows[:_REPORTED_ROWS],
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
    """Return whether the outermost query has ORDER BY, also if sqlglot cannot parse all that the engine accepts."""
    import sqlglot

    tree = sqlglot.parse_one(sql, dialect=database.dialect, error_level=sqlglot.ErrorLevel.IGNORE)
    return bool(tree.args.get("order"))


def make_single_prompt_answerer(model: Model) -> AnswererFactory:
    """Return the baseline: one prompt with the whole schema; the SQL of the reply is not repaired."""

    @asynccontextmanager
    async def open_answerer(database: Database) -> AsyncIterator[AnswerFunction]:
        schema = (await database.get_schema()).to_ddl()
        instructions = system_message(PROMPT_TEMPLATE.format(dialect=database.dialect, schema=schema))
        options = adapt_options(model, ModelOptions(stream=False, max_tokens=400, temperature=0.0))

        async def answer_question(question: EvalQuestion) -> SqlAttempt:
            reply = await request_reply(model, (instructions, user_message(question.prompt_text)), (), options)
            return SqlAttempt(extract_sql(reply.message.content, database.dialect), reply.usage)

        yield answer_question

    return open_answerer


def make_team_answerer(
    model: Model,
    options: TeamOptions = DEFAULT_TEAM_OPTIONS,
    *,
    semantics: SemanticModel | None = None,
    examples: Sequence[EvalQuestion] = (),
    allow_paraphrases: bool = True,
) -> AnswererFactory:
    """Return the team with these options.

    Args:
        model: The model that writes SQL.
        options: Which parts of the team to use.
        semantics: The semantic model of the databases.
        examples: Confirmed examples. A question gets those of its database, without itself.
        allow_paraphrases: Whether the examples may have the gold query of the question.
    """

    @asynccontextmanager
    async def open_answerer(database: Database) -> AsyncIterator[AnswerFunction]:
        today = [datetime.date.today()]  # noqa: DTZ011 - "this year" is the user's
        confirmed: list[QueryExample] = []

        async def load_examples() -> Sequence[QueryExample]:
            return confirmed

        async with open_team(
            model,
            database,
            semantics=semantics,
            options=options,
            today=lambda: today[0],
            load_examples=load_examples,
        ) as team:

            async def answer_question(question: EvalQuestion) -> SqlAttempt:
                today[0] = question.today or datetime.date.today()  # noqa: DTZ011
                confirmed[:] = [
                    QueryExample(one.question_id, one.database, one.question, one.gold_sql, get_utc_now())
                    for one in examples
                    if one.database == question.database
                    and one.question != question.question
                    and (allow_paraphrases or one.gold_sql != question.gold_sql)
                ]
                answer, run_finished = await team.answer(question.prompt_text)
                return SqlAttempt(
                    answer.sql, run_finished.usage, (*answer.corrections, *answer.assumptions, *answer.warnings)
                )

            yield answer_question

    return open_answerer


_NO_PARTS: dict[str, Any] = {
    "use_semantics": False,
    "check_values": False,
    "allow_corrections": False,
    "assisted": False,
}


def make_answerers(
    model: Model, *, semantics: SemanticModel | None = None, examples: Sequence[EvalQuestion] = ()
) -> dict[str, AnswererFactory]:
    """Return the baseline, the team, the team with examples and without each of its parts, and with one part alone."""

    def make_team(**options: Any) -> AnswererFactory:
        return make_team_answerer(model, replace(DEFAULT_TEAM_OPTIONS, **options), semantics=semantics)

    answerers = {
        "one prompt": make_single_prompt_answerer(model),
        "team": make_team(),
        "team with examples": make_team_answerer(model, semantics=semantics, examples=examples),
        "team with examples of other queries": make_team_answerer(
            model, semantics=semantics, examples=examples, allow_paraphrases=False
        ),
        "without corrections": make_team(allow_corrections=False),
        "without value checks": make_team(check_values=False),
        "without assistance": make_team(assisted=False),
        "prompt of the team alone": make_team(**_NO_PARTS),
        "corrections alone": make_team(**_NO_PARTS | {"allow_corrections": True}),
        "assistance alone": make_team(**_NO_PARTS | {"assisted": True}),
    }
    if semantics is None:
        return answerers
    return answerers | {
        "without semantics": make_team(use_semantics=False),
        "semantics alone": make_team(**_NO_PARTS | {"use_semantics": True}),
    }
