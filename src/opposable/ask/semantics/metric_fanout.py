"""The table whose rows a metric aggregates, and whether a join would make it count them twice."""

from typing import Any

from opposable.ask.semantics.expressions import bind_expression
from opposable.ask.semantics.join_graph import find_root_table
from opposable.ask.semantics.model import Metric, SemanticModel
from opposable.domain.errors import BadInput


def find_metric_root(metric: Metric, model: SemanticModel, dialect: str) -> str:
    """The table whose rows a base metric aggregates.

    Raises:
        BadInput: there is none, or the expression adds up columns of another table than that, which would count
            twice.
    """
    tree, tables = bind_metric(metric, model, dialect)
    root = find_root_table(model, tables) if tables else None
    if root is None:
        wanted = f"no join puts {', '.join(tables)} together" if tables else "it names no table: give it one"
        raise BadInput(f"the metric {metric.id} has no table to aggregate over: {wanted}.")
    if told := find_multiplied_aggregate(tree, root):
        raise BadInput(
            f"the metric {metric.id} would count twice: {told} is not of {root}, whose rows it is joined to."
        )
    return root


def bind_metric(metric: Metric, model: SemanticModel, dialect: str) -> tuple[Any, tuple[str, ...]]:
    """A base metric's tree and tables."""
    bound = bind_expression(metric.expr, metric.table, model, dialect)
    return bound.tree, bound.tables


def find_multiplied_aggregate(tree: Any, root: str) -> str:
    """The first aggregate in `tree` that a join to `root` would make count rows twice, or ""."""
    from sqlglot import exp

    for aggregate in tree.find_all(exp.AggFunc):
        columns = list(aggregate.find_all(exp.Column))
        same = isinstance(aggregate, exp.Min | exp.Max) or aggregate.find(exp.Distinct) is not None
        if columns and not same and all(column.table != root for column in columns):
            return str(aggregate.sql())
    return ""
