"""Metric fan-out: finds joins that would make a metric count rows twice."""

from typing import Any

from opposable.ask.semantics.expressions import bind_expression
from opposable.ask.semantics.join_graph import find_root_table
from opposable.ask.semantics.model import Metric, SemanticModel
from opposable.domain.errors import BadInput


def find_metric_root(metric: Metric, model: SemanticModel, dialect: str) -> str:
    """Return the table whose rows a base metric aggregates.

    Raises:
        BadInput: There is no such table, or the metric aggregates columns of a table that it joins, which would count
            twice.
    """
    tree, tables = bind_metric(metric, model, dialect)
    root = find_root_table(model, tables) if tables else None
    if root is None:
        reason = f"no join puts {', '.join(tables)} together" if tables else "it names no table: give it one"
        raise BadInput(f"the metric {metric.id} has no table to aggregate over: {reason}.")
    if aggregate := find_multiplied_aggregate(tree, root):
        raise BadInput(
            f"the metric {metric.id} would count twice: {aggregate} is not of {root}, whose rows it is joined to."
        )
    return root


def bind_metric(metric: Metric, model: SemanticModel, dialect: str) -> tuple[Any, tuple[str, ...]]:
    """Bind a base metric and return its tree and tables."""
    bound = bind_expression(metric.expr, metric.table, model, dialect)
    return bound.tree, bound.tables


def find_multiplied_aggregate(tree: Any, root: str) -> str:
    """Return the first aggregate that a join to `root` multiplies, or ""."""
    from sqlglot import exp

    for aggregate in tree.find_all(exp.AggFunc):
        columns = list(aggregate.find_all(exp.Column))
        ignores_duplicates = isinstance(aggregate, exp.Min | exp.Max) or aggregate.find(exp.Distinct) is not None
        if columns and not ignores_duplicates and all(column.table != root for column in columns):
            return str(aggregate.sql())
    return ""
