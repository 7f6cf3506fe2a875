"""Expressions of a semantic model as sqlglot trees with bound columns."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from opposable.ask.semantics.model import Metric, SemanticModel, Term
from opposable.ask.sql_trees import build_identifier, exp, fill_template, sqlglot
from opposable.domain.errors import BadInput
from opposable.sql.function_allowlist import Dialect
from opposable.sql.name_similarity import suggest_names
from opposable.sql.schema import to_one_line

_MAX_EXPRESSION_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class BoundExpression:
    """An expression whose columns are bound to tables of the model.

    `name` is the id of its term, or the expression itself. Copy its sqlglot `tree` before use.
    """

    name: str
    tree: Any
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoundModel:
    """A semantic model in the dialect of a database.

    Its methods raise `BadInput` for an expression that is invalid or names what the model does not define.
    """

    model: SemanticModel
    dialect: Dialect

    def bind_term(self, term: Term) -> BoundExpression:
        """Bind the expression of a term, as `bind_expression` does; only a metric may aggregate."""
        bound = self.bind_expression(term.expr, term.table, term.dialect)
        if not isinstance(term, Metric) and contains_aggregate(bound.tree):
            raise BadInput(f"{term.id} aggregates: only metrics may. Write an expression over the columns of one row.")
        return replace(bound, name=term.id)

    def bind_expression(self, expr: str, table: str, dialect: str = "") -> BoundExpression:
        """Bind the columns of an expression to the tables they name; unqualified columns belong to `table`."""
        tree = self._parse(expr, dialect)
        default_table = self._find_table(table) if table else ""
        tables = {default_table: None} if default_table else {}
        for column in list(tree.find_all(exp.Column)):
            if column.args.get("db"):
                raise BadInput(f"{column.sql()}: write table.column, and the schema in tables: NAME: {{source: …}}.")
            column_table = self._find_table(column.table, f"{column.sql()}: ") if column.table else default_table
            if not column_table:
                raise BadInput(f"{column.sql()}: write table.column, or give the entry a table.")
            tables[column_table] = None
            column.set("table", build_identifier(column_table))
        for name in tree.find_all(exp.Identifier) if self.dialect == "clickhouse" else ():
            if not name.name.isascii():
                name.set("quoted", True)
        return BoundExpression(expr, tree, tuple(tables))

    def bind_condition(self, text: str, table: str = "", *, is_wanted: bool = True) -> BoundExpression:
        """Bind the condition of a filter or an exclusion by its id, or of a text over the columns of `table`.

        The rows of an exclusion are left out. So are those of a filter that is not wanted.
        """
        term = self.model.filters.get(text) or self.model.exclusions.get(text)
        bound = self.bind_term(term) if term else self.bind_expression(text, table)
        if is_wanted == (text not in self.model.exclusions):
            return bound
        return replace(bound, tree=fill_template("NOT COALESCE((c), FALSE)", "duckdb", c=bound.tree))

    def resolve_base_metrics(self, metric_id: str) -> tuple[str, ...]:
        """Return the aggregating metrics of a metric, or its own id; raise as `build_metric_tree` does."""
        base_metrics: dict[str, Any] = {}
        self.build_metric_tree(metric_id, lambda ref: base_metrics.setdefault(ref, exp.null()))
        return tuple(base_metrics)

    def build_metric_tree(self, metric_id: str, get_base: Callable[[str], Any], ancestors: tuple[str, ...] = ()) -> Any:
        """Build the sqlglot tree of a metric from the trees of its base metrics.

        Divisions use floating-point numbers; a division by zero is NULL. `ancestors` are the metrics that are computed
        from this one, to detect cycles.

        Raises:
            BadInput: The metric is computed from itself, or an expression is invalid, or neither aggregates nor names
                only metrics.
        """
        path = (*ancestors, metric_id)
        if metric_id in ancestors:
            raise BadInput(f"the metric {metric_id} is computed from itself: {' → '.join(path)}.")
        metric = self.model.metrics[metric_id]
        root = exp.Paren(this=self._parse(metric.expr, metric.dialect))
        if contains_aggregate(root):
            return get_base(metric_id)
        names = [column.name for column in root.find_all(exp.Column)]
        unknown = [name for name in names if name not in self.model.metrics or name == metric_id]
        if unknown or not names:
            similar = suggest_names(unknown[0], self.model.metrics, 1) if unknown else ()
            hint = f"; did you mean the metric {similar[0]}?" if similar and similar[0] != metric_id else "."
            problem = "neither aggregates (SUM, COUNT, AVG …) nor is computed from other metrics alone"
            raise BadInput(f"{metric.expr!r} {problem}{hint}")
        for division in list(root.find_all(exp.Div)):
            division.set("this", exp.cast(exp.paren(division.this), "double"))
            division.set("expression", exp.func("NULLIF", division.expression, exp.Literal.number(0)))
        for column in list(root.find_all(exp.Column)):
            column.replace(exp.paren(self.build_metric_tree(column.name, get_base, path)))
        return root.this

    def _parse(self, expr: str, dialect: str) -> Any:
        return parse_expression(expr, dialect or self.model.dialect or self.dialect).copy()

    def _find_table(self, name: str, location: str = "") -> str:
        """Return the id of a table, or raise `BadInput` with similar names."""
        if table := self.model.find_table(name):
            return table.id
        similar = suggest_names(name, self.model.tables, 1)
        others = f"the tables are {', '.join(list(self.model.tables)[:20]) or 'none'}."
        raise BadInput(f"{location}there is no table {name}; {f'did you mean {similar[0]}?' if similar else others}")


@lru_cache(maxsize=4_096)
def parse_expression(expr: str, dialect: str) -> Any:
    """Parse one SQL expression and return its sqlglot tree, which is cached: copy it before a change.

    Raises:
        BadInput: The text is not a single expression, or contains a query, a window or an alias.
    """
    shown = to_one_line(expr, 80)
    if len(expr) > _MAX_EXPRESSION_CHARACTERS:
        raise BadInput(f"the expression has {len(expr)} characters: at most {_MAX_EXPRESSION_CHARACTERS} are allowed.")
    try:
        trees = [tree for tree in sqlglot.parse(expr, dialect=dialect or None) if tree is not None]
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise BadInput(f"{shown!r} is not a valid SQL expression: check quotes, commas and parentheses.") from error
    except ValueError as error:
        raise BadInput(f"{dialect!r} is not a supported SQL dialect.") from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Condition | exp.Func | exp.Paren | exp.Binary | exp.Unary):
        has_alias = bool(trees) and isinstance(trees[0], exp.Alias)
        hint = "remove AS, the id is the name" if has_alias else "write one expression"
        raise BadInput(f"{shown!r} is not a single SQL expression: {hint}.")
    if trees[0].find(exp.Query, exp.Command, exp.DDL, exp.Window) is not None:
        raise BadInput(
            f"{shown!r} contains a query or a window: write an expression over columns, and joins under joins."
        )
    return trees[0]


def contains_aggregate(tree: Any) -> bool:
    """Return whether a tree contains an aggregate function."""
    return tree.find(exp.AggFunc, exp.AnonymousAggFunc) is not None
