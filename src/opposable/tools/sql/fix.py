"""Puts wrong names right where only one name can have been meant."""

from dataclasses import dataclass

from opposable.tools.sql.functions import Dialect
from opposable.tools.sql.guard import Query, guard
from opposable.tools.sql.names import NameProblem, Replacement, check_names
from opposable.tools.sql.schema import Schema

_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Fixed:
    """A query after repair: `corrections` in words, and the problems that are left ("()": every name exists)."""

    query: Query
    corrections: tuple[str, ...]
    problems: tuple[NameProblem, ...]


def fix_names(sql: str, dialect: Dialect, schema: Schema) -> Fixed:
    """Checks `sql` and repairs its names; never chooses between candidates that are about equally near.

    Raises:
        ToolRefused, InvalidArguments: as `guard` does.
    """
    query = guard(sql, dialect, schema)
    corrections: list[str] = []
    for _ in range(_ROUNDS):
        problems = check_names(query, schema)
        repairs = _apart([problem.repair for problem in problems if problem.repair])
        if not repairs:
            return Fixed(query, tuple(corrections), problems)
        corrections += [repair.told for repair in repairs if repair.told not in corrections]
        query = guard(_replaced(query.sql, repairs), dialect, schema)
    return Fixed(query, tuple(corrections), check_names(query, schema))


def _apart(repairs: list[Replacement]) -> list[Replacement]:
    """The repairs in the order of the text, without those that touch one before them."""
    kept: list[Replacement] = []
    for repair in sorted(repairs, key=lambda r: (r.start, r.end)):
        if not kept or repair.start >= kept[-1].end:
            kept.append(repair)
    return kept


def _replaced(sql: str, repairs: list[Replacement]) -> str:
    for repair in reversed(repairs):
        sql = sql[: repair.start] + repair.text + sql[repair.end :]
    return sql
