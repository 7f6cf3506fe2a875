"""The plan of a compiled query: its metric groups, group keys and row conditions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from opposable.ask.intent.intent import PERIOD_COLUMN, Comparison, Grain, IntentFilter, StructuredIntent
from opposable.ask.intent.period_sql import build_period_condition, build_period_label
from opposable.ask.intent.periods import Period
from opposable.ask.semantics.expressions import BoundExpression, BoundModel
from opposable.ask.semantics.join_graph import ReachableTables, build_join_query, find_metric_tables
from opposable.ask.semantics.model import SemanticModel
from opposable.ask.sql_trees import build_alias, build_is_not_null, exp
from opposable.domain.errors import BadInput
from opposable.domain.localized_text import LocalizedText


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """An intent, its semantic model, and its time as days; `previous_period` is what `period` is compared with."""

    intent: StructuredIntent
    semantics: BoundModel
    period: Period | None
    grain: Grain | None
    previous_period: Period | None
    comparison: Comparison | None
    assumptions: tuple[LocalizedText, ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        """The ids of the metrics of the result and of the filters."""
        filtered = (condition.dimension for condition in self.metric_filters)
        return tuple(dict.fromkeys([*self.intent.metrics, *filtered]))

    @property
    def metric_filters(self) -> tuple[IntentFilter, ...]:
        """The filters on metrics, which apply after aggregation."""
        return tuple(f for f in self.intent.filters if f.dimension in self.model.metrics)

    @property
    def selects_groups(self) -> bool:
        """Whether a limit or a filter on a metric selects groups: rows without a key are none of them."""
        keys, selections = self.intent.dimensions or self.grain, self.intent.limit or self.metric_filters
        return bool(self.metrics and keys and selections)

    @property
    def model(self) -> SemanticModel:
        """The semantic model."""
        return self.semantics.model

    def bind_metric(self, ref: str) -> BoundExpression:
        """Bind the expression of a base metric."""
        return self.semantics.bind_term(self.model.metrics[ref])

    def bind_dimensions(self) -> list[BoundExpression]:
        """Bind the dimensions that the rows are grouped by."""
        return [self.semantics.bind_term(self.model.dimensions[ref]) for ref in self.intent.dimensions]

    def build_row_conditions(self) -> list[BoundExpression]:
        """Build the conditions that the intent puts on rows."""
        conditions: list[BoundExpression] = []
        for row_filter in self.intent.filters:
            ref = row_filter.dimension
            if ref in self.model.filters:
                is_wanted = row_filter.value not in (False, 0, "false") and row_filter.operator != "!="
                conditions.append(self.semantics.bind_condition(ref, is_wanted=is_wanted))
            elif ref in self.model.dimensions:
                dimension = self.semantics.bind_term(self.model.dimensions[ref])
                conditions.append(replace(dimension, tree=build_comparison(dimension.tree, row_filter)))
        return conditions + [self.semantics.bind_condition(ref) for ref in self.intent.exclusions]

    def build_rows(self, root: str, tables: Iterable[str], conditions: list[BoundExpression]) -> Any:
        """Build FROM, JOIN and WHERE of the rows of a table that fulfil conditions."""
        needed = [*tables, *(table for condition in conditions for table in condition.tables)]
        query = build_join_query(self.model, root, needed)
        return query.where(*(condition.tree for condition in conditions)) if conditions else query


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """Metrics over the same rows: those of a root table and what it reaches, with a date and default filters."""

    reachable: ReachableTables
    time_expr: str
    default_filters: tuple[str, ...]
    metrics: list[str]

    def build_keys(self, plan: QueryPlan, shift: Comparison | None = None) -> list[BoundExpression]:
        """Build the keys that the rows are grouped by; `shift` labels each period as the one compared with it."""
        if plan.grain is None:
            return plan.bind_dimensions()
        date = self._bind_date(plan)
        label = build_period_label(date.tree, plan.grain, plan.semantics.dialect, shift)
        return [BoundExpression(PERIOD_COLUMN, label, date.tables), *plan.bind_dimensions()]

    def build_select(
        self, plan: QueryPlan, period: Period | None, columns: Mapping[str, Any], shift: Comparison | None = None
    ) -> Any:
        """Build the SELECT of the keys and other columns of the rows in `period`, grouped by the keys.

        Raises:
            BadInput: A join that the intent needs would count rows twice, or a filter may contradict a default filter.
        """
        defaults, conditions = self._build_default_conditions(plan), plan.build_row_conditions()
        restricted = {column for default in defaults for column in default.tree.find_all(exp.Column)}
        for condition in conditions:
            if condition not in defaults and not restricted.isdisjoint(condition.tree.find_all(exp.Column)):
                raise BadInput(f"a default filter of {', '.join(self.metrics)} restricts {condition.name} too")
        conditions = [*defaults, *conditions]
        if period not in (None, Period()):
            date = self._bind_date(plan)
            condition = build_period_condition(date.tree, period, plan.semantics.dialect)
            conditions.insert(0, BoundExpression("the period", condition, date.tables))
        keys = self.build_keys(plan)
        if plan.selects_groups:
            conditions += [replace(key, tree=build_is_not_null(to_operand(key.tree))) for key in keys]
        for needed in [*keys, *conditions]:
            if reason := self.reachable.explain_unreachable(needed.tables):
                raise BadInput(f"{', '.join(self.metrics)} cannot go with {needed.name}: {reason}")
        tables = [table for ref in self.metrics for table in plan.bind_metric(ref).tables]
        tables += [table for key in keys for table in key.tables]
        query = plan.build_rows(self.reachable.root_table, tables, conditions)
        selected = [*((key.name, key.tree) for key in self.build_keys(plan, shift)), *columns.items()]
        query = query.select(*(build_alias(tree, name) for name, tree in selected))
        return query.group_by(*(tree.copy() for _, tree in selected[: len(keys)]))

    def _bind_date(self, plan: QueryPlan) -> BoundExpression:
        """Bind the date of a row.

        Raises:
            BadInput: The semantic model gives the rows no date.
        """
        metric_names = ", ".join(self.metrics)
        if not self.time_expr:
            raise BadInput(f"the semantic model gives no time for {metric_names}")
        root = self.reachable.root_table
        bound = plan.semantics.bind_expression(self.time_expr, root)
        if self.reachable.explain_unreachable(bound.tables):
            raise BadInput(f"{metric_names} cannot be dated: {self.time_expr} is not reached from {root}")
        return bound

    def _build_default_conditions(self, plan: QueryPlan) -> list[BoundExpression]:
        """Build the default filters of the metrics, and those of the model that the root table reaches."""
        texts = dict.fromkeys([*self.default_filters, *plan.model.default_filters])
        bound = [plan.semantics.bind_condition(text, self.reachable.root_table) for text in texts]
        own, explain_unreachable = self.default_filters, self.reachable.explain_unreachable
        return [condition for condition in bound if condition.name in own or not explain_unreachable(condition.tables)]


def group_metrics(plan: QueryPlan) -> list[MetricGroup]:
    """Group the base metrics of a plan by the rows they aggregate."""
    groups: dict[tuple[str, str, tuple[str, ...]], MetricGroup] = {}
    base_metrics = [base for ref in plan.metrics for base in plan.semantics.resolve_base_metrics(ref)]
    for ref in dict.fromkeys(base_metrics):
        metric = plan.model.metrics[ref]
        reachable = find_metric_tables(metric, plan.semantics)
        time_expr = metric.time or plan.model.tables[reachable.root_table].time or plan.model.time
        group = MetricGroup(reachable, time_expr, metric.default_filters, [])
        groups.setdefault((reachable.root_table, time_expr, metric.default_filters), group).metrics.append(ref)
    return list(groups.values())


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
        is_null = tree.is_(exp.null())
        equal = tree.isin(*value) if isinstance(value, tuple) else is_null if value is None else tree.eq(value)
        if operator in ("=", "in"):
            return equal
        return exp.not_(equal) if value is None else exp.paren(exp.or_(exp.not_(equal), is_null))
    if value is None or isinstance(value, tuple):
        raise ValueError("this comparison takes one value")
    comparison = {">": exp.GT, ">=": exp.GTE, "<": exp.LT, "<=": exp.LTE}[operator]
    return comparison(this=tree, expression=exp.convert(value))


def to_operand(tree: Any) -> Any:
    """Put a tree in parentheses unless it is a column, a literal or a function call."""
    return tree if isinstance(tree, exp.Column | exp.Func | exp.Paren | exp.Literal) else exp.paren(tree)
