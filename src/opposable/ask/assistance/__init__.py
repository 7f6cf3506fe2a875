"""Repairs of SQL that the engine rejected, for models whose profile asks for assistance.

A rule never sees SQL that the engine accepts. Its repair is used only if the engine accepts the result.
"""

from collections.abc import Callable

from opposable.ask.assistance.missing_joins import RepairedSql, add_missing_joins
from opposable.ask.assistance.similar_names import replace_similar_names
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import DatabaseSchema

SqlRule = Callable[[str, Dialect, DatabaseSchema], RepairedSql]
"""Repairs one kind of mistake; other SQL is returned unchanged, without corrections."""

RULES: tuple[SqlRule, ...] = (add_missing_joins, replace_similar_names)
"""The rules in the order in which they are applied."""


def repair_rejected_sql(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """Apply every rule in order and return the SQL and the corrections."""
    corrections: list[str] = []
    for rule in RULES:
        sql, made = rule(sql, dialect, schema)
        corrections += made
    return sql, tuple(corrections)
