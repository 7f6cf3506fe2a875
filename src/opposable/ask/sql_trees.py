"""SQL as sqlglot trees: parsed statements, names and templates."""

from importlib import import_module
from typing import Any, get_args

from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import DatabaseSchema, Table, quote_name
from opposable.sql.statement_guard import is_with_name


class _LazyModule:
    """A module that is imported when it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


sqlglot: Any = _LazyModule("sqlglot")
exp: Any = _LazyModule("sqlglot.expressions")


def parse_query(sql: str, dialect: Dialect) -> Any:
    """Return the tree of a statement, or None if sqlglot cannot parse it."""
    try:
        return sqlglot.parse_one(sql, dialect=dialect)
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError):
        return None


def list_sources(select: Any) -> list[Any]:
    """Return the sources of a SELECT: of FROM, then of the joins."""
    from_, joins = select.args.get("from_"), select.args.get("joins")
    return [clause.this for clause in (from_, *(joins or ())) if clause]


def resolve_sources(select: Any, schema: DatabaseSchema) -> dict[str, Table | None]:
    """Return the tables of a SELECT by folded alias; None for a source that is not a table of the database."""
    return {
        source.alias_or_name.casefold(): schema.find_table(source.name, source.db)
        if isinstance(source, exp.Table) and not is_with_name(source)
        else None
        for source in list_sources(select)
    }


def build_identifier(name: str) -> Any:
    """Build an identifier, quoted unless every engine accepts the name without quotes."""
    is_safe = name.isascii() and {name.lower(), *(quote_name(name, one) for one in get_args(Dialect))} == {name}
    return exp.to_identifier(name, quoted=not is_safe)


def build_column(name: str, table: str = "") -> Any:
    """Build a column, with its table if one is given."""
    return exp.column(build_identifier(name), table=build_identifier(table) if table else None)


def build_alias(tree: Any, name: str) -> Any:
    """Build `tree AS name` of a copy of the tree."""
    return exp.alias_(tree, build_identifier(name))


def build_is_not_null(tree: Any) -> Any:
    """Build the condition that a copy of the tree is not NULL."""
    return exp.not_(tree.is_(exp.null()))


def fill_template(template: str, dialect: Dialect, **trees: Any) -> Any:
    """Parse SQL and replace its columns of the given names by copies of trees."""

    def replace_column(node: Any) -> Any:
        is_named = isinstance(node, exp.Column) and not node.table and node.name in trees
        return trees[node.name].copy() if is_named else node

    return sqlglot.parse_one(template, dialect=dialect).transform(replace_column)
