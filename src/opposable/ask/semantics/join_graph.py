"""The join graph: which tables join without multiplying rows."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from opposable.ask.semantics.expressions import bind_term
from opposable.ask.semantics.model import Join, Metric, SemanticModel
from opposable.ask.sql_trees import build_column, build_identifier, exp
from opposable.domain.errors import BadInput

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
            for join in model.joins:
                one = _get_table_id(model, join.one)
                if _get_table_id(model, join.many) == table and one not in paths:
                    next_paths.setdefault(one, []).append((*paths[table], join))
        for table, candidates in next_paths.items():
            paths[table] = candidates[0]
            if len(candidates) > 1:
                ambiguous[table] = tuple(candidates)
        frontier = list(next_paths)
    for table, path in paths.items():
        on_path = (_get_table_id(model, join.one) for join in path)
        ambiguous_table = next((other for other in on_path if other in ambiguous), None)
        if ambiguous_table is not None:
            ambiguous.setdefault(table, ambiguous[ambiguous_table])
    return ReachableTables(root, paths, ambiguous)


def find_root_table(model: SemanticModel, tables: Iterable[str]) -> str | None:
    """Return the one of `tables` that reaches all the others, or None."""
    return find_nearest_root(model, tables, tables)


def find_nearest_root(model: SemanticModel, tables: Iterable[str], candidates: Iterable[str]) -> str | None:
    """Return the candidate that reaches `tables` with the fewest joins, or None."""
    needed = list(dict.fromkeys(tables))
    reachable = [find_reachable_tables(model, table) for table in dict.fromkeys(candidates)]
    roots = [root for root in reachable if not root.explain_unreachable(needed)]
    nearest = min(roots, key=lambda root: sum(len(root.paths[table]) for table in needed), default=None)
    return nearest.root_table if nearest else None


def find_metric_root(metric: Metric, model: SemanticModel, dialect: str) -> str:
    """Return the table whose rows a base metric aggregates.

    Raises:
        BadInput: There is no such table, or the metric aggregates columns of a table that it joins, which would count
            twice.
    """
    bound = bind_term(metric, model, dialect)
    root = find_root_table(model, bound.tables)
    if root is None:
        tables = ", ".join(bound.tables)
        reason = f"no join puts {tables} together" if tables else "it names no table: give it one"
        raise BadInput(f"the metric {metric.id} has no table to aggregate over: {reason}.")
    for aggregate in bound.tree.find_all(exp.AggFunc):
        columns = list(aggregate.find_all(exp.Column))
        ignores_duplicates = isinstance(aggregate, exp.Min | exp.Max) or aggregate.find(exp.Distinct) is not None
        if columns and not ignores_duplicates and all(column.table != root for column in columns):
            raise BadInput(
                f"the metric {metric.id} would count twice: {aggregate.sql()} is not of {root}, "
                "whose rows it is joined to."
            )
    return root


def build_join_query(model: SemanticModel, root: str, tables: Iterable[str] = ()) -> Any:
    """Build a SELECT without columns: the root table with LEFT JOINs of tables that it reaches."""
    query = exp.select().from_(_build_source_table(model, root))
    joined: set[str] = set()
    paths = find_reachable_tables(model, root).paths
    for join in (join for table in tables for join in paths[table]):
        many, one = _get_table_id(model, join.many), _get_table_id(model, join.one)
        if one not in joined:
            joined.add(one)
            keys = [exp.EQ(this=build_column(a, many), expression=build_column(b, one)) for a, b in join.on]
            query = query.join(_build_source_table(model, one), on=exp.and_(*keys), join_type="left")
    return query


def split_source(source: str) -> list[str]:
    """Split the source of a table into schema and table.

    The name of the database is dropped.
    """
    parts = re.findall(r'"(?:[^"]|"")+"|[^."]+', source)
    return [part[1:-1].replace('""', '"') if part[0] == '"' else part for part in parts][-2:] or [source]


def _build_source_table(model: SemanticModel, ref: str) -> Any:
    parts = split_source(model.tables[ref].source)
    db = build_identifier(parts[-2]) if len(parts) > 1 else None
    table = exp.Table(this=build_identifier(parts[-1]), db=db)
    return table if parts == [ref] else exp.alias_(table, build_identifier(ref), table=True)


def _get_table_id(model: SemanticModel, name: str) -> str:
    """Return the id of the table that a join names, case-insensitively."""
    table = model.find_table(name)
    assert table is not None  # the model has every table that a join names
    return table.id
