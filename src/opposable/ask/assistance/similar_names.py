"""Replaces a name that does not exist by the only similar name: `montly_rental` → `monthly_rental`."""

from opposable.ask.assistance.missing_joins import RepairedSql
from opposable.domain.errors import InvalidArguments, ToolRefused
from opposable.sql.function_allowlist import Dialect
from opposable.sql.name_repair import repair_names
from opposable.sql.schema import DatabaseSchema


def replace_similar_names(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """Replace names that do not exist; SQL with another problem is unchanged."""
    try:
        repaired = repair_names(sql, dialect, schema, allow_similar=True)
    except (InvalidArguments, ToolRefused):
        return sql, ()
    return (sql, ()) if repaired.problems else (repaired.query.sql, repaired.corrections)
