"""Scopes of names in a query: the sources and aliases of each SELECT."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import Table, fold_name

_ROWID_NAMES = frozenset({"rowid", "oid", "_rowid_"})

ColumnNames = tuple[str, ...] | None
"""Names of columns; None where they cannot be known."""


@dataclass(frozen=True, slots=True)
class FromSource:
    """An item of FROM; `label` is its name in messages."""

    label: str
    columns: tuple[str, ...] | None
    table: Table | None = None

    def has_column(self, name: str) -> bool:
        """Whether it has, or may have, a column of this name in any letter case."""
        if self.columns is None:
            return True
        wanted = fold_name(name)
        if any(fold_name(column) == wanted for column in self.columns):
            return True
        if self.table is not None:
            return wanted in _ROWID_NAMES | self.table.hidden_columns
        return not wanted.isidentifier() and _remove_whitespace(wanted) in {_remove_whitespace(c) for c in self.columns}


@dataclass(slots=True)
class Scope:
    """The names visible in one SELECT; `outer` is the scope of the enclosing SELECT."""

    sources: dict[str, FromSource]
    aliases: frozenset[str]
    outer: "Scope | None" = None

    def iter_scopes(self) -> Iterator["Scope"]:
        """Yield this scope and the enclosing ones, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def find_source(self, name: str) -> FromSource | None:
        """Return the table or alias of this name, from the innermost scope that has it."""
        wanted = fold_name(name)
        return next((scope.sources[wanted] for scope in self.iter_scopes() if wanted in scope.sources), None)

    def has_column(self, name: str) -> bool:
        """Whether a name is a column or alias here or in an enclosing scope."""
        wanted = fold_name(name)
        return any(
            wanted in scope.aliases or any(source.has_column(name) for source in scope.sources.values())
            for scope in self.iter_scopes()
        )


Ctes = Mapping[str, FromSource]
"""The visible WITH names, folded."""


def get_alias_columns(node: Any) -> tuple[str, ...]:
    """Return the names in `AS t(names…)`."""
    alias = node.args.get("alias")
    columns = alias.args.get("columns") if hasattr(alias, "args") else None
    return tuple(column.name for column in columns or ())


def rename_columns(columns: ColumnNames, names: tuple[str, ...]) -> ColumnNames:
    """Return the columns after `AS t(names…)`, which renames the first ones."""
    if not names:
        return columns
    return names if columns is None else (*names, *columns[len(names) :])


def resolve_identifier(name: Any, dialect: Dialect) -> str:
    """Return the name that the engine reads for an identifier.

    PostgreSQL folds an unquoted identifier to lower case.
    """
    if dialect != "postgres" or name.args.get("quoted"):
        return str(name.name)
    return fold_name(name.name)


def get_select_aliases(node: Any) -> frozenset[str]:
    """Return the folded names of expressions of this SELECT, by `AS` or by ClickHouse's `WITH expression AS name`."""
    from sqlglot import exp

    with_ = node.args.get("with_")
    ctes = [cte for cte in with_.expressions if not isinstance(cte.this, exp.Query)] if with_ else []
    aliases = [item for item in node.find_all(exp.Alias) if item.parent_select is node]
    return frozenset(fold_name(item.alias) for item in (*ctes, *aliases))


def get_output_name(item: Any, dialect: Dialect) -> str:
    """Return the result column name of an item of a SELECT list.

    It is "" where the engine generates the name.
    """
    if item.alias_or_name == "*":
        return ""
    name: Any = item.args.get("alias") or getattr(item, "this", None)
    if hasattr(name, "args") and name.name == item.alias_or_name:
        return resolve_identifier(name, dialect)
    return str(item.alias_or_name)


def get_bound_names(node: Any) -> frozenset[str]:
    """Return the folded names that a lambda or a list comprehension defines."""
    from sqlglot import exp

    if isinstance(node, exp.Lambda):
        return frozenset(fold_name(name.name) for name in node.expressions)
    if isinstance(node, exp.Comprehension):
        return frozenset(fold_name(name.name) for name in node.find_all(exp.Identifier) if name.parent is node) | {
            fold_name(str(node.args["expression"].name))
        }
    return frozenset()


def _remove_whitespace(text: str) -> str:
    return "".join(text.split())
