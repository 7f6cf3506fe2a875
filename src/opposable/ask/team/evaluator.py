"""Runs and repairs SQL, and finds problems and suspicions in its result."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from opposable.ask.catalog.value_matching import ValueMatch
from opposable.ask.sql_repair.aggregates import repair_aggregates
from opposable.ask.sql_repair.aliases import repair_aliases
from opposable.ask.sql_repair.anti_joins import repair_anti_joins
from opposable.ask.sql_repair.date_functions import remove_unneeded_date_functions
from opposable.ask.sql_repair.foreign_key_joins import repair_joins_by_foreign_keys
from opposable.ask.sql_repair.joins import (
    LocatedValue,
    add_needed_joins,
    convert_to_outer_joins,
    drop_emptied_joins,
    drop_key_only_joins,
    drop_self_joins,
    drop_sibling_joins,
    drop_unmentioned_joins,
    find_self_comparison,
)
from opposable.ask.sql_repair.literals import (
    TextLiteral,
    ValueFinder,
    ValueLocation,
    find_text_literals,
    move_literal,
    replace_literals,
    value_exists,
)
from opposable.ask.sql_repair.question_requirements import find_outer_column, find_unmet_requirement
from opposable.ask.sql_repair.result_shape import find_shape_mismatch, repair_result_shape
from opposable.ask.sql_repair.sql_tree import RepairedSql, find_selects, parse_sql, resolve_source_tables
from opposable.ask.sql_repair.syntax import repair_syntax
from opposable.ask.team import messages
from opposable.ask.team.state import Candidate, CandidateOutcome, get_result_fingerprint
from opposable.domain.errors import InvalidArguments, ToolError, ToolRefused
from opposable.domain.localized_text import LocalizedText
from opposable.parsers import escape_special_tokens
from opposable.sql.database import Database
from opposable.sql.messages import get_error_message
from opposable.sql.name_repair import repair_names
from opposable.sql.schema import DatabaseSchema, to_one_line
from opposable.sql.tools import SqlTools

MAX_RESULT_ROWS = 1_000

Repair = Callable[[str], RepairedSql]


async def run_candidate(database: Database, candidate: Candidate, corrections: Sequence[str] = ()) -> CandidateOutcome:
    """Check, repair and run a candidate.

    Args:
        database: The database to run it on.
        candidate: The SQL.
        corrections: The corrections already made in it.
    """
    try:
        result = await SqlTools(database).execute(candidate.sql, limit=MAX_RESULT_ROWS)
    except ToolError as error:
        problem = _sanitize_message(get_error_message(error))
        return CandidateOutcome(candidate, "", problem=problem, problem_kind=normalize_problem(str(error)))
    except TimeoutError as error:
        problem = _sanitize_message(get_error_message(error) or messages.query_timed_out())
        return CandidateOutcome(candidate, "", problem=problem, problem_kind="timeout")
    return CandidateOutcome(
        candidate,
        result["sql"],
        tuple(result["columns"]),
        tuple(tuple(row) for row in result["rows"]),
        result["truncated"],
        corrections=(*corrections, *result["corrections"]),
    )


async def repair_sql(database: Database, sql: str, question: str) -> RepairedSql:
    """Repair SQL: its result gets the shape the question requires, with the necessary joins only."""
    schema, dialect = await database.get_schema(), database.dialect
    written, corrections = _apply_repairs(
        sql,
        lambda sql: repair_syntax(sql, dialect),
        lambda sql: repair_aliases(sql, dialect, schema),
        lambda sql: repair_anti_joins(sql, dialect, schema),
        lambda sql: remove_unneeded_date_functions(sql, question, dialect, schema),
        lambda sql: repair_aggregates(sql, question, dialect),
        lambda sql: repair_result_shape(sql, question, dialect),
    )
    joined, join_corrections = _apply_repairs(
        written,
        lambda sql: repair_joins_by_foreign_keys(sql, dialect, schema),
        lambda sql: add_needed_joins(sql, dialect, schema),
    )
    corrections += join_corrections
    try:
        named = repair_names(joined, dialect, schema, allow_similar=True)
    except (ToolRefused, InvalidArguments):  # run_candidate reports it
        return joined, corrections
    if named.problems:
        return joined, corrections
    repaired, drop_corrections = _apply_repairs(
        named.query.sql,
        lambda sql: drop_emptied_joins(sql, written, dialect, schema),
        lambda sql: drop_self_joins(sql, dialect, schema),
        lambda sql: drop_sibling_joins(sql, dialect, schema),
    )
    located_values = await _find_located_values(database, repaired, schema)
    repaired, last_corrections = _apply_repairs(
        repaired,
        lambda sql: drop_unmentioned_joins(sql, question, dialect, schema, located_values),
        # last, because the question may mention a table that it drops
        lambda sql: drop_key_only_joins(sql, dialect, schema),
    )
    return repaired, (*corrections, *named.corrections, *drop_corrections, *last_corrections)


def _apply_repairs(sql: str, *repairs: Repair) -> RepairedSql:
    """Apply repairs in order and collect their corrections."""
    corrections: list[str] = []
    for repair in repairs:
        sql, made_corrections = repair(sql)
        corrections += made_corrections
    return sql, tuple(corrections)


async def _find_located_values(database: Database, sql: str, schema: DatabaseSchema) -> set[LocatedValue]:
    """Return the values of the query that a column of the same name contains in another source."""
    tree = parse_sql(sql, database.dialect)
    selects = find_selects(tree) if tree else []
    tables = [table for select in selects for table in (resolve_source_tables(select, schema) or {}).values()]
    located_values: set[LocatedValue] = set()
    for literal in find_text_literals(sql, database, schema) if len(tables) > 1 else ():
        for table in tables:
            column = table.find_column(literal.column) if table.full_name != literal.table.full_name else None
            if column is not None and await value_exists(database, replace(literal, table=table, column=column.name)):
                located_values.add((table.full_name, column.name.casefold(), literal.value))
    return located_values


async def retry_with_outer_join(database: Database, outcome: CandidateOutcome) -> CandidateOutcome:
    """Run the SQL with outer joins if its result is empty; return the better outcome."""
    if not outcome.has_run or not _is_empty_result(outcome.rows):
        return outcome
    sql, corrections = convert_to_outer_joins(outcome.sql, database.dialect)
    if not corrections:
        return outcome
    retried = await run_candidate(database, replace(outcome.candidate, sql=sql), (*outcome.corrections, *corrections))
    if not retried.has_run or _is_empty_result(retried.rows):
        return outcome
    return replace(retried, candidate=outcome.candidate)


def normalize_problem(problem: str) -> str:
    """Return the problem without names and numbers, to recognize repetitions."""
    plain = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\b\w*[\d_.]\w*\b", "…", problem.casefold())
    return " ".join(plain.split())[:80]


async def retry_with_real_values(
    database: Database, outcome: CandidateOutcome, value_finder: ValueFinder
) -> CandidateOutcome:
    """Run the SQL with real values if its result is empty because no row has a value.

    The outcome gets a suspicion if no row has the value and the value finder returns none or several.
    """
    if not outcome.has_run or not _is_empty_result(outcome.rows):
        return outcome
    replacements: list[tuple[TextLiteral, str]] = []
    suspicions: list[LocalizedText] = []
    for literal in find_text_literals(outcome.sql, database, await database.get_schema()):
        if await value_exists(database, literal):
            continue
        near_values = list(await value_finder.find_near_values(literal.table, literal.column, literal.value))
        equal_values = [near for near in near_values if near.casefold().strip() == literal.value.casefold().strip()]
        locations = () if equal_values else await value_finder.find_locations(literal.value)
        moved_outcome = await _retry_in_other_column(database, outcome, literal, locations)
        if moved_outcome is not None:
            return moved_outcome
        real_values = equal_values[:1] or (near_values if len(near_values) == 1 else [])
        replacements += [(literal, value) for value in real_values]
        if not real_values:
            suspicions.append(_describe_missing_value(literal, near_values, locations))
    if replacements:
        sql = replace_literals(outcome.sql, replacements)
        retried = await run_candidate(database, replace(outcome.candidate, sql=sql))
        corrections = tuple(f"'{literal.value}' → '{value}'" for literal, value in replacements)
        if retried.has_run and not _is_empty_result(retried.rows):
            return replace(retried, candidate=outcome.candidate, corrections=(*outcome.corrections, *corrections))
    return _add_suspicion(outcome, messages.join_suspicions(suspicions))


async def _retry_in_other_column(
    database: Database, outcome: CandidateOutcome, literal: TextLiteral, locations: Sequence[ValueLocation]
) -> CandidateOutcome | None:
    """Run the SQL with the value compared with the column that contains it; return None without rows."""
    moved = move_literal(outcome.sql, database, literal, locations) if locations else None
    if moved is None:
        return None
    sql, location = moved
    retried = await run_candidate(database, replace(outcome.candidate, sql=sql))
    if not retried.has_run or _is_empty_result(retried.rows):
        return None
    correction = f"{literal.column} = '{literal.value}' → {location.column}"
    return replace(retried, candidate=outcome.candidate, corrections=(*outcome.corrections, correction))


def flag_row_explosion(outcome: CandidateOutcome, max_table_rows: int | None) -> CandidateOutcome:
    """Add a suspicion to a join with more rows than any table: its condition may be missing."""
    if (
        not outcome.has_run
        or max_table_rows is None
        or len(outcome.rows) <= max(max_table_rows, 20)
        or " join " not in _normalize_sql_text(outcome.sql)
    ):
        return outcome
    return _add_suspicion(outcome, messages.row_explosion(len(outcome.rows), max_table_rows))


def flag_shape_mismatch(
    outcome: CandidateOutcome, question: str, value_matches: Sequence[ValueMatch], schema: DatabaseSchema
) -> CandidateOutcome:
    """Add a suspicion to an outcome that cannot answer the question.

    Args:
        outcome: The outcome of a candidate.
        question: The question.
        value_matches: The values of the database that the question names.
        schema: The schema of the database.
    """
    if not outcome.is_plausible:
        return outcome
    values = [match.value for match in value_matches]
    condition = find_self_comparison(outcome.sql, schema.dialect)
    suspicion = (
        find_shape_mismatch(question, outcome.sql, len(outcome.columns), len(outcome.rows), values)
        or (messages.self_comparison(condition) if condition else "")
        or find_outer_column(outcome.sql, schema)
        or find_unmet_requirement(question, outcome.sql, schema.dialect, values)
    )
    return _add_suspicion(outcome, suspicion)


def select_majority_outcome(outcomes: Sequence[CandidateOutcome]) -> tuple[CandidateOutcome, float]:
    """Return the outcome to answer with, and the share of outcomes that agree with it.

    Plausible outcomes are preferred, then the most frequent result, then the highest certainty.
    """
    eligible = [outcome for outcome in outcomes if outcome.is_plausible]
    eligible = eligible or [outcome for outcome in outcomes if outcome.has_run]
    votes: dict[str, list[CandidateOutcome]] = {}
    for outcome in eligible:
        votes.setdefault(get_result_fingerprint(outcome), []).append(outcome)
    winners = max(votes.values(), key=lambda group: (len(group), max(vote.candidate.weight for vote in group)))
    return max(winners, key=lambda outcome: outcome.candidate.weight), len(winners) / len(eligible)


def _is_empty_result(rows: Sequence[Sequence[Any]]) -> bool:
    """Return whether a result has no rows, or one row of NULLs and zeros."""
    return not rows or (len(rows) == 1 and all(cell in (None, 0) for cell in rows[0]))


def _describe_missing_value(
    literal: TextLiteral, near_values: Sequence[str], locations: Sequence[ValueLocation]
) -> LocalizedText:
    columns = [f"{location.table}.{location.column}" for location in locations[:3]]
    return messages.missing_value(literal.column, literal.value, near_values[:5], columns)


def _add_suspicion(outcome: CandidateOutcome, suspicion: str) -> CandidateOutcome:
    if not suspicion:
        return outcome
    return replace(outcome, suspicion=suspicion, problem_kind=normalize_problem(suspicion))


def _sanitize_message(message: str) -> str:
    """Shorten a message that may quote cells, and escape a model's special tokens in it."""

    def sanitize(text: str) -> str:
        return escape_special_tokens(to_one_line(text, 600) or "")

    if isinstance(message, LocalizedText):
        return LocalizedText(sanitize(message), sanitize(message.chinese))
    return sanitize(message)


def _normalize_sql_text(sql: str) -> str:
    return f" {' '.join(sql.casefold().split())} "
