"""The SQL compiler of structured intents, which needs no model."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opposable.ask.intent import messages, periods
from opposable.ask.intent.intent import PERIOD_COLUMN, Comparison, StructuredIntent, TimeIntent, find_intent_problems
from opposable.ask.intent.query_plan import MetricGroup, QueryPlan, build_comparison, group_metrics, to_operand
from opposable.ask.semantics.expressions import BoundModel
from opposable.ask.semantics.join_graph import find_root_table
from opposable.ask.semantics.model import SemanticModel
from opposable.ask.sql_trees import build_alias, build_column, build_is_not_null, exp, fill_template
from opposable.domain.errors import BadInput
from opposable.domain.localized_text import LocalizedText
from opposable.sql.function_allowlist import Dialect

Window = tuple[str, periods.Period | None, Comparison | None]
"""A period that metrics are aggregated in: the suffix of its columns, the period, and its comparison."""


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """The SQL of an intent, its result columns and its assumptions.

    With a comparison each metric has three columns: `x`, `x_previous` and `x_growth`. A growth of 0.1 is 10 % more;
    it is NULL where there is no previous value.
    """

    sql: str
    columns: tuple[str, ...]
    assumptions: tuple[LocalizedText, ...] = ()


@dataclass(frozen=True, slots=True)
class UnsupportedIntent:
    """An intent that the compiler does not support, and the reason."""

    reason: str


def compile_intent(
    intent: StructuredIntent, model: SemanticModel, dialect: Dialect, today: datetime.date
) -> CompiledQuery | UnsupportedIntent:
    """Compile an intent to SQL.

    The query joins tables from many to one only, so that it counts no row twice. It aggregates the metrics of each
    table separately and merges the results. It applies default filters and exclusions to every metric they belong to.
    Relative times, such as "this year", count from `today`.
    """
    if problems := find_intent_problems(intent, model):
        return UnsupportedIntent(" ".join(problems))
    try:
        plan = _build_plan(intent, model, dialect, today)
        query = _apply_order(_build_query(plan), plan)
    except (ValueError, BadInput) as error:
        return UnsupportedIntent(str(error))
    keys = ", ".join([*([PERIOD_COLUMN] if plan.grain else []), *intent.dimensions])
    assumptions = [*plan.assumptions, *([messages.NULL_GROUPS.format(keys=keys)] if plan.selects_groups else [])]
    return CompiledQuery(query.sql(dialect=dialect), tuple(query.named_selects), tuple(assumptions))


def _build_plan(intent: StructuredIntent, model: SemanticModel, dialect: Dialect, today: datetime.date) -> QueryPlan:
    time = intent.time or TimeIntent()
    period, grain = periods.resolve_period(time, today), time.grain
    comparison = time.comparison if time.comparison != "ytd" else None
    assumptions: list[LocalizedText] = []
    if comparison is not None and not intent.metrics:
        raise ValueError("a comparison needs a metric")
    if comparison is not None and period is None and grain is None:
        period = periods.get_unit("year", today)
        assumptions.append(messages.DEFAULT_YEAR.format(year=today.year))
    if comparison is not None and grain is None and period is not None:
        step, granularity = periods.COMPARED_UNITS[comparison], periods.get_granularity(period)
        if step != "year" and granularity in ("year", "quarter") and granularity != step:
            grain = step
        elif period.start <= today < period.end:
            period = periods.Period(period.start, today)
            assumptions.append(messages.PARTIAL_PERIOD.format(today=today))
    if period and period.start > period.end:
        raise ValueError(f"the period ends ({period.end}) before it begins ({period.start})")
    previous_period = periods.get_previous_period(period or periods.Period(), comparison) if comparison else None
    return QueryPlan(intent, BoundModel(model, dialect), period, grain, previous_period, comparison, tuple(assumptions))


def _build_query(plan: QueryPlan) -> Any:
    if not plan.metrics:
        return _build_distinct_query(plan)
    groups = group_metrics(plan)
    if len(groups) > 1 or plan.previous_period is not None:
        return _build_merged_query(plan, groups)
    trees = _build_metric_trees(plan, lambda ref: plan.bind_metric(ref).tree.copy())
    query = groups[0].build_select(plan, plan.period, {metric: trees[metric] for metric in plan.intent.metrics})
    return query.having(*(build_comparison(trees[bound.dimension], bound) for bound in plan.metric_filters))


def _build_merged_query(plan: QueryPlan, groups: list[MetricGroup]) -> Any:
    """Build a query that merges the rows of several groups and periods."""
    windows: list[Window] = [("", plan.period, None)]
    windows += [("_previous", plan.previous_period, plan.comparison)] if plan.previous_period else []
    slots = [(metric, suffix) for group in groups for metric in group.metrics for suffix, _, _ in windows]
    selects = [_build_window_select(plan, group, window, slots) for group in groups for window in windows]
    keys = [build_column(key.name) for key in groups[0].build_keys(plan)]
    merged_query = exp.select(*keys).from_(exp.union(*selects, distinct=False).subquery("parts")).group_by(*keys)
    names = [f"{metric}{suffix}" for metric, suffix in slots]
    merged_query = merged_query.select(*(build_alias(exp.Max(this=build_column(name)), name) for name in names))
    return _build_outer_query(plan, merged_query, keys)


def _build_outer_query(plan: QueryPlan, merged_query: Any, keys: list[Any]) -> Any:
    """Build the SELECT that computes derived metrics and growth from the merged rows."""
    trees = _build_metric_trees(plan, build_column)
    previous = _build_metric_trees(plan, lambda ref: build_column(f"{ref}_previous"))
    columns: dict[str, Any] = {key.name: key for key in keys}
    for metric in plan.intent.metrics:
        columns[metric] = trees[metric]
        if plan.previous_period is not None:
            columns[f"{metric}_previous"] = previous[metric]
            columns[f"{metric}_growth"] = _build_growth(trees[metric], previous[metric])
    query = exp.select(*(build_alias(tree, name) for name, tree in columns.items()))
    query = query.from_(merged_query.subquery("merged"))
    query = query.where(*(build_comparison(trees[bound.dimension], bound) for bound in plan.metric_filters))
    if plan.previous_period is not None and plan.period is None:
        query = query.where(build_is_not_null(to_operand(trees[plan.intent.metrics[0]])))
    return query


def _build_metric_trees(plan: QueryPlan, get_base_tree: Callable[[str], Any]) -> dict[str, Any]:
    """Build the trees of all metrics of a plan from those of the base metrics."""
    return {ref: plan.semantics.build_metric_tree(ref, get_base_tree) for ref in plan.metrics}


def _build_growth(current: Any, previous: Any) -> Any:
    current, previous = to_operand(current), to_operand(previous)
    growth = fill_template("CAST((a - b) AS DOUBLE) / NULLIF(b, 0)", "duckdb", a=current, b=previous)
    growth.set("typed", False)
    growth.set("safe", False)
    return growth


def _build_window_select(plan: QueryPlan, group: MetricGroup, window: Window, slots: list[tuple[str, str]]) -> Any:
    """Build the SELECT of one group in one window. The columns of other groups and windows are NULL."""
    suffix, period, shift = window
    columns: dict[str, Any] = {}
    for metric, slot_suffix in slots:
        is_own = slot_suffix == suffix and metric in group.metrics
        tree = plan.bind_metric(metric).tree if is_own else _build_typed_null(plan, metric)
        columns[f"{metric}{slot_suffix}"] = tree
    return group.build_select(plan, period, columns, shift)


def _build_typed_null(plan: QueryPlan, metric: str) -> Any:
    """Build a NULL of the metric's type, which PostgreSQL needs in a UNION."""
    tree = plan.bind_metric(metric).tree
    if plan.semantics.dialect != "postgres" or tree.find(exp.Max, exp.Min):
        return exp.null()
    return exp.cast(exp.null(), "bigint" if isinstance(tree, exp.Count) else "decimal")


def _build_distinct_query(plan: QueryPlan) -> Any:
    """Build a query of the distinct values of the dimensions."""
    keys, conditions = plan.bind_dimensions(), plan.build_row_conditions()
    tables = list(dict.fromkeys(table for needed in (*keys, *conditions) for table in needed.tables))
    root = find_root_table(plan.model, tables, plan.model.tables)
    if root is None:
        raise ValueError(f"no table joins {', '.join(tables)} without multiplying rows")
    if plan.period or plan.grain or plan.model.default_filters:
        raise ValueError("only metrics have a period and default filters: a list has neither")
    query = plan.build_rows(root, tables, conditions).distinct()
    return query.select(*(build_alias(key.tree, key.name) for key in keys))


def _apply_order(query: Any, plan: QueryPlan) -> Any:
    """Add ORDER BY and LIMIT. The keys break ties, so that a limit always selects the same rows."""
    order_by, limit, columns = plan.intent.order_by, plan.intent.limit, query.named_selects
    if order_by is not None and order_by.column not in columns:
        raise ValueError(f"the order's column {order_by.column} is not in the result")
    descending = {order_by.column: order_by.direction == "DESC"} if order_by else {}
    if descending or limit or plan.grain:
        keys = [name for name in columns if name in (PERIOD_COLUMN, *plan.intent.dimensions)]
        descending = dict.fromkeys([*descending, *keys], False) | descending
    for name, is_descending in descending.items():
        query = query.order_by(exp.Ordered(this=build_column(name), desc=is_descending, nulls_first=False))
    return query.limit(limit) if limit else query
