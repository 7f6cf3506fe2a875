"""The expressions of a semantic model as trees, each column bound to a table of the model."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from opposable.ask.semantics.join_graph import build_identifier
from opposable.ask.semantics.model import SemanticModel, Term
from opposable.domain.errors import BadInput
from opposable.sql.name_similarity import suggest_names
from opposable.sql.schema import to_one_line

_MAX_EXPRESSION_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class BoundExpression:
    """An expression whose columns name their tables (by the model's ids). `tree` is sqlglot's; copy it before use."""

    tree: Any
    tables: tuple[str, ...]

    @property
    def has_aggregate(self) -> bool:
        """Whether it computes an aggregate."""
        return contains_aggregate(self.tree)


def bind_expression(expr: str, table: str, model: SemanticModel, dialect: str) -> BoundExpression:
    """`expr` with every bare column given to `table`, and every other to the table it names.

    Raises:
        BadInput: it is no expression, or names a table that the model does not have.
    """
    from sqlglot import exp

    tree = parse_expression(expr, model.dialect or dialect)
    own = model.find_table(table) if table else None
    if table and own is None:
        raise BadInput(f"there is no table {table}; {_suggest_tables(table, model)}")
    tables = {own.id: None} if own else {}
    for column in list(tree.find_all(exp.Column)):
        if column.args.get("db"):
            raise BadInput(f"{column.sql()}: write table.column, and the schema in tables: NAME: {{source: …}}.")
        found = model.find_table(column.table) if column.table else own
        if found is None and column.table:
            raise BadInput(f"{column.sql()}: there is no table {column.table}; {_suggest_tables(column.table, model)}")
        if found is None:
            raise BadInput(f"{column.sql()}: write table.column, or give the entry a table.")
        tables[found.id] = None
        column.set("table", build_identifier(found.id))
    return BoundExpression(tree, tuple(tables))


def parse_expression(expr: str, dialect: str) -> Any:
    """A copy of sqlglot's tree of one expression.

    Raises:
        BadInput: it cannot be read, or is a statement, a subquery, or has an alias.
    """
    return _parse_cached(expr, dialect).copy()


@lru_cache(maxsize=4_096)
def _parse_cached(expr: str, dialect: str) -> Any:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    shown = to_one_line(expr, 80)
    if len(expr) > _MAX_EXPRESSION_CHARACTERS:
        raise BadInput(f"the expression has {len(expr)} characters: at most {_MAX_EXPRESSION_CHARACTERS} are read.")
    try:
        trees = [tree for tree in sqlglot.parse(expr, dialect=dialect or None) if tree is not None]
    except (SqlglotError, RecursionError) as error:
        raise BadInput(f"{shown!r} is no SQL expression: check quotes, commas and parentheses.") from error
    except ValueError as error:
        raise BadInput(f"{dialect!r} is no SQL dialect that is known here.") from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Condition | exp.Func | exp.Paren | exp.Binary | exp.Unary):
        hint = (
            "leave AS out, the id is the name" if trees and isinstance(trees[0], exp.Alias) else "write one expression"
        )
        raise BadInput(f"{shown!r} is no single SQL expression: {hint}.")
    if trees[0].find(exp.Query, exp.Command, exp.DDL, exp.Window) is not None:
        raise BadInput(f"{shown!r} holds a query or a window: write an expression over columns, and joins under joins.")
    return trees[0]


def contains_aggregate(tree: Any) -> bool:
    """Whether an aggregate function stands in `tree`."""
    from sqlglot import exp

    return tree.find(exp.AggFunc, exp.AnonymousAggFunc) is not None


def get_input_metrics(metric: Term, model: SemanticModel, dialect: str) -> tuple[str, ...]:
    """The ids of the metrics that a derived metric is computed from; () when it aggregates by itself.

    Raises:
        BadInput: the expression neither aggregates nor names only metrics.
    """
    from sqlglot import exp

    tree = parse_expression(metric.expr, model.dialect or dialect)
    if contains_aggregate(tree):
        return ()
    names = [column.name for column in tree.find_all(exp.Column)]
    wrong = [name for name in names if name not in model.metrics or name == metric.id]
    if wrong or not names:
        near = suggest_names(wrong[0], model.metrics, 1) if wrong else ()
        hint = f"; did you mean the metric {near[0]}?" if near and near[0] != metric.id else ""
        raise BadInput(
            f"{metric.expr!r} neither aggregates (SUM, COUNT, AVG …) nor is computed from other metrics alone{hint or '.'}"
        )
    return tuple(dict.fromkeys(names))


def resolve_base_metrics(
    metric_id: str, model: SemanticModel, dialect: str, ancestors: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The aggregating metrics that `id` rests on, itself when it is one.

    Raises:
        BadInput: it rests on itself, or its expression is wrong.
    """
    if metric_id in ancestors:
        raise BadInput(f"the metric {metric_id} is computed from itself: {' → '.join([*ancestors, metric_id])}.")
    inputs = get_input_metrics(model.metrics[metric_id], model, dialect)
    if not inputs:
        return (metric_id,)
    found = [base for name in inputs for base in resolve_base_metrics(name, model, dialect, (*ancestors, metric_id))]
    return tuple(dict.fromkeys(found))


def build_metric_tree(metric_id: str, model: SemanticModel, dialect: str, get_base_tree: Any) -> Any:
    """The tree of metric `id` with `base(metric_id)`, a function that gives trees, in place of each base metric.

    Divisions are of floating-point numbers, and by zero give NULL.
    """
    from sqlglot import exp

    metric = model.metrics[metric_id]
    if not get_input_metrics(metric, model, dialect):
        return get_base_tree(metric_id)
    tree = parse_expression(metric.expr, model.dialect or dialect)
    root = exp.Paren(this=tree)
    for division in list(root.find_all(exp.Div)):
        division.set("this", exp.cast(exp.paren(division.this), "double"))
        division.set("expression", exp.func("NULLIF", division.expression, exp.Literal.number(0)))
    for column in list(root.find_all(exp.Column)):
        column.replace(exp.paren(build_metric_tree(column.name, model, dialect, get_base_tree)))
    return root.this


def _suggest_tables(name: str, model: SemanticModel) -> str:
    near = suggest_names(name, model.tables, 1)
    return f"did you mean {near[0]}?" if near else f"the tables are {', '.join(list(model.tables)[:20]) or 'none'}."
