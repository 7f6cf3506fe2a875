"""What a compiled query is put together from: metrics that share rows, the keys of their groups, their conditions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opposable.ask.intent.filter_sql import build_comparison, build_is_not_true, build_is_true
from opposable.ask.intent.intent import PERIOD_COLUMN, Comparison, Grain, IntentFilter, StructuredIntent
from opposable.ask.intent.period_sql import SqlDialect, build_period_condition, build_period_label
from opposable.ask.intent.periods import Period
from opposable.ask.semantics.expressions import bind_expression, resolve_base_metrics
from opposable.ask.semantics.join_graph import build_join_query, find_reachable_tables
from opposable.ask.semantics.metric_fanout import bind_metric, find_metric_root
from opposable.ask.semantics.model import SemanticModel, Term
from opposable.domain.errors import BadInput


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What rows are grouped by: the column's name in the result, its tree, the tables it needs."""

    name: str
    tree: Any
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """An intent with its model, and its time as days; `previous` is the period it is compared with."""

    intent: StructuredIntent
    model: SemanticModel
    dialect: SqlDialect
    period: Period | None
    grain: Grain | None
    previous_period: Period | None
    comparison: Comparison | None

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that are shown, and those that filters speak of."""
        filtered = (condition.dimension for condition in self.metric_filters)
        return tuple(dict.fromkeys([*self.intent.metrics, *filtered]))

    @property
    def metric_filters(self) -> tuple[IntentFilter, ...]:
        """The conditions on metrics, which hold after aggregating."""
        return tuple(f for f in self.intent.filters if f.dimension in self.model.metrics)

    def bind_term(self, term: Term) -> tuple[Any, tuple[str, ...]]:
        """A dimension's, filter's or exclusion's tree and tables.

        Raises:
            BadInput: its expression is wrong, or aggregates.
        """
        found = bind_expression(term.expr, term.table, self.model, self.dialect)
        if found.has_aggregate:
            raise BadInput(f"{term.id} aggregates: only metrics may.")
        return found.tree, found.tables

    def build_row_conditions(self) -> list[tuple[Any, tuple[str, ...], str]]:
        """The intent's conditions on rows: tree, tables, and the id they come from."""
        found: list[tuple[Any, tuple[str, ...], str]] = []
        for condition in self.intent.filters:
            if condition.dimension in self.model.metrics:
                continue
            if condition.dimension in self.model.filters:
                tree, tables = self.bind_term(self.model.filters[condition.dimension])
                wanted = condition.value not in (False, 0, "false") and condition.operator != "!="
                found.append((build_is_true(tree) if wanted else build_is_not_true(tree), tables, condition.dimension))
                continue
            tree, tables = self.bind_term(self.model.dimensions[condition.dimension])
            found.append((build_comparison(to_operand(tree), condition), tables, condition.dimension))
        for ref in self.intent.exclusions:
            tree, tables = self.bind_term(self.model.exclusions[ref])
            found.append((build_is_not_true(tree), tables, ref))
        return found


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """Metrics that are aggregated over the same rows: one root table, one date, the same default filters."""

    root_table: str
    time_expr: str
    default_filters: tuple[str, ...]
    metrics: tuple[str, ...]

    def build_keys(self, plan: QueryPlan, shift: Comparison | None = None) -> tuple[GroupKey, ...]:
        """What its rows are grouped by; `later` labels a period as the one it is compared with."""
        found = [GroupKey(ref, *plan.bind_term(plan.model.dimensions[ref])) for ref in plan.intent.dimensions]
        if plan.grain is None:
            return tuple(found)
        tree, tables = self.build_date_tree(plan)
        return (GroupKey(PERIOD_COLUMN, build_period_label(tree, plan.grain, plan.dialect, shift), tables), *found)

    def build_date_tree(self, plan: QueryPlan) -> tuple[Any, tuple[str, ...]]:
        """The tree that dates its rows.

        Raises:
            BadInput: nothing does.
        """
        named = ", ".join(self.metrics)
        if not self.time_expr:
            raise BadInput(f"the semantic model gives no time for {named}")
        bound = bind_expression(self.time_expr, self.root_table, plan.model, plan.dialect)
        if find_reachable_tables(plan.model, self.root_table).explain_unreachable(bound.tables):
            raise BadInput(f"{named} cannot be dated: {self.time_expr} is not reached from {self.root_table}")
        return bound.tree, bound.tables

    def build_select(self, plan: QueryPlan, period: Period | None) -> Any:
        """FROM, JOIN and WHERE of its rows in `period`.

        Raises:
            BadInput: something the intent names cannot be joined without counting rows twice.
        """
        way = find_reachable_tables(plan.model, self.root_table)
        conditions = [*_build_default_conditions(plan, self), *plan.build_row_conditions()]
        keys = [(key.tree, key.tables, key.name) for key in self.build_keys(plan)]
        if period is not None and (period.start or period.end):
            tree, tables = self.build_date_tree(plan)
            conditions.insert(0, (build_period_condition(tree, period, plan.dialect), tables, "the period"))
        for _, tables, ref in [*keys, *conditions]:
            if reason := way.explain_unreachable(tables):
                raise BadInput(f"{', '.join(self.metrics)} cannot go with {ref}: {reason}")
        own = [t for ref in self.metrics for t in bind_metric(plan.model.metrics[ref], plan.model, plan.dialect)[1]]
        needed = [*own, *(table for _, tables, _ in [*keys, *conditions] for table in tables)]
        query = build_join_query(plan.model, way, needed)
        return query.where(*(tree for tree, _, _ in conditions)) if conditions else query

    def get_aggregate_builder(self, plan: QueryPlan) -> Callable[[str], Any]:
        """A function from the id of a base metric to its tree."""
        return lambda ref: bind_metric(plan.model.metrics[ref], plan.model, plan.dialect)[0].copy()


def group_metrics(plan: QueryPlan) -> list[MetricGroup]:
    """The plan's base metrics, those over the same rows together."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    found = [base for ref in plan.metrics for base in resolve_base_metrics(ref, plan.model, plan.dialect)]
    for ref in dict.fromkeys(found):
        metric = plan.model.metrics[ref]
        root = find_metric_root(metric, plan.model, plan.dialect)
        time = metric.time or plan.model.tables[root].time or plan.model.time
        groups.setdefault((root, time, metric.default_filters), []).append(ref)
    return [MetricGroup(root, time, defaults, tuple(ids)) for (root, time, defaults), ids in groups.items()]


def to_operand(tree: Any) -> Any:
    """`tree`, in parentheses unless it is one word or a call, to stand beside an operator."""
    from sqlglot import exp

    return tree if isinstance(tree, exp.Column | exp.Func | exp.Paren | exp.Literal) else exp.paren(tree)


def _build_default_conditions(plan: QueryPlan, group: MetricGroup) -> list[tuple[Any, tuple[str, ...], str]]:
    """The metrics' own default filters, and those of the model that its rows can be asked about."""
    way = find_reachable_tables(plan.model, group.root_table)
    found = [_build_default_condition(plan, group.root_table, text) for text in group.default_filters]
    for text in plan.model.default_filters:
        tree, tables, ref = _build_default_condition(plan, group.root_table, text)
        if text not in group.default_filters and not way.explain_unreachable(tables):
            found.append((tree, tables, ref))
    return found


def _build_default_condition(plan: QueryPlan, root: str, filter_text: str) -> tuple[Any, tuple[str, ...], str]:
    if filter_text in plan.model.exclusions:
        tree, tables = plan.bind_term(plan.model.exclusions[filter_text])
        return build_is_not_true(tree), tables, filter_text
    if filter_text in plan.model.filters:
        tree, tables = plan.bind_term(plan.model.filters[filter_text])
        return build_is_true(tree), tables, filter_text
    bound = bind_expression(filter_text, root, plan.model, plan.dialect)
    return build_is_true(bound.tree), bound.tables, filter_text
