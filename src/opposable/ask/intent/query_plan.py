"""The plan of a compiled query: its metric groups, group keys and row conditions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opposable.ask.intent.filter_sql import build_comparison, build_is_not_true
from opposable.ask.intent.intent import PERIOD_COLUMN, Comparison, Grain, IntentFilter, StructuredIntent
from opposable.ask.intent.period_sql import build_period_condition, build_period_label
from opposable.ask.intent.periods import Period
from opposable.ask.semantics.expressions import bind_expression, resolve_base_metrics
from opposable.ask.semantics.join_graph import build_join_query, find_reachable_tables
from opposable.ask.semantics.metric_fanout import bind_metric, find_metric_root
from opposable.ask.semantics.model import SemanticModel, Term
from opposable.domain.errors import BadInput
from opposable.sql.function_allowlist import Dialect

Condition = tuple[Any, tuple[str, ...], str]
"""A condition on rows: its sqlglot tree, the tables it needs, and the id it comes from."""


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A key that rows are grouped by, with the tables it needs."""

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

    def bind_term(self, term: Term) -> tuple[Any, tuple[str, ...]]:
        """Bind a dimension, filter or exclusion and return its tree and tables.

        Raises:
            BadInput: The expression is invalid or aggregates.
        """
        bound = bind_expression(term.expr, term.table, self.model, self.dialect)
        if bound.has_aggregate:
            raise BadInput(f"{term.id} aggregates: only metrics may.")
        return bound.tree, bound.tables

    def build_named_condition(self, ref: str, *, is_wanted: bool = True) -> Condition:
        """Build the condition of a filter, or of an exclusion, whose rows are left out."""
        term = self.model.filters.get(ref) or self.model.exclusions[ref]
        tree, tables = self.bind_term(term)
        is_true = is_wanted == (ref in self.model.filters)
        return tree if is_true else build_is_not_true(tree), tables, ref

    def build_row_conditions(self) -> list[Condition]:
        """Build the conditions that the intent puts on rows."""
        conditions: list[Condition] = []
        for row_filter in self.intent.filters:
            ref = row_filter.dimension
            if ref in self.model.filters:
                is_wanted = row_filter.value not in (False, 0, "false") and row_filter.operator != "!="
                conditions.append(self.build_named_condition(ref, is_wanted=is_wanted))
            elif ref in self.model.dimensions:
                tree, tables = self.bind_term(self.model.dimensions[ref])
                conditions.append((build_comparison(to_operand(tree), row_filter), tables, ref))
        return conditions + [self.build_named_condition(ref) for ref in self.intent.exclusions]


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """Metrics that are aggregated over the same rows.

    They share a root table, a date and default filters.
    """

    root_table: str
    time_expr: str
    default_filters: tuple[str, ...]
    metrics: tuple[str, ...]

    def build_keys(self, plan: QueryPlan, shift: Comparison | None = None) -> tuple[GroupKey, ...]:
        """Build the keys that the rows are grouped by.

        Args:
            plan: The plan that the group belongs to.
            shift: Labels each period as the one that is compared with it.
        """
        keys = [GroupKey(ref, *plan.bind_term(plan.model.dimensions[ref])) for ref in plan.intent.dimensions]
        if plan.grain is None:
            return tuple(keys)
        tree, tables = self.build_date_tree(plan)
        return (GroupKey(PERIOD_COLUMN, build_period_label(tree, plan.grain, plan.dialect, shift), tables), *keys)

    def build_date_tree(self, plan: QueryPlan) -> tuple[Any, tuple[str, ...]]:
        """Build the tree of the date of a row, and return it with its tables.

        Raises:
            BadInput: The semantic model gives the rows no date.
        """
        metric_names = ", ".join(self.metrics)
        if not self.time_expr:
            raise BadInput(f"the semantic model gives no time for {metric_names}")
        bound = bind_expression(self.time_expr, self.root_table, plan.model, plan.dialect)
        if find_reachable_tables(plan.model, self.root_table).explain_unreachable(bound.tables):
            raise BadInput(f"{metric_names} cannot be dated: {self.time_expr} is not reached from {self.root_table}")
        return bound.tree, bound.tables

    def build_select(self, plan: QueryPlan, period: Period | None) -> Any:
        """Build FROM, JOIN and WHERE of the rows in `period`.

        Raises:
            BadInput: A join that the intent needs would count rows twice.
        """
        reachable = find_reachable_tables(plan.model, self.root_table)
        conditions = [*_build_default_conditions(plan, self), *plan.build_row_conditions()]
        keys: list[Condition] = [(key.tree, key.tables, key.name) for key in self.build_keys(plan)]
        if period is not None and (period.start or period.end):
            tree, tables = self.build_date_tree(plan)
            conditions.insert(0, (build_period_condition(tree, period, plan.dialect), tables, "the period"))
        for _, tables, ref in [*keys, *conditions]:
            if reason := reachable.explain_unreachable(tables):
                raise BadInput(f"{', '.join(self.metrics)} cannot go with {ref}: {reason}")
        needed = [table for ref in self.metrics for table in _bind_metric(plan, ref)[1]]
        needed += [table for _, tables, _ in [*keys, *conditions] for table in tables]
        query = build_join_query(plan.model, reachable, needed)
        return query.where(*(tree for tree, _, _ in conditions)) if conditions else query

    def get_aggregate_builder(self, plan: QueryPlan) -> Callable[[str], Any]:
        """Return a function that builds the tree of a base metric from its id."""
        return lambda ref: _bind_metric(plan, ref)[0].copy()


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


def to_operand(tree: Any) -> Any:
    """Put a tree in parentheses unless it is a column, a literal or a function call."""
    from sqlglot import exp

    return tree if isinstance(tree, exp.Column | exp.Func | exp.Paren | exp.Literal) else exp.paren(tree)


def _bind_metric(plan: QueryPlan, ref: str) -> tuple[Any, tuple[str, ...]]:
    return bind_metric(plan.model.metrics[ref], plan.model, plan.dialect)


def _build_default_conditions(plan: QueryPlan, group: MetricGroup) -> list[Condition]:
    """Build the default filters of the metrics and of the model.

    Those of the model apply where the root table reaches them.
    """
    reachable = find_reachable_tables(plan.model, group.root_table)
    conditions = [_build_default_condition(plan, group.root_table, text) for text in group.default_filters]
    for text in plan.model.default_filters:
        condition = _build_default_condition(plan, group.root_table, text)
        if text not in group.default_filters and not reachable.explain_unreachable(condition[1]):
            conditions.append(condition)
    return conditions


def _build_default_condition(plan: QueryPlan, root_table: str, filter_text: str) -> Condition:
    """Build a default filter: an exclusion, a filter or an expression."""
    if filter_text in plan.model.exclusions or filter_text in plan.model.filters:
        return plan.build_named_condition(filter_text)
    bound = bind_expression(filter_text, root_table, plan.model, plan.dialect)
    return bound.tree, bound.tables, filter_text
