"""Runs SQL and says what is wrong with it: the engine's word, or what about its rows is doubtful."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from opposable.ask.catalog.value_matching import ValueMatch
from opposable.ask.sql_repair.aggregates import grouped
from opposable.ask.sql_repair.aliases import with_own_aliases
from opposable.ask.sql_repair.anti_joins import with_absent
from opposable.ask.sql_repair.date_functions import plain_dates
from opposable.ask.sql_repair.foreign_key_joins import by_keys
from opposable.ask.sql_repair.joins import (
    Standing,
    joins_nothing,
    with_needed,
    with_outer,
    without_emptied,
    without_same,
    without_sibling,
    without_spare,
    without_unasked,
)
from opposable.ask.sql_repair.literals import Literal, NearValues, Place, exists, literals, moved, replaced
from opposable.ask.sql_repair.question_requirements import borrowed, unmet
from opposable.ask.sql_repair.result_shape import doubt, in_shape
from opposable.ask.sql_repair.sql_tree import Mended, parsed, plain_tables, selects
from opposable.ask.sql_repair.syntax import readable
from opposable.ask.team.state import Candidate, Outcome, print_of
from opposable.domain.errors import InvalidArguments, ToolError, ToolRefused
from opposable.parsers import defuse
from opposable.sql.database import Database
from opposable.sql.name_repair import fix_names
from opposable.sql.schema import Schema, one_line
from opposable.sql.tools import SqlTools

ROWS = 1_000


async def run(database: Database, candidate: Candidate, corrections: Sequence[str] = ()) -> Outcome:
    """What comes of a candidate: checked, its names mended where only one can be meant, planned, run.

    `corrections` are what was put right in it before.
    """
    try:
        told = await SqlTools(database).execute(candidate.sql, limit=ROWS)
    except ToolError as error:
        return Outcome(candidate, "", problem=_sentence(str(error)), kind=kind_of(str(error)))
    except TimeoutError as error:
        return Outcome(candidate, "", problem=_sentence(str(error) or "it took too long"), kind="timeout")
    return Outcome(
        candidate,
        told["sql"],
        tuple(told["columns"]),
        tuple(tuple(row) for row in told["rows"]),
        told["truncated"],
        corrections=(*corrections, *told["corrections"]),
    )


async def prepared(database: Database, sql: str, question: str) -> Mended:
    """SQL put into the shape the question's words ask for, with the tables it needs and no more."""
    schema, dialect = await database.schema(), database.dialect
    told: list[str] = []

    def mended(step: Mended) -> str:
        told.extend(step[1])
        return step[0]

    sql = mended(readable(sql, dialect))
    sql = mended(with_own_aliases(sql, dialect, schema))
    sql = mended(with_absent(sql, dialect, schema))
    sql = mended(plain_dates(sql, question, dialect, schema))
    sql = mended(grouped(sql, question, dialect))
    sql = mended(in_shape(sql, question, dialect))
    written = sql
    sql = mended(by_keys(sql, dialect, schema))
    sql = mended(with_needed(sql, dialect, schema))
    try:
        fixed = fix_names(sql, dialect, schema)
    except (ToolRefused, InvalidArguments):  # told when it is run
        return sql, tuple(told)
    if fixed.problems:
        return sql, tuple(told)
    told += fixed.corrections
    sql = mended(without_emptied(fixed.query.sql, written, dialect, schema))
    sql = mended(without_same(sql, dialect, schema))
    sql = mended(without_sibling(sql, dialect, schema))
    also = await _standing(database, sql, schema)
    sql = mended(without_unasked(sql, question, dialect, schema, also))
    sql = mended(without_spare(sql, dialect, schema))  # last: what it leaves out may be what the question speaks of
    return sql, tuple(told)


async def _standing(database: Database, sql: str, schema: Schema) -> set[Standing]:
    """Which values the SQL looks for stand in a column called the same of another table that it reads."""
    tree = parsed(sql, database.dialect)
    read = (
        [table for select in selects(tree) for table in (plain_tables(select, schema) or {}).values()] if tree else []
    )
    found: set[Standing] = set()
    for literal in literals(sql, database, schema) if len(read) > 1 else ():
        for table in read:
            column = table.find_column(literal.column) if table.full_name != literal.table.full_name else None
            if column is not None and await exists(database, replace(literal, table=table, column=column.name)):
                found.add((table.full_name, column.name.casefold(), literal.value))
    return found


async def with_missing(database: Database, outcome: Outcome) -> Outcome:
    """The outcome, or, where it found nothing because an inner join drops what it looks for, that of an outer join."""
    if not outcome.ran or not _nothing(outcome.rows):
        return outcome
    sql, told = with_outer(outcome.sql, database.dialect)
    if not told:
        return outcome
    mended = await run(database, replace(outcome.candidate, sql=sql), (*outcome.corrections, *told))
    return replace(mended, candidate=outcome.candidate) if mended.ran and not _nothing(mended.rows) else outcome


def kind_of(problem: str) -> str:
    """What a problem is a case of: its sentence without names and numbers, so that the same mistake is known again."""
    plain = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\b\w*[\d_.]\w*\b", "…", problem.casefold())
    return " ".join(plain.split())[:80]


async def with_real_values(database: Database, outcome: Outcome, values: NearValues) -> Outcome:
    """The outcome, or, where it found nothing because of a value no row has, that of the same SQL with the real value.

    The outcome is doubtful where no row has the value and none is near enough, or several are.
    """
    if not outcome.ran or not _nothing(outcome.rows):
        return outcome
    changes: list[tuple[Literal, str]] = []
    doubts: list[str] = []
    for literal in literals(outcome.sql, database, await database.schema()):
        if await exists(database, literal):
            continue
        near = list(await values.near(literal.table, literal.column, literal.value))
        same = [one for one in near if one.casefold().strip() == literal.value.casefold().strip()]
        places = () if same else await values.places(literal.value)
        other = await _elsewhere(database, outcome, literal, places)
        if other is not None:
            return other
        meant = same[:1] or (near if len(near) == 1 else [])
        changes += [(literal, value) for value in meant]
        doubts += [] if meant else [_no_such_value(literal.column, literal.value, near, places)]
    if changes:
        mended = await run(database, replace(outcome.candidate, sql=replaced(outcome.sql, changes)))
        told = tuple(f"'{literal.value}' → '{value}'" for literal, value in changes)
        if mended.ran and not _nothing(mended.rows):
            return replace(mended, candidate=outcome.candidate, corrections=(*outcome.corrections, *told))
    return _doubted(outcome, "; ".join(doubts))


async def _elsewhere(database: Database, outcome: Outcome, literal: Literal, places: Sequence[Place]) -> Outcome | None:
    """The outcome with a value looked for in the column it stands in; None where that brings nothing."""
    put = moved(outcome.sql, database, literal, places) if places else None
    if put is None:
        return None
    mended = await run(database, replace(outcome.candidate, sql=put[0]))
    if not mended.ran or _nothing(mended.rows):
        return None
    told = f"{literal.column} = '{literal.value}' → {put[1].column}"
    return replace(mended, candidate=outcome.candidate, corrections=(*outcome.corrections, told))


def exploded(outcome: Outcome, largest: int | None) -> Outcome:
    """The outcome, doubted where it has more rows than any table: a join that lacks its condition."""
    if (
        not outcome.ran
        or largest is None
        or len(outcome.rows) <= max(largest, 20)
        or " join " not in _flat(outcome.sql)
    ):
        return outcome
    said = f"it brings {len(outcome.rows)} rows, more than any table has ({largest}): a join multiplies rows"
    return _doubted(outcome, said)


def out_of_shape(outcome: Outcome, question: str, named: Sequence[ValueMatch], schema: Schema) -> Outcome:
    """The outcome, doubted where it cannot be what the question's words ask for; `named` are the values it names."""
    if not outcome.good:
        return outcome
    values = [match.value for match in named]
    told = doubt(question, outcome.sql, len(outcome.columns), len(outcome.rows), values)
    empty = joins_nothing(outcome.sql, schema.dialect)
    told = told or (f"ON {empty} joins every row with every row" if empty else "") or borrowed(outcome.sql, schema)
    return _doubted(outcome, told or unmet(question, outcome.sql, schema.dialect, values))


def agreed(outcomes: Sequence[Outcome]) -> tuple[Outcome, float]:
    """The outcome to answer with, and the share of those that ran which agree with it.

    Those without doubts come first; among them the result most of them brought; then the surest writer's.
    """
    ran = [outcome for outcome in outcomes if outcome.good] or [outcome for outcome in outcomes if outcome.ran]
    votes: dict[str, list[Outcome]] = {}
    for outcome in ran:
        votes.setdefault(print_of(outcome), []).append(outcome)
    best = max(votes.values(), key=lambda group: (len(group), max(o.candidate.weight for o in group)))
    return max(best, key=lambda outcome: outcome.candidate.weight), len(best) / len(ran)


def _nothing(rows: Sequence[Sequence[Any]]) -> bool:
    """Whether a result says nothing: no rows, or one of NULLs and zeros."""
    return not rows or (len(rows) == 1 and all(cell in (None, 0) for cell in rows[0]))


def _no_such_value(column: str, value: str, near: Sequence[str], places: Sequence[Place]) -> str:
    told = f"no row has {column} = '{value}'"
    if places:
        return f"{told}; it stands in {', '.join(f'{place.table}.{place.column}' for place in places[:3])}"
    return f"{told}; near are {', '.join(repr(one) for one in near[:5])}" if near else told


def _doubted(outcome: Outcome, doubt: str) -> Outcome:
    if not doubt:
        return outcome
    return replace(outcome, suspicion=doubt, kind=kind_of(doubt))


def _sentence(text: str) -> str:
    """What an engine says, which may quote a cell, as it may stand before a model."""
    return defuse(one_line(text, 600) or "")


def _flat(sql: str) -> str:
    return f" {' '.join(sql.casefold().split())} "
