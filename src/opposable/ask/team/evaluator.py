"""Runs SQL and reports what the engine and the data say about it."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from opposable.ask.assistance import repair_rejected_sql
from opposable.ask.catalog.table_samples import is_private_column
from opposable.ask.team import literals, messages
from opposable.ask.team.state import Candidate, CandidateOutcome
from opposable.domain.errors import ToolError
from opposable.domain.localized_text import LocalizedText
from opposable.parsers import escape_special_tokens
from opposable.sql.database import Database
from opposable.sql.messages import get_error_message
from opposable.sql.schema import to_one_line
from opposable.sql.tools import SqlTools

MAX_RESULT_ROWS = 1_000


async def run_candidate(database: Database, candidate: Candidate, *, assisted: bool = False) -> CandidateOutcome:
    """Run a candidate as it is written; with `assisted`, repair SQL that the engine rejects."""
    outcome = await _execute(database, candidate)
    if assisted and not outcome.has_run and outcome.problem_kind != "timeout":
        sql, corrections = repair_rejected_sql(candidate.sql, database.dialect, await database.get_schema())
        repaired = await _execute(database, replace(candidate, sql=sql)) if corrections else outcome
        if repaired.has_run:
            return replace(repaired, candidate=candidate, corrections=(*corrections, *repaired.corrections))
    return outcome


async def _execute(database: Database, candidate: Candidate) -> CandidateOutcome:
    try:
        tools = SqlTools(database, binds_placeholders=False)
        result = await tools.execute(candidate.sql, limit=MAX_RESULT_ROWS)
    except (ToolError, TimeoutError) as error:
        problem = _sanitize_message(get_error_message(error) or messages.QUERY_TIMED_OUT)
        kind = "timeout" if isinstance(error, TimeoutError) else normalize_problem(str(error))
        return CandidateOutcome(candidate, "", problem=problem, problem_kind=kind)
    return CandidateOutcome(
        candidate,
        result["sql"],
        tuple(result["columns"]),
        tuple(tuple(row) for row in result["rows"]),
        result["truncated"],
        corrections=tuple(result["corrections"]),
    )


def normalize_problem(problem: str) -> str:
    """Return the problem without names and numbers, to recognize repetitions."""
    plain = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\b\w*[\d_.]\w*\b", "…", problem.casefold())
    return " ".join(plain.split())[:80]


async def explain_empty_result(
    database: Database, outcome: CandidateOutcome, private_columns: Collection[str] = ()
) -> CandidateOutcome:
    """Report why a result is empty: a text that no row has, or a condition that no row satisfies.

    A text that no row has is a warning. If similar values exist, or another column has it, it is a suspicion too, so
    that the model can answer again. Values of private columns are not shown.
    """
    if not outcome.has_run or not is_empty_result(outcome.rows):
        return outcome
    warnings: list[LocalizedText] = []
    has_alternatives = False
    for literal in literals.find_text_literals(outcome.sql, database, await database.get_schema()):
        if await literals.value_exists(database, literal):
            continue
        is_private = is_private_column(literal.table, literal.column, private_columns)
        near_values = [] if is_private else await literals.find_near_values(database, literal)
        is_spelling = any(near.casefold().strip() == literal.value.casefold().strip() for near in near_values)
        columns = [] if is_spelling else await literals.find_locations(database, literal)
        warnings.append(messages.missing_value(literal.column, literal.value, near_values[:5], columns))
        has_alternatives = has_alternatives or bool(near_values or columns)
    if not warnings:
        condition = await literals.find_unmatched_condition(outcome.sql, database)
        return replace(outcome, empty_reason=messages.unmatched_condition(condition) if condition else "")
    warning = messages.join_suspicions(warnings)
    outcome = replace(outcome, warnings=(*outcome.warnings, warning), empty_reason=warning)
    if not has_alternatives:
        return outcome
    return replace(outcome, suspicion=warning, problem_kind=normalize_problem(warning))


def warn_of_row_explosion(outcome: CandidateOutcome, max_table_rows: int | None) -> CandidateOutcome:
    """Add a warning to a result with more rows than any table has: a join condition may be missing."""
    sql = " ".join(outcome.sql.casefold().split())
    is_written_so = " join " not in sql or " cross join " in sql
    if not outcome.has_run or is_written_so or max_table_rows is None or len(outcome.rows) <= max(max_table_rows, 20):
        return outcome
    return replace(outcome, warnings=(*outcome.warnings, messages.row_explosion(len(outcome.rows), max_table_rows)))


def is_empty_result(rows: Sequence[Sequence[Any]]) -> bool:
    """Return whether a result has no rows, or one row of NULLs and zeros."""
    return not rows or (len(rows) == 1 and all(cell in (None, 0) for cell in rows[0]))


def _sanitize_message(message: str) -> str:
    """Shorten a message that may quote cells, and escape a model's special tokens in it."""

    def sanitize(text: str) -> str:
        return escape_special_tokens(to_one_line(text, 600) or "")

    if isinstance(message, LocalizedText):
        return LocalizedText(sanitize(message), sanitize(message.chinese))
    return sanitize(message)
