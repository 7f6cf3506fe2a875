"""The SQL compiler of structured intents, which needs no model."""

import datetime
from dataclasses import dataclass
from typing import Any

from opposable.ask.intent.filter_sql import build_comparison
from opposable.ask.intent.intent import (
    PERIOD_COLUMN,
    Comparison,
    Grain,
    StructuredIntent,
    find_intent_problems,
    resolve_ids,
)
from opposable.ask.intent.messages import describe_default_year, describe_partial_period
from opposable.ask.intent.periods import (
    Period,
    get_granularity,
    get_previous_period,
    get_year_period,
    resolve_period,
)
from opposable.ask.intent.query_plan import GroupKey, MetricGroup, QueryPlan, group_metrics, to_operand
from opposable.ask.semantics.expressions import build_metric_tree
from opposable.ask.semantics.join_graph import (
    build_identifier,
    build_join_query,
    find_nearest_root,
    find_reachable_tables,
)
from opposable.ask.semantics.metric_fanout import bind_metric
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.errors import BadInput
from opposable.domain.localized_text import LocalizedText
from opposable.sql.function_allowlist import Dialect

Window = tuple[str, Period | None, Comparison | None]
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

    Args:
        intent: What the question asks for.
        model: The semantic model that defines the ids of the intent.
        dialect: The SQL dialect of the database.
        today: The day that relative times, such as "this year", count from.
    """
    resolved_intent = resolve_ids(intent, model)
    if problems := find_intent_problems(resolved_intent, model):
        return UnsupportedIntent(" ".join(problems))
    try:
        return _compile(resolved_intent, model, dialect, today)
    except (ValueError, BadInput) as error:
        return UnsupportedIntent(str(error))


def _compile(intent: StructuredIntent, model: SemanticModel, dialect: Dialect, today: datetime.date) -> CompiledQuery:
    plan, assumptions = _build_plan(intent, model, dialect, today)
    if not intent.metrics:
        query, columns = _build_distinct_query(plan), intent.dimensions
    elif plan.previous_period is None and len(groups := group_metrics(plan)) == 1:
        query, columns = _build_single_group_query(plan, groups[0])
    else:
        query, columns = _build_merged_query(plan)
    query = _apply_order(query, plan, columns)
    return CompiledQuery(query.sql(dialect=dialect), tuple(columns), assumptions)


def _build_plan(
    intent: StructuredIntent, model: SemanticModel, dialect: Dialect, today: datetime.date
) -> tuple[QueryPlan, tuple[LocalizedText, ...]]:
    time = intent.time
    period = resolve_period(time, today) if time else None
    grain = time.grain if time else None
    comparison = time.comparison if time and time.comparison != "ytd" else None
    if comparison is None:
        _check_period(period)
        return QueryPlan(intent, model, dialect, period, grain, None, None), ()
    if not intent.metrics:
        raise ValueError("a comparison needs a metric")
    assumptions: list[LocalizedText] = []
    if period is None and grain is None:
        period = get_year_period(today.year)
        assumptions.append(describe_default_year(today.year))
    if grain is None and period is not None:
        grain = _choose_comparison_grain(comparison, period)
    if grain is None and period and period.start and period.end and period.start <= today < period.end:
        period = Period(period.start, today)
        assumptions.append(describe_partial_period(today))
    _check_period(period)
    previous_period = get_previous_period(period or Period(None, None), comparison)
    return QueryPlan(intent, model, dialect, period, grain, previous_period, comparison), tuple(assumptions)


def _choose_comparison_grain(comparison: Comparison, period: Period) -> Grain | None:
    """Return the grain of a comparison within a longer period, else None."""
    steps: dict[Comparison, Grain] = {"qoq": "quarter", "mom": "month"}
    step = steps.get(comparison)
    granularity = get_granularity(period)
    return step if granularity in ("year", "quarter") and granularity != step else None


def _check_period(period: Period | None) -> None:
    if period and period.start and period.end and period.start > period.end:
        raise ValueError(f"the period ends ({period.end}) before it begins ({period.start})")


def _build_single_group_query(plan: QueryPlan, group: MetricGroup) -> tuple[Any, tuple[str, ...]]:
    """Build one SELECT that aggregates the metrics over one root table."""
    query = group.build_select(plan, plan.period)
    for key in group.build_keys(plan):
        query = query.select(_build_alias(key.tree, key.name)).group_by(key.tree.copy())
    build_aggregate = group.get_aggregate_builder(plan)
    trees = {metric: build_metric_tree(metric, plan.model, plan.dialect, build_aggregate) for metric in plan.metrics}
    for metric in plan.intent.metrics:
        query = query.select(_build_alias(trees[metric], metric))
    for condition in plan.metric_filters:
        query = query.having(build_comparison(to_operand(trees[condition.dimension].copy()), condition))
    return query, (*(key.name for key in group.build_keys(plan)), *plan.intent.metrics)


def _build_merged_query(plan: QueryPlan) -> tuple[Any, tuple[str, ...]]:
    """Build a query that merges the rows of several groups and periods."""
    from sqlglot import exp

    groups = group_metrics(plan)
    windows: list[Window] = [("", plan.period, None)]
    windows += [("_previous", plan.previous_period, plan.comparison)] if plan.previous_period else []
    slots = [(metric, suffix) for group in groups for metric in group.metrics for suffix, _, _ in windows]
    selects = [_build_window_select(plan, group, window, slots) for group in groups for window in windows]
    union = selects[0]
    for select in selects[1:]:
        union = exp.union(union, select, distinct=False)
    key_names = [key.name for key in groups[0].build_keys(plan)]
    slot_names = [f"{metric}{suffix}" for metric, suffix in slots]
    merged_query = exp.select(*(_build_column(name) for name in key_names)).from_(union.subquery("parts"))
    for name in slot_names:
        merged_query = merged_query.select(_build_alias(exp.Max(this=_build_column(name)), name))
    if key_names:
        merged_query = merged_query.group_by(*(_build_column(name) for name in key_names))
    return _build_outer_query(plan, merged_query, key_names)


def _build_outer_query(plan: QueryPlan, merged_query: Any, key_names: list[str]) -> tuple[Any, tuple[str, ...]]:
    """Build the SELECT that computes derived metrics and growth from the merged rows."""
    from sqlglot import exp

    query = exp.select(*(_build_column(name) for name in key_names)).from_(merged_query.subquery("merged"))
    trees = {metric: _build_merged_metric(plan, metric, "") for metric in plan.metrics}
    columns = list(key_names)
    for metric in plan.intent.metrics:
        query = query.select(_build_alias(trees[metric], metric))
        columns.append(metric)
        if plan.previous_period is None:
            continue
        previous = _build_merged_metric(plan, metric, "_previous")
        growth = _build_growth(trees[metric], previous)
        query = query.select(_build_alias(previous, f"{metric}_previous"), _build_alias(growth, f"{metric}_growth"))
        columns += [f"{metric}_previous", f"{metric}_growth"]
    for condition in plan.metric_filters:
        query = query.where(build_comparison(to_operand(trees[condition.dimension].copy()), condition))
    if plan.previous_period is not None and plan.period is None:
        first_metric = to_operand(trees[plan.intent.metrics[0]].copy())
        query = query.where(exp.not_(exp.Is(this=first_metric, expression=exp.null())))
    return query, tuple(columns)


def _build_merged_metric(plan: QueryPlan, metric: str, suffix: str) -> Any:
    return build_metric_tree(metric, plan.model, plan.dialect, lambda base: _build_column(f"{base}{suffix}"))


def _build_growth(current: Any, previous: Any) -> Any:
    from sqlglot import exp

    change = exp.paren(exp.Sub(this=to_operand(current.copy()), expression=to_operand(previous.copy())))
    return exp.Div(
        this=exp.cast(change, "double"),
        expression=exp.func("NULLIF", previous.copy(), exp.Literal.number(0)),
        typed=False,
        safe=False,
    )


def _build_window_select(plan: QueryPlan, group: MetricGroup, window: Window, slots: list[tuple[str, str]]) -> Any:
    """Build the SELECT of one group in one window.

    The columns of other groups and windows are NULL.
    """
    suffix, period, shift = window
    query = group.build_select(plan, period)
    for key in group.build_keys(plan, shift):
        query = query.select(_build_alias(key.tree, key.name)).group_by(key.tree.copy())
    for metric, slot_suffix in slots:
        is_own = slot_suffix == suffix and metric in group.metrics
        tree = group.get_aggregate_builder(plan)(metric) if is_own else _build_typed_null(plan, metric)
        query = query.select(_build_alias(tree, f"{metric}{slot_suffix}"))
    return query


def _build_typed_null(plan: QueryPlan, metric: str) -> Any:
    """Build a NULL of the metric's type, which PostgreSQL needs in a UNION."""
    from sqlglot import exp

    tree, _ = bind_metric(plan.model.metrics[metric], plan.model, plan.dialect)
    if plan.dialect != "postgres" or tree.find(exp.Max, exp.Min):
        return exp.null()
    return exp.cast(exp.null(), "bigint" if isinstance(tree, exp.Count) else "decimal")


def _build_distinct_query(plan: QueryPlan) -> Any:
    """Build a query of the distinct values of the dimensions."""
    keys = [GroupKey(ref, *plan.bind_term(plan.model.dimensions[ref])) for ref in plan.intent.dimensions]
    conditions = plan.build_row_conditions()
    tables = [table for key in keys for table in key.tables]
    tables += [table for _, condition_tables, _ in conditions for table in condition_tables]
    root = find_nearest_root(plan.model, tables)
    if root is None:
        raise ValueError(f"no table joins {', '.join(dict.fromkeys(tables))} without multiplying rows")
    if plan.period or plan.grain:
        raise ValueError("a period needs a metric: the model dates metrics, not lists")
    query = build_join_query(plan.model, find_reachable_tables(plan.model, root), tables).distinct()
    for key in keys:
        query = query.select(_build_alias(key.tree, key.name))
    return query.where(*(tree for tree, _, _ in conditions)) if conditions else query


def _apply_order(query: Any, plan: QueryPlan, columns: tuple[str, ...]) -> Any:
    """Add ORDER BY and LIMIT.

    The keys break ties, so that a limit always selects the same rows.
    """
    from sqlglot import exp

    intent = plan.intent
    descending: dict[str, bool] = {}
    if intent.order_by is not None:
        if intent.order_by.column not in columns:
            raise ValueError(f"the order's column {intent.order_by.column} is not in the result")
        descending[intent.order_by.column] = intent.order_by.direction == "DESC"
    if descending or intent.limit or plan.grain:
        for name in columns:
            if name == PERIOD_COLUMN or name in intent.dimensions:
                descending.setdefault(name, False)
    for name, is_descending in descending.items():
        query = query.order_by(exp.Ordered(this=_build_column(name), desc=is_descending, nulls_first=False))
    return query.limit(intent.limit) if intent.limit else query


def _build_column(name: str) -> Any:
    from sqlglot import exp

    return exp.column(build_identifier(name))


def _build_alias(tree: Any, name: str) -> Any:
    from sqlglot import exp

    return exp.alias_(tree.copy(), build_identifier(name))
