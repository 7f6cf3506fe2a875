"""What the names in one SELECT may stand for: its sources, its aliases, and the SELECT around it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import Table, folded_name

_ROWID = frozenset({"rowid", "oid", "_rowid_"})

Columns = tuple[str, ...] | None
"""Names of columns; None when they cannot be known."""


@dataclass(frozen=True, slots=True)
class Source:
    """Something in FROM. `columns` is None when they cannot be known; `label` is how a sentence calls it."""

    label: str
    columns: tuple[str, ...] | None
    table: Table | None = None

    def has(self, name: str) -> bool:
        """Whether it has, or may have, a column of this name, in any case."""
        if self.columns is None:
            return True
        wanted = folded_name(name)
        if any(folded_name(column) == wanted for column in self.columns):
            return True
        if self.table is not None:
            return wanted in _ROWID
        return not wanted.isidentifier() and _squeezed(wanted) in {_squeezed(c) for c in self.columns}


@dataclass(slots=True)
class Scope:
    """What the names in one SELECT may stand for; `outer` is the SELECT around it."""

    sources: dict[str, Source]
    aliases: frozenset[str]
    outer: "Scope | None" = None

    def chain(self) -> Iterator["Scope"]:
        """This scope and those around it, inmost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def find_source(self, name: str) -> Source | None:
        """The table or alias of this name, inmost first."""
        wanted = folded_name(name)
        return next((scope.sources[wanted] for scope in self.chain() if wanted in scope.sources), None)

    def has_column(self, name: str) -> bool:
        """Whether an unqualified name is a column or an alias here or further out."""
        wanted = folded_name(name)
        return any(
            wanted in scope.aliases or any(source.has(name) for source in scope.sources.values())
            for scope in self.chain()
        )


Ctes = Mapping[str, Source]
"""The WITH names in sight, in lower case."""


def alias_columns(node: Any) -> tuple[str, ...]:
    """The names in `AS t(names…)`; () when there are none."""
    alias = node.args.get("alias")
    columns = alias.args.get("columns") if hasattr(alias, "args") else None
    return tuple(column.name for column in columns or ())


def renamed(columns: Columns, names: tuple[str, ...]) -> Columns:
    """The columns after `AS t(names…)`: the first ones renamed."""
    if not names:
        return columns
    return names if columns is None else (*names, *columns[len(names) :])


def meaning(name: Any, dialect: Dialect) -> str:
    """What the engine looks for when it reads an identifier: PostgreSQL makes one without quotes small."""
    if dialect != "postgres" or name.args.get("quoted"):
        return str(name.name)
    return folded_name(name.name)


def select_aliases(node: Any) -> frozenset[str]:
    """The names that `AS` gives to expressions of this SELECT, in lower case."""
    from sqlglot import exp

    return frozenset(folded_name(item.alias) for item in node.find_all(exp.Alias) if item.parent_select is node)


def output_name(item: Any, dialect: Dialect) -> str:
    """The name a column of the result gets from one item of the SELECT list; "" when the engine makes one up."""
    if item.alias_or_name == "*":
        return ""
    name: Any = item.args.get("alias") or getattr(item, "this", None)
    if hasattr(name, "args") and name.name == item.alias_or_name:
        return meaning(name, dialect)
    return str(item.alias_or_name)


def bound_names(node: Any) -> frozenset[str]:
    """Names that a lambda or a list comprehension brings with it."""
    from sqlglot import exp

    if isinstance(node, exp.Lambda):
        return frozenset(folded_name(name.name) for name in node.expressions)
    if isinstance(node, exp.Comprehension):
        return frozenset(folded_name(name.name) for name in node.find_all(exp.Identifier) if name.parent is node) | {
            folded_name(str(node.args["expression"].name))
        }
    return frozenset()


def _squeezed(text: str) -> str:
    return "".join(text.split())
