"""The join graph: which tables join without multiplying rows."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from opposable.ask.semantics.expressions import BoundModel
from opposable.ask.semantics.model import Join, Metric, SemanticModel
from opposable.ask.sql_trees import build_column, build_identifier, exp
from opposable.domain.errors import BadInput

JoinPath = tuple[Join, ...]


@dataclass(frozen=True, slots=True)
class ReachableTables:
    """The tables that a root table reaches from many to one, with the joins to each of them.

    `ambiguous_paths` holds the different join paths of the tables that have several shortest ones.
    """

    root_table: str
    paths: dict[str, JoinPath]
    ambiguous_paths: dict[str, tuple[JoinPath, ...]]

    def explain_unreachable(self, tables: Iterable[str]) -> str:
        """Explain why joining `tables` to the root would count rows twice; "" if they can be joined."""
        root = self.root_table
        for table in tables:
            if table not in self.paths:
                return f"joining {table} to {root} would multiply the rows of {root}, or no join leads there"
            if table in self.ambiguous_paths:
                texts = [", then ".join(join.text for join in path) for path in self.ambiguous_paths[table]]
                paths = " or ".join(f"by {text}" for text in texts)
                return f"{table} can be reached from {root} {paths}: give each role its own table in the model"
        return ""


def find_reachable_tables(model: SemanticModel, root: str) -> ReachableTables:
    """Find the tables that `root` reaches, by the shortest join paths."""
    paths: dict[str, JoinPath] = {root: ()}
    ambiguous: dict[str, tuple[JoinPath, ...]] = {}
    joins = [(join, *model.get_join_tables(join)) for join in model.joins]
    frontier = [root]
    while frontier:
        next_paths: dict[str, list[JoinPath]] = {}
        for table in frontier:
            for join, many, one in joins:
                if many == table and one not in paths:
                    next_paths.setdefault(one, []).append((*paths[table], join))
        paths |= {table: candidates[0] for table, candidates in next_paths.items()}
        ambiguous |= {table: tuple(candidates) for table, candidates in next_paths.items() if len(candidates) > 1}
        frontier = list(next_paths)
    for table, path in paths.items():
        on_path = (model.get_join_tables(join)[1] for join in path)
        if reason := next((ambiguous[one] for one in on_path if one in ambiguous), None):
            ambiguous.setdefault(table, reason)
    return ReachableTables(root, paths, ambiguous)


def find_root_table(model: SemanticModel, tables: Iterable[str], candidates: Iterable[str] = ()) -> str | None:
    """Return the candidate (default: one of `tables`) that reaches `tables` with the fewest joins, or None."""
    needed = list(dict.fromkeys(tables))
    reachable = [find_reachable_tables(model, table) for table in candidates or needed]
    roots = [root for root in reachable if not root.explain_unreachable(needed)]
    nearest = min(roots, key=lambda root: sum(len(root.paths[table]) for table in needed), default=None)
    return nearest.root_table if nearest else None


def find_metric_tables(metric: Metric, semantics: BoundModel) -> ReachableTables:
    """Return the table whose rows a base metric aggregates, with the tables that it reaches.

    Raises:
        BadInput: There is no such table, or the metric aggregates columns of a table that it joins, which would count
            twice.
    """
    bound = semantics.bind_term(metric)
    root = find_root_table(semantics.model, bound.tables)
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
    return find_reachable_tables(semantics.model, root)


def build_join_query(model: SemanticModel, root: str, tables: Iterable[str] = ()) -> Any:
    """Build a SELECT without columns: the root table with LEFT JOINs of tables that it reaches."""
    query = exp.select().from_(_build_source_table(model, root))
    joined: set[str] = set()
    paths = find_reachable_tables(model, root).paths
    for join in (join for table in tables for join in paths[table]):
        many, one = model.get_join_tables(join)
        if one not in joined:
            joined.add(one)
            keys = [exp.EQ(this=build_column(a, many), expression=build_column(b, one)) for a, b in join.on]
            query = query.join(_build_source_table(model, one), on=exp.and_(*keys), join_type="left")
    return query


def split_source(source: str) -> list[str]:
    """Split the source of a table into schema and table. The name of the database is dropped."""
    parts = re.findall(r'"(?:[^"]|"")+"|[^."]+', source)
    return [part[1:-1].replace('""', '"') if part[0] == '"' else part for part in parts][-2:] or [source]


def _build_source_table(model: SemanticModel, ref: str) -> Any:
    parts = split_source(model.tables[ref].source)
    db = build_identifier(parts[-2]) if len(parts) > 1 else None
    table = exp.Table(this=build_identifier(parts[-1]), db=db)
    return table if parts == [ref] else exp.alias_(table, build_identifier(ref), table=True)
