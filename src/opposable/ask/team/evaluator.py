"""Runs SQL and reports what the engine and the data say about it."""

import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import Any

from opposable.ask.assistance.misplaced_columns import repair_misplaced_columns
from opposable.ask.catalog.table_samples import is_private_column
from opposable.ask.sql_trees import exp, parse_query, resolve_sources
from opposable.ask.team import literals, messages
from opposable.ask.team.state import Candidate, CandidateOutcome
from opposable.domain.errors import ToolError, ToolUnavailable
from opposable.domain.localized_text import LocalizedText, localize
from opposable.parsers import escape_special_tokens
from opposable.sql.database import Database
from opposable.sql.errors import QueryTimedOut
from opposable.sql.messages import get_error_message
from opposable.sql.schema import DatabaseSchema, to_one_line
from opposable.sql.tools import SqlTools

MAX_RESULT_ROWS = 1_000


async def run_candidate(database: Database, candidate: Candidate, *, assisted: bool = False) -> CandidateOutcome:
    """Run a candidate as it is written; with `assisted`, repair SQL that the engine rejects."""
    outcome = await _execute(database, candidate)
    if assisted and not outcome.has_run and outcome.problem_kind != "QueryTimedOut":
        sql, corrections = repair_misplaced_columns(candidate.sql, database.dialect, await database.get_schema())
        repaired = await _execute(database, replace(candidate, sql=sql)) if corrections else outcome
        if repaired.has_run:
            return replace(repaired, candidate=candidate, corrections=(*corrections, *repaired.corrections))
    return outcome


async def _execute(database: Database, candidate: Candidate) -> CandidateOutcome:
    try:
        result = await SqlTools(database, binds_placeholders=False).execute(candidate.sql, limit=MAX_RESULT_ROWS)
    except ToolError as error:
        problem = _sanitize_message(get_error_message(error))
        is_final = isinstance(error, QueryTimedOut | ToolUnavailable)
        kind = type(error).__name__ if is_final else normalize_problem(str(error))
        return CandidateOutcome(candidate, "", problem=problem, problem_kind=kind)
    fields = result["sql"], tuple(result["columns"]), tuple(map(tuple, result["rows"])), result["truncated"]
    return CandidateOutcome(candidate, *fields, corrections=tuple(result["corrections"]))


def normalize_problem(problem: str) -> str:
    """Return the problem without names and numbers, to recognize repetitions."""
    return " ".join(re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\b\w*[\d_.]\w*\b", "…", problem.casefold()).split())[:80]


async def explain_empty_result(
    database: Database, outcome: CandidateOutcome, private_columns: Collection[str] = ()
) -> CandidateOutcome:
    """Report why a result is empty: a text that no row has, or a condition that no row satisfies.

    One row of NULLs and zeros is empty too. A text that no row has is a warning. If similar values exist, or another
    column has it, it is a suspicion too, so that the model can answer again. Values of private columns are not shown.
    """
    is_empty = not outcome.rows or (len(outcome.rows) == 1 and all(cell in (None, 0) for cell in outcome.rows[0]))
    if not outcome.has_run or not is_empty:
        return outcome
    warnings: list[LocalizedText] = []
    has_alternatives = False
    for literal in await literals.find_missing_literals(outcome.sql, database):
        is_private = is_private_column(literal.table, literal.column, private_columns)
        near_values = [] if is_private else await literals.find_near_values(database, literal)
        is_spelling = any(near.casefold().strip() == literal.value.casefold().strip() for near in near_values)
        columns = [] if is_spelling else await literals.find_locations(database, literal)
        warnings.append(messages.missing_value(literal.column, literal.value, near_values[:5], columns))
        has_alternatives = has_alternatives or bool(near_values or columns)
    if not warnings:
        condition = await literals.find_unmatched_condition(outcome.sql, database)
        return replace(outcome, empty_reason=condition and messages.UNMATCHED_CONDITION.format(condition=condition))
    warning = messages.join_suspicions(warnings)
    outcome = replace(outcome, warnings=(*outcome.warnings, warning), empty_reason=warning)
    return replace(outcome, suspicion=warning, problem_kind=normalize_problem(warning)) if has_alternatives else outcome


async def warn_of_ties(database: Database, outcome: CandidateOutcome) -> CandidateOutcome:
    """Add a warning to a compiled ranking whose last row is equal to the next one."""
    tree = parse_query(outcome.sql, database.dialect) if outcome.candidate.source == "semantics" else None
    if tree is None or not tree.args.get("limit") or not tree.args.get("order") or not outcome.rows:
        return outcome
    at = tree.named_selects.index(tree.args["order"].expressions[0].this.name)
    query = tree.limit(len(outcome.rows) + 1)
    with suppress(ToolError):
        rows = (await database.run(query.sql(dialect=database.dialect), None, literals.LOOKUP_LIMITS)).rows
        if len(rows) > len(outcome.rows) and rows[-1][at] == rows[-2][at]:
            return replace(outcome, warnings=(*outcome.warnings, messages.TIED_ROWS.format(column=outcome.columns[at])))
    return outcome


async def warn_of_row_explosion(database: Database, outcome: CandidateOutcome) -> CandidateOutcome:
    """Add a warning to rows of joined tables that are more than any table has, if the exact counts are known."""
    schema = await database.get_schema()
    tables = [table for table in schema.tables if table.kind == "table"]
    counts = [table.row_count for table in tables if table.row_count is not None and table.is_row_count_exact]
    is_larger = len(counts) == len(tables) and len(outcome.rows) > max([*counts, 20])
    if not counts or not is_larger or not _joins_tables_by_equality(parse_query(outcome.sql, database.dialect), schema):
        return outcome
    warning = messages.ROW_EXPLOSION.format(row_count=len(outcome.rows), max_table_rows=max(counts))
    return replace(outcome, warnings=(*outcome.warnings, warning))


def _joins_tables_by_equality(tree: Any, schema: DatabaseSchema) -> bool:
    """Return whether a query lists rows of joined tables only, which a missing condition would multiply.

    Groups, other sources (a calendar, the items of a list) and pairs by another comparison are more rows on purpose.
    """
    clauses = ("with_", "laterals", "group", "distinct")
    if not isinstance(tree, exp.Select) or any(tree.args.get(clause) for clause in clauses):
        return False
    joins = tree.args.get("joins") or ()
    conditions = [join.args.get("using") or (join.args.get("on") or exp.true()).find(exp.EQ) for join in joins]
    pairs = [*tree.find_all(exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)]
    is_pair = any(isinstance(pair.this, exp.Column) and isinstance(pair.expression, exp.Column) for pair in pairs)
    return bool(conditions) and all(conditions) and not is_pair and None not in resolve_sources(tree, schema).values()


def _sanitize_message(message: str) -> str:
    """Shorten a message that may quote cells, and escape a model's special tokens in it."""
    texts = [escape_special_tokens(to_one_line(text, 600)) for text in (message, localize(message, "zh"))]
    return LocalizedText(*texts) if isinstance(message, LocalizedText) else texts[0]
