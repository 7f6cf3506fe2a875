"""Runs SQL and says what is wrong with it: the engine's word, or what about its rows is doubtful."""

import re
from collections.abc import Sequence
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
from opposable.ask.team.state import Candidate, CandidateOutcome, get_result_fingerprint
from opposable.domain.errors import InvalidArguments, ToolError, ToolRefused
from opposable.parsers import escape_special_tokens
from opposable.sql.database import Database
from opposable.sql.name_repair import repair_names
from opposable.sql.schema import DatabaseSchema, to_one_line
from opposable.sql.tools import SqlTools

MAX_RESULT_ROWS = 1_000


async def run_candidate(database: Database, candidate: Candidate, corrections: Sequence[str] = ()) -> CandidateOutcome:
    """What comes of a candidate: checked, its names mended where only one can be meant, planned, run.

    `corrections` are what was put right in it before.
    """
    try:
        told = await SqlTools(database).execute(candidate.sql, limit=MAX_RESULT_ROWS)
    except ToolError as error:
        return CandidateOutcome(
            candidate, "", problem=_sanitize_message(str(error)), problem_kind=normalize_problem(str(error))
        )
    except TimeoutError as error:
        return CandidateOutcome(
            candidate, "", problem=_sanitize_message(str(error) or "it took too long"), problem_kind="timeout"
        )
    return CandidateOutcome(
        candidate,
        told["sql"],
        tuple(told["columns"]),
        tuple(tuple(row) for row in told["rows"]),
        told["truncated"],
        corrections=(*corrections, *told["corrections"]),
    )


async def repair_sql(database: Database, sql: str, question: str) -> RepairedSql:
    """SQL put into the shape the question's words ask for, with the tables it needs and no more."""
    schema, dialect = await database.get_schema(), database.dialect
    told: list[str] = []

    def mended(step: RepairedSql) -> str:
        told.extend(step[1])
        return step[0]

    sql = mended(repair_syntax(sql, dialect))
    sql = mended(repair_aliases(sql, dialect, schema))
    sql = mended(repair_anti_joins(sql, dialect, schema))
    sql = mended(remove_unneeded_date_functions(sql, question, dialect, schema))
    sql = mended(repair_aggregates(sql, question, dialect))
    sql = mended(repair_result_shape(sql, question, dialect))
    written = sql
    sql = mended(repair_joins_by_foreign_keys(sql, dialect, schema))
    sql = mended(add_needed_joins(sql, dialect, schema))
    try:
        fixed = repair_names(sql, dialect, schema)
    except (ToolRefused, InvalidArguments):  # told when it is run
        return sql, tuple(told)
    if fixed.problems:
        return sql, tuple(told)
    told += fixed.corrections
    sql = mended(drop_emptied_joins(fixed.query.sql, written, dialect, schema))
    sql = mended(drop_self_joins(sql, dialect, schema))
    sql = mended(drop_sibling_joins(sql, dialect, schema))
    also = await _find_located_values(database, sql, schema)
    sql = mended(drop_unmentioned_joins(sql, question, dialect, schema, also))
    sql = mended(
        drop_key_only_joins(sql, dialect, schema)
    )  # last: what it leaves out may be what the question speaks of
    return sql, tuple(told)


async def _find_located_values(database: Database, sql: str, schema: DatabaseSchema) -> set[LocatedValue]:
    """Which values the SQL looks for stand in a column called the same of another table that it reads."""
    tree = parse_sql(sql, database.dialect)
    read = (
        [table for select in find_selects(tree) for table in (resolve_source_tables(select, schema) or {}).values()]
        if tree
        else []
    )
    found: set[LocatedValue] = set()
    for literal in find_text_literals(sql, database, schema) if len(read) > 1 else ():
        for table in read:
            column = table.find_column(literal.column) if table.full_name != literal.table.full_name else None
            if column is not None and await value_exists(database, replace(literal, table=table, column=column.name)):
                found.add((table.full_name, column.name.casefold(), literal.value))
    return found


async def retry_with_outer_join(database: Database, outcome: CandidateOutcome) -> CandidateOutcome:
    """The outcome, or, where it found nothing because an inner join drops what it looks for, that of an outer join."""
    if not outcome.has_run or not _is_empty_result(outcome.rows):
        return outcome
    sql, told = convert_to_outer_joins(outcome.sql, database.dialect)
    if not told:
        return outcome
    mended = await run_candidate(database, replace(outcome.candidate, sql=sql), (*outcome.corrections, *told))
    return (
        replace(mended, candidate=outcome.candidate)
        if mended.has_run and not _is_empty_result(mended.rows)
        else outcome
    )


def normalize_problem(problem: str) -> str:
    """What a problem is a case of: its sentence without names and numbers, so that the same mistake is known again."""
    plain = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\b\w*[\d_.]\w*\b", "…", problem.casefold())
    return " ".join(plain.split())[:80]


async def retry_with_real_values(
    database: Database, outcome: CandidateOutcome, value_finder: ValueFinder
) -> CandidateOutcome:
    """The outcome, or, where it found nothing because of a value no row has, that of the same SQL with the real value.

    The outcome is doubtful where no row has the value and none is near enough, or several are.
    """
    if not outcome.has_run or not _is_empty_result(outcome.rows):
        return outcome
    changes: list[tuple[TextLiteral, str]] = []
    doubts: list[str] = []
    for literal in find_text_literals(outcome.sql, database, await database.get_schema()):
        if await value_exists(database, literal):
            continue
        near = list(await value_finder.find_near_values(literal.table, literal.column, literal.value))
        same = [one for one in near if one.casefold().strip() == literal.value.casefold().strip()]
        places = () if same else await value_finder.find_locations(literal.value)
        other = await _retry_in_other_column(database, outcome, literal, places)
        if other is not None:
            return other
        meant = same[:1] or (near if len(near) == 1 else [])
        changes += [(literal, value) for value in meant]
        doubts += [] if meant else [_describe_missing_value(literal.column, literal.value, near, places)]
    if changes:
        mended = await run_candidate(database, replace(outcome.candidate, sql=replace_literals(outcome.sql, changes)))
        told = tuple(f"'{literal.value}' → '{value}'" for literal, value in changes)
        if mended.has_run and not _is_empty_result(mended.rows):
            return replace(mended, candidate=outcome.candidate, corrections=(*outcome.corrections, *told))
    return _add_suspicion(outcome, "; ".join(doubts))


async def _retry_in_other_column(
    database: Database, outcome: CandidateOutcome, literal: TextLiteral, locations: Sequence[ValueLocation]
) -> CandidateOutcome | None:
    """The outcome with a value looked for in the column it stands in; None where that brings nothing."""
    put = move_literal(outcome.sql, database, literal, locations) if locations else None
    if put is None:
        return None
    mended = await run_candidate(database, replace(outcome.candidate, sql=put[0]))
    if not mended.has_run or _is_empty_result(mended.rows):
        return None
    told = f"{literal.column} = '{literal.value}' → {put[1].column}"
    return replace(mended, candidate=outcome.candidate, corrections=(*outcome.corrections, told))


def flag_row_explosion(outcome: CandidateOutcome, max_table_rows: int | None) -> CandidateOutcome:
    """The outcome, doubted where it has more rows than any table: a join that lacks its condition."""
    if (
        not outcome.has_run
        or max_table_rows is None
        or len(outcome.rows) <= max(max_table_rows, 20)
        or " join " not in _normalize_sql_text(outcome.sql)
    ):
        return outcome
    said = f"it brings {len(outcome.rows)} rows, more than any table has ({max_table_rows}): a join multiplies rows"
    return _add_suspicion(outcome, said)


def flag_shape_mismatch(
    outcome: CandidateOutcome, question: str, value_matches: Sequence[ValueMatch], schema: DatabaseSchema
) -> CandidateOutcome:
    """The outcome, doubted where it cannot be what the question's words ask for; `named` are the values it names."""
    if not outcome.is_plausible:
        return outcome
    values = [match.value for match in value_matches]
    told = find_shape_mismatch(question, outcome.sql, len(outcome.columns), len(outcome.rows), values)
    empty = find_self_comparison(outcome.sql, schema.dialect)
    told = (
        told
        or (f"ON {empty} joins every row with every row" if empty else "")
        or find_outer_column(outcome.sql, schema)
    )
    return _add_suspicion(outcome, told or find_unmet_requirement(question, outcome.sql, schema.dialect, values))


def select_majority_outcome(outcomes: Sequence[CandidateOutcome]) -> tuple[CandidateOutcome, float]:
    """The outcome to answer with, and the share of those that ran which agree with it.

    Those without doubts come first; among them the result most of them brought; then the surest writer's.
    """
    ran = [outcome for outcome in outcomes if outcome.is_plausible] or [
        outcome for outcome in outcomes if outcome.has_run
    ]
    votes: dict[str, list[CandidateOutcome]] = {}
    for outcome in ran:
        votes.setdefault(get_result_fingerprint(outcome), []).append(outcome)
    best = max(votes.values(), key=lambda group: (len(group), max(o.candidate.weight for o in group)))
    return max(best, key=lambda outcome: outcome.candidate.weight), len(best) / len(ran)


def _is_empty_result(rows: Sequence[Sequence[Any]]) -> bool:
    """Whether a result says nothing: no rows, or one of NULLs and zeros."""
    return not rows or (len(rows) == 1 and all(cell in (None, 0) for cell in rows[0]))


def _describe_missing_value(
    column: str, value: str, near_values: Sequence[str], locations: Sequence[ValueLocation]
) -> str:
    told = f"no row has {column} = '{value}'"
    if locations:
        return f"{told}; it stands in {', '.join(f'{place.table}.{place.column}' for place in locations[:3])}"
    return f"{told}; near are {', '.join(repr(one) for one in near_values[:5])}" if near_values else told


def _add_suspicion(outcome: CandidateOutcome, suspicion: str) -> CandidateOutcome:
    if not suspicion:
        return outcome
    return replace(outcome, suspicion=suspicion, problem_kind=normalize_problem(suspicion))


def _sanitize_message(text: str) -> str:
    """What an engine says, which may quote a cell, as it may stand before a model."""
    return escape_special_tokens(to_one_line(text, 600) or "")


def _normalize_sql_text(sql: str) -> str:
    return f" {' '.join(sql.casefold().split())} "
