"""The plan of a compiled query: its metric groups, group keys and row conditions."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from opposable.ask.intent.intent import PERIOD_COLUMN, Comparison, Grain, IntentFilter, StructuredIntent
from opposable.ask.intent.period_sql import build_period_condition, build_period_label
from opposable.ask.intent.periods import Period
from opposable.ask.semantics.expressions import BoundExpression, bind_expression, bind_term, resolve_base_metrics
from opposable.ask.semantics.join_graph import build_join_query, find_metric_root, find_reachable_tables
from opposable.ask.semantics.model import SemanticModel
from opposable.ask.sql_trees import build_is_null, exp, fill_template
from opposable.domain.errors import BadInput
from opposable.sql.function_allowlist import Dialect


@dataclass(frozen=True, slots=True)
class RowExpression:
    """A key that rows are grouped by, or a condition on rows, with the id it comes from and the tables it needs."""

    name: str
    tree: Any
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """An intent with its semantic model and its time as days.

    `previous_period` is the period that `period` is compared with.
    """

    intent: StructuredIntent
    model: SemanticModel
    dialect: Dialect
    period: Period | None
    grain: Grain | None
    previous_period: Period | None
    comparison: Comparison | None

    @property
    def metrics(self) -> tuple[str, ...]:
        """The ids of the metrics of the result and of the filters."""
        filtered = (condition.dimension for condition in self.metric_filters)
        return tuple(dict.fromkeys([*self.intent.metrics, *filtered]))

    @property
    def metric_filters(self) -> tuple[IntentFilter, ...]:
        """The filters on metrics, which apply after aggregation."""
        return tuple(f for f in self.intent.filters if f.dimension in self.model.metrics)

    def bind_metric(self, ref: str) -> BoundExpression:
        """Bind the expression of a base metric."""
        return bind_term(self.model.metrics[ref], self.model, self.dialect)

    def build_dimensions(self) -> list[RowExpression]:
        """Build the dimensions that the rows are grouped by."""
        return [self._build_dimension(ref) for ref in self.intent.dimensions]

    def build_named_condition(self, ref: str, *, is_wanted: bool = True) -> RowExpression:
        """Build the condition of a filter, or of an exclusion, whose rows are left out."""
        bound = bind_term(self.model.filters.get(ref) or self.model.exclusions[ref], self.model, self.dialect)
        is_true = is_wanted == (ref in self.model.filters)
        return RowExpression(
            ref,
            bound.tree
            if is_true
            else fill_template("NOT COALESCE((condition), FALSE)", "duckdb", condition=bound.tree),
            bound.tables,
        )

    def build_row_conditions(self) -> list[RowExpression]:
        """Build the conditions that the intent puts on rows."""
        conditions: list[RowExpression] = []
        for row_filter in self.intent.filters:
            ref = row_filter.dimension
            if ref in self.model.filters:
                is_wanted = row_filter.value not in (False, 0, "false") and row_filter.operator != "!="
                conditions.append(self.build_named_condition(ref, is_wanted=is_wanted))
            elif ref in self.model.dimensions:
                dimension = self._build_dimension(ref)
                conditions.append(RowExpression(ref, build_comparison(dimension.tree, row_filter), dimension.tables))
        return conditions + [self.build_named_condition(ref) for ref in self.intent.exclusions]

    def build_rows(self, root: str, tables: Iterable[str], conditions: list[RowExpression]) -> Any:
        """Build FROM, JOIN and WHERE of the rows of a table that fulfil conditions."""
        needed = [*tables, *(table for condition in conditions for table in condition.tables)]
        query = build_join_query(self.model, root, needed)
        return query.where(*(condition.tree for condition in conditions)) if conditions else query

    def _build_dimension(self, ref: str) -> RowExpression:
        bound = bind_term(self.model.dimensions[ref], self.model, self.dialect)
        return RowExpression(ref, bound.tree, bound.tables)


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """Metrics that are aggregated over the same rows.

    They share a root table, a date and default filters.
    """

    root_table: str
    time_expr: str
    default_filters: tuple[str, ...]
    metrics: tuple[str, ...]

    def build_keys(self, plan: QueryPlan, shift: Comparison | None = None) -> list[RowExpression]:
        """Build the keys that the rows are grouped by.

        Args:
            plan: The plan that the group belongs to.
            shift: Labels each period as the one that is compared with it.
        """
        if plan.grain is None:
            return plan.build_dimensions()
        date = self._bind_date(plan)
        label = build_period_label(date.tree, plan.grain, plan.dialect, shift)
        return [RowExpression(PERIOD_COLUMN, label, date.tables), *plan.build_dimensions()]

    def build_select(self, plan: QueryPlan, period: Period | None) -> Any:
        """Build FROM, JOIN and WHERE of the rows in `period`.

        Raises:
            BadInput: A join that the intent needs would count rows twice.
        """
        conditions = [*self._build_default_conditions(plan), *plan.build_row_conditions()]
        if period is not None and (period.start or period.end):
            date = self._bind_date(plan)
            condition = build_period_condition(date.tree, period, plan.dialect)
            conditions.insert(0, RowExpression("the period", condition, date.tables))
        keys = self.build_keys(plan)
        reachable = find_reachable_tables(plan.model, self.root_table)
        for needed in [*keys, *conditions]:
            if reason := reachable.explain_unreachable(needed.tables):
                raise BadInput(f"{', '.join(self.metrics)} cannot go with {needed.name}: {reason}")
        tables = [table for ref in self.metrics for table in plan.bind_metric(ref).tables]
        tables += [table for key in keys for table in key.tables]
        return plan.build_rows(self.root_table, tables, conditions)

    def _bind_date(self, plan: QueryPlan) -> BoundExpression:
        """Bind the date of a row.

        Raises:
            BadInput: The semantic model gives the rows no date.
        """
        metric_names = ", ".join(self.metrics)
        if not self.time_expr:
            raise BadInput(f"the semantic model gives no time for {metric_names}")
        bound = bind_expression(self.time_expr, self.root_table, plan.model, plan.dialect)
        if find_reachable_tables(plan.model, self.root_table).explain_unreachable(bound.tables):
            raise BadInput(f"{metric_names} cannot be dated: {self.time_expr} is not reached from {self.root_table}")
        return bound

    def _build_default_conditions(self, plan: QueryPlan) -> list[RowExpression]:
        """Build the default filters of the metrics, and those of the model that the root table reaches."""
        reachable = find_reachable_tables(plan.model, self.root_table)
        conditions: list[RowExpression] = []
        for text in dict.fromkeys([*self.default_filters, *plan.model.default_filters]):
            if text in plan.model.exclusions or text in plan.model.filters:
                condition = plan.build_named_condition(text)
            else:
                bound = bind_expression(text, self.root_table, plan.model, plan.dialect)
                condition = RowExpression(text, bound.tree, bound.tables)
            if text in self.default_filters or not reachable.explain_unreachable(condition.tables):
                conditions.append(condition)
        return conditions


def group_metrics(plan: QueryPlan) -> list[MetricGroup]:
    """Group the base metrics of a plan by the rows they aggregate."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    base_metrics = [base for ref in plan.metrics for base in resolve_base_metrics(ref, plan.model, plan.dialect)]
    for ref in dict.fromkeys(base_metrics):
        metric = plan.model.metrics[ref]
        root = find_metric_root(metric, plan.model, plan.dialect)
        time_expr = metric.time or plan.model.tables[root].time or plan.model.time
        groups.setdefault((root, time_expr, metric.default_filters), []).append(ref)
    return [MetricGroup(root, time_expr, filters, tuple(ids)) for (root, time_expr, filters), ids in groups.items()]


def build_comparison(tree: Any, condition: IntentFilter) -> Any:
    """Build the comparison of a copy of `tree` with the value of a filter.

    "!=" and "not in" also match NULL.

    Raises:
        ValueError: The value does not fit the operator.
    """
    value, operator = condition.value, condition.operator
    tree = to_operand(tree.copy())
    if value == ():
        raise ValueError("a list of values is empty")
    if operator in ("=", "in", "!=", "not in"):
        is_null = build_is_null(tree)
        equal = tree.isin(*value) if isinstance(value, tuple) else is_null if value is None else tree.eq(value)
        if operator in ("=", "in"):
            return equal
        return exp.not_(equal) if value is None else exp.paren(exp.or_(exp.not_(equal), is_null))
    if value is None or isinstance(value, tuple):
        raise ValueError("this comparison takes one value")
    if operator == "contains":
        escaped = re.sub(r"([!%_])", r"!\1", str(value).lower())
        return exp.Escape(this=exp.Lower(this=tree).like(f"%{escaped}%"), expression=exp.Literal.string("!"))
    comparison = {">": exp.GT, ">=": exp.GTE, "<": exp.LT, "<=": exp.LTE}[operator]
    return comparison(this=tree, expression=exp.convert(value))


def to_operand(tree: Any) -> Any:
    """Put a tree in parentheses unless it is a column, a literal or a function call."""
    return tree if isinstance(tree, exp.Column | exp.Func | exp.Paren | exp.Literal) else exp.paren(tree)
