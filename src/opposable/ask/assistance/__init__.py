"""Repairs of SQL that the engine rejected, for models whose profile asks for assistance.

A rule never sees SQL that the engine accepts. Its repair is used only if the engine accepts the result.
"""

from collections.abc import Callable

from opposable.ask.assistance.missing_joins import RepairedSql, add_missing_joins
from opposable.domain.errors import InvalidArguments, ToolRefused
from opposable.sql.function_allowlist import Dialect
from opposable.sql.name_repair import repair_names
from opposable.sql.schema import DatabaseSchema

SqlRule = Callable[[str, Dialect, DatabaseSchema], RepairedSql]
"""Repairs one kind of mistake; other SQL is returned unchanged, without corrections."""


def replace_similar_names(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """Replace names that do not exist by the only similar one: `montly_rental` becomes `monthly_rental`."""
    try:
        repaired = repair_names(sql, dialect, schema, allow_similar=True)
    except (InvalidArguments, ToolRefused):
        return sql, ()
    return (sql, ()) if repaired.problems else (repaired.query.sql, repaired.corrections)


RULES: tuple[SqlRule, ...] = (add_missing_joins, replace_similar_names)
"""The rules in the order in which they are applied."""


def repair_rejected_sql(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """Apply every rule in order and return the SQL and the corrections."""
    corrections: list[str] = []
    for rule in RULES:
        sql, made = rule(sql, dialect, schema)
        corrections += made
    return sql, tuple(corrections)
