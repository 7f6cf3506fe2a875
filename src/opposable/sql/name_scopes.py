"""What the names in one SELECT may stand for: its sources, its aliases, and the SELECT around it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import Table, fold_name

_ROWID_NAMES = frozenset({"rowid", "oid", "_rowid_"})

ColumnNames = tuple[str, ...] | None
"""Names of columns; None when they cannot be known."""


@dataclass(frozen=True, slots=True)
class FromSource:
    """Something in FROM. `columns` is None when they cannot be known; `label` is how a sentence calls it."""

    label: str
    columns: tuple[str, ...] | None
    table: Table | None = None

    def has_column(self, name: str) -> bool:
        """Whether it has, or may have, a column of this name, in any case."""
        if self.columns is None:
            return True
        wanted = fold_name(name)
        if any(fold_name(column) == wanted for column in self.columns):
            return True
        if self.table is not None:
            return wanted in _ROWID_NAMES
        return not wanted.isidentifier() and _remove_whitespace(wanted) in {_remove_whitespace(c) for c in self.columns}


@dataclass(slots=True)
class Scope:
    """What the names in one SELECT may stand for; `outer` is the SELECT around it."""

    sources: dict[str, FromSource]
    aliases: frozenset[str]
    outer: "Scope | None" = None

    def iter_scopes(self) -> Iterator["Scope"]:
        """This scope and those around it, inmost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def find_source(self, name: str) -> FromSource | None:
        """The table or alias of this name, inmost first."""
        wanted = fold_name(name)
        return next((scope.sources[wanted] for scope in self.iter_scopes() if wanted in scope.sources), None)

    def has_column(self, name: str) -> bool:
        """Whether an unqualified name is a column or an alias here or further out."""
        wanted = fold_name(name)
        return any(
            wanted in scope.aliases or any(source.has_column(name) for source in scope.sources.values())
            for scope in self.iter_scopes()
        )


Ctes = Mapping[str, FromSource]
"""The WITH names in sight, in lower case."""


def get_alias_columns(node: Any) -> tuple[str, ...]:
    """The names in `AS t(names…)`; () when there are none."""
    alias = node.args.get("alias")
    columns = alias.args.get("columns") if hasattr(alias, "args") else None
    return tuple(column.name for column in columns or ())


def rename_columns(columns: ColumnNames, names: tuple[str, ...]) -> ColumnNames:
    """The columns after `AS t(names…)`: the first ones renamed."""
    if not names:
        return columns
    return names if columns is None else (*names, *columns[len(names) :])


def resolve_identifier(name: Any, dialect: Dialect) -> str:
    """What the engine looks for when it reads an identifier: PostgreSQL makes one without quotes small."""
    if dialect != "postgres" or name.args.get("quoted"):
        return str(name.name)
    return fold_name(name.name)


def get_select_aliases(node: Any) -> frozenset[str]:
    """The names that `AS` gives to expressions of this SELECT, in lower case."""
    from sqlglot import exp

    return frozenset(fold_name(item.alias) for item in node.find_all(exp.Alias) if item.parent_select is node)


def get_output_name(item: Any, dialect: Dialect) -> str:
    """The name a column of the result gets from one item of the SELECT list; "" when the engine makes one up."""
    if item.alias_or_name == "*":
        return ""
    name: Any = item.args.get("alias") or getattr(item, "this", None)
    if hasattr(name, "args") and name.name == item.alias_or_name:
        return resolve_identifier(name, dialect)
    return str(item.alias_or_name)


def get_bound_names(node: Any) -> frozenset[str]:
    """Names that a lambda or a list comprehension brings with it."""
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
