"""The join graph: which tables join without multiplying rows."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from opposable.ask.semantics.model import Join, SemanticModel
from opposable.domain.errors import BadInput
from opposable.sql.schema import quote_name

JoinPath = tuple[Join, ...]


@dataclass(frozen=True, slots=True)
class ReachableTables:
    """The tables that a root table reaches from many to one.

    Attributes:
        root_table: The id of the root table.
        paths: The joins to each table.
        ambiguous_paths: The different join paths of the tables that have several shortest ones.
    """

    root_table: str
    paths: dict[str, JoinPath]
    ambiguous_paths: dict[str, tuple[JoinPath, ...]]

    def explain_unreachable(self, tables: Iterable[str]) -> str:
        """Explain why joining `tables` to the root would count rows twice.

        Returns:
            The reason, or "" if the tables can be joined.
        """
        root = self.root_table
        for table in tables:
            if table not in self.paths:
                return f"joining {table} to {root} would multiply the rows of {root}, or no join leads there"
            if table in self.ambiguous_paths:
                paths = " or ".join(
                    f"by {', then '.join(join.text for join in path)}" for path in self.ambiguous_paths[table]
                )
                return f"{table} can be reached from {root} {paths}: give each role its own table in the model"
        return ""


def find_reachable_tables(model: SemanticModel, root: str) -> ReachableTables:
    """Find the tables that `root` reaches, by the shortest join paths."""
    paths: dict[str, JoinPath] = {root: ()}
    ambiguous: dict[str, tuple[JoinPath, ...]] = {}
    frontier = [root]
    while frontier:
        next_paths: dict[str, list[JoinPath]] = {}
        for table in frontier:
            for join in _get_joins_from(model, table):
                one = resolve_table_id(model, join.one)
                if one not in paths:
                    next_paths.setdefault(one, []).append((*paths[table], join))
        for table, candidates in next_paths.items():
            paths[table] = candidates[0]
            if len(candidates) > 1:
                ambiguous[table] = tuple(candidates)
        frontier = list(next_paths)
    for table, path in paths.items():
        on_path = (resolve_table_id(model, join.one) for join in path)
        ambiguous_table = next((other for other in on_path if other in ambiguous), None)
        if ambiguous_table is not None and table not in ambiguous:
            ambiguous[table] = ambiguous[ambiguous_table]
    return ReachableTables(root, paths, ambiguous)


def find_root_table(model: SemanticModel, tables: Iterable[str]) -> str | None:
    """Return the one of `tables` that reaches all the others, or None."""
    unique_tables = list(dict.fromkeys(tables))
    for table in unique_tables:
        if not find_reachable_tables(model, table).explain_unreachable(unique_tables):
            return table
    return None


def find_nearest_root(model: SemanticModel, tables: Iterable[str]) -> str | None:
    """Return the table that reaches `tables` with the fewest joins, or None."""
    unique_tables = list(dict.fromkeys(tables))
    candidates = [find_reachable_tables(model, table) for table in model.tables]
    roots = [reachable for reachable in candidates if not reachable.explain_unreachable(unique_tables)]
    if not roots:
        return None
    return min(roots, key=lambda root: sum(len(root.paths[table]) for table in unique_tables)).root_table


def resolve_table_id(model: SemanticModel, name: str) -> str:
    """Return the id of the table called `name`, case-insensitively.

    Raises:
        BadInput: The model has no such table.
    """
    table = model.find_table(name)
    if table is None:
        raise BadInput(f"there is no table {name} in the semantic model.")
    return table.id


def build_join_query(model: SemanticModel, reachable: ReachableTables, tables: Iterable[str]) -> Any:
    """Build a SELECT without columns: the root table with LEFT JOINs."""
    from sqlglot import exp

    query = exp.select().from_(_build_source_table(model, reachable.root_table))
    joined: set[str] = set()
    for table in tables:
        for join in reachable.paths[table]:
            one = resolve_table_id(model, join.one)
            if one in joined:
                continue
            joined.add(one)
            condition = build_join_condition(model, join)
            query = query.join(_build_source_table(model, one), on=condition, join_type="left")
    return query


def build_join_condition(model: SemanticModel, join: Join) -> Any:
    """Build the ON condition of a join as a sqlglot tree."""
    from sqlglot import exp

    many, one = resolve_table_id(model, join.many), resolve_table_id(model, join.one)
    return exp.and_(*(exp.EQ(this=_build_column(many, a), expression=_build_column(one, b)) for a, b in join.on))


def _build_source_table(model: SemanticModel, ref: str) -> Any:
    from sqlglot import exp

    parts = split_source(model.tables[ref].source)
    db = build_identifier(parts[-2]) if len(parts) > 1 else None
    table = exp.Table(this=build_identifier(parts[-1]), db=db)
    return table if parts == [ref] else exp.alias_(table, build_identifier(ref), table=True)


def split_source(source: str) -> list[str]:
    """Split the source of a table into schema and table.

    The name of the database is dropped.
    """
    parts = re.findall(r'"(?:[^"]|"")+"|[^."]+', source)
    return [part[1:-1].replace('""', '"') if part[0] == '"' else part for part in parts][-2:] or [source]


def _build_column(table: str, name: str) -> Any:
    from sqlglot import exp

    return exp.column(build_identifier(name), table=build_identifier(table))


def build_identifier(name: str) -> Any:
    """Build a sqlglot identifier.

    It is quoted unless every engine accepts the name without quotes.
    """
    from sqlglot import exp

    is_safe = name.isascii() and name == name.lower() and quote_name(name) == quote_name(name, "mysql") == name
    return exp.to_identifier(name, quoted=not is_safe)


def _get_joins_from(model: SemanticModel, table: str) -> list[Join]:
    return [join for join in model.joins if resolve_table_id(model, join.many) == table]
