"""Compiles a structured intent to SQL without a model, or says why it cannot."""

import datetime
from dataclasses import dataclass
from typing import Any

from opposable.ask.intent.assumption_messages import describe_default_year, describe_partial_period
from opposable.ask.intent.filter_sql import build_comparison
from opposable.ask.intent.intent import PERIOD_COLUMN, Comparison, StructuredIntent, find_intent_problems, resolve_ids
from opposable.ask.intent.period_sql import SqlDialect
from opposable.ask.intent.periods import Period, get_granularity, get_previous_period, get_year_period, resolve_period
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
from opposable.domain.language import Language


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """SQL for an intent. `columns` are the names of its result, `assumptions` what was taken for granted, in words.

    With a comparison each metric has three columns: `x`, `x_previous`, and `x_growth` (0.1 is 10 % more; NULL where
    there was nothing before).
    """

    sql: str
    columns: tuple[str, ...]
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnsupportedIntent:
    """Why an intent does not compile; someone who writes SQL must take over."""

    reason: str


def compile_intent(
    intent: StructuredIntent,
    model: SemanticModel,
    dialect: SqlDialect,
    today: datetime.date,
    language: Language = "en",
) -> CompiledQuery | UnsupportedIntent:
    """The SQL of `intent` in `dialect`; `today` is what "this year" is reckoned from, assumptions are in `language`.

    Tables are joined from many to one only, so no row counts twice; metrics of several tables are each aggregated
    before they are put together. Default filters and exclusions are applied to every metric they belong to.
    """
    ready = resolve_ids(intent, model)
    if problems := find_intent_problems(ready, model):
        return UnsupportedIntent(" ".join(problems))
    try:
        return _compile(ready, model, dialect, today, language)
    except (ValueError, BadInput) as error:
        return UnsupportedIntent(str(error))


def _compile(
    intent: StructuredIntent, model: SemanticModel, dialect: SqlDialect, today: datetime.date, language: Language
) -> CompiledQuery:
    plan, assumptions = _build_plan(intent, model, dialect, today, language)
    if not intent.metrics:
        query, columns = _build_distinct_query(plan), intent.dimensions
    elif plan.previous_period is None and len(groups := group_metrics(plan)) == 1:
        query, columns = _build_single_group_query(plan, groups[0])
    else:
        query, columns = _build_merged_query(plan)
    query = _apply_order(query, plan, columns)
    return CompiledQuery(query.sql(dialect=dialect), tuple(columns), assumptions)


def _build_plan(
    intent: StructuredIntent, model: SemanticModel, dialect: SqlDialect, today: datetime.date, language: Language
) -> tuple[QueryPlan, tuple[str, ...]]:
    time = intent.time
    period = resolve_period(time, today) if time else None
    grain = time.grain if time else None
    against = time.comparison if time and time.comparison != "ytd" else None
    told: list[str] = []
    if against and period is None and grain is None:
        period = get_year_period(today.year)
        told.append(describe_default_year(today.year, language))
    if against in ("qoq", "mom") and period and grain is None:
        size = get_granularity(period)
        step = "quarter" if against == "qoq" else "month"
        if size in ("year", "quarter") and size != step:
            grain = "quarter" if against == "qoq" else "month"
    if against and not intent.metrics:
        raise ValueError("a comparison needs a metric")
    if against and grain is None and period and period.start and period.end and period.start <= today < period.end:
        period = Period(period.start, today)
        told.append(describe_partial_period(today, language))
    previous = get_previous_period(period or Period(None, None), against) if against else None
    if period and period.start and period.end and period.start > period.end:
        raise ValueError(f"the period ends ({period.end}) before it begins ({period.start})")
    plan = QueryPlan(intent, model, dialect, period, grain, previous, against)
    return plan, tuple(told)


def _build_single_group_query(plan: QueryPlan, group: MetricGroup) -> tuple[Any, tuple[str, ...]]:
    """One SELECT that aggregates over one root."""
    query = group.build_select(plan, plan.period)
    for key in group.build_keys(plan):
        query = query.select(_build_alias(key.tree, key.name)).group_by(key.tree.copy())
    trees = {
        ref: build_metric_tree(ref, plan.model, plan.dialect, group.get_aggregate_builder(plan)) for ref in plan.metrics
    }
    for ref in plan.intent.metrics:
        query = query.select(_build_alias(trees[ref], ref))
    for condition in plan.metric_filters:
        query = query.having(build_comparison(to_operand(trees[condition.dimension].copy()), condition))
    return query, (*(key.name for key in group.build_keys(plan)), *plan.intent.metrics)


def _build_merged_query(plan: QueryPlan) -> tuple[Any, tuple[str, ...]]:
    """Each part aggregated by itself, put under one another, and brought together by their keys."""
    from sqlglot import exp

    parts = group_metrics(plan)
    windows: list[tuple[str, Period | None, Comparison | None]] = [("", plan.period, None)]
    windows += [("_previous", plan.previous_period, plan.comparison)] if plan.previous_period else []
    slots = [(ref, end) for part in parts for ref in part.metrics for end, _, _ in windows]
    selects = [_build_window_select(plan, part, window, slots) for part in parts for window in windows]
    inner = selects[0]
    for other in selects[1:]:
        inner = exp.union(inner, other, distinct=False)
    names = [key.name for key in parts[0].build_keys(plan)]
    columns = {name: _build_column(name) for name in [*names, *(f"{ref}{end}" for ref, end in slots)]}
    middle = exp.select(*(columns[name].copy() for name in names)).from_(inner.subquery("parts"))
    for ref, end in slots:
        middle = middle.select(_build_alias(exp.Max(this=columns[f"{ref}{end}"].copy()), f"{ref}{end}"))
    if names:
        middle = middle.group_by(*(columns[name].copy() for name in names))
    return _build_outer_query(plan, middle, names)


def _build_outer_query(plan: QueryPlan, merged_query: Any, key_names: list[str]) -> tuple[Any, tuple[str, ...]]:
    from sqlglot import exp

    outer = exp.select(*(_build_column(name) for name in key_names)).from_(merged_query.subquery("merged"))
    trees = {ref: _build_merged_metric(plan, ref, "") for ref in plan.metrics}
    columns = list(key_names)
    for ref in plan.intent.metrics:
        outer, columns = outer.select(_build_alias(trees[ref], ref)), [*columns, ref]
        if plan.previous_period is None:
            continue
        earlier = _build_merged_metric(plan, ref, "_previous")
        outer = outer.select(
            _build_alias(earlier, f"{ref}_previous"), _build_alias(_build_growth(trees[ref], earlier), f"{ref}_growth")
        )
        columns += [f"{ref}_previous", f"{ref}_growth"]
    for condition in plan.metric_filters:
        outer = outer.where(build_comparison(to_operand(trees[condition.dimension].copy()), condition))
    if plan.previous_period is not None and plan.period is None:
        outer = outer.where(
            exp.not_(exp.Is(this=to_operand(trees[plan.intent.metrics[0]].copy()), expression=exp.null()))
        )
    return outer, tuple(columns)


def _build_merged_metric(plan: QueryPlan, ref: str, suffix: str) -> Any:

    return build_metric_tree(ref, plan.model, plan.dialect, lambda base: _build_column(f"{base}{suffix}"))


def _build_growth(current: Any, previous: Any) -> Any:
    from sqlglot import exp

    change = exp.paren(exp.Sub(this=to_operand(current.copy()), expression=to_operand(previous.copy())))
    return exp.Div(
        this=exp.cast(change, "double"),
        expression=exp.func("NULLIF", previous.copy(), exp.Literal.number(0)),
        typed=False,
        safe=False,
    )


def _build_window_select(
    plan: QueryPlan,
    group: MetricGroup,
    window: tuple[str, Period | None, Comparison | None],
    slots: list[tuple[str, str]],
) -> Any:
    """One part in one window: its keys, its metrics in their slots, NULL in the slots of others."""
    end, period, later = window
    query = group.build_select(plan, period)
    for key in group.build_keys(plan, later):
        query = query.select(_build_alias(key.tree, key.name)).group_by(key.tree.copy())
    for ref, slot_end in slots:
        mine = slot_end == end and ref in group.metrics
        tree = group.get_aggregate_builder(plan)(ref) if mine else _build_typed_null(plan, ref)
        query = query.select(_build_alias(tree, f"{ref}{slot_end}"))
    return query


def _build_typed_null(plan: QueryPlan, ref: str) -> Any:
    """A NULL that PostgreSQL can put under the metric's own type."""
    from sqlglot import exp

    tree, _ = bind_metric(plan.model.metrics[ref], plan.model, plan.dialect)
    if plan.dialect != "postgres" or tree.find(exp.Max, exp.Min):
        return exp.null()
    return exp.cast(exp.null(), "bigint" if isinstance(tree, exp.Count) else "decimal")


def _build_distinct_query(plan: QueryPlan) -> Any:
    """The values of dimensions, each once."""
    keys = [GroupKey(ref, *plan.bind_term(plan.model.dimensions[ref])) for ref in plan.intent.dimensions]
    conditions = plan.build_row_conditions()
    needed = [table for key in keys for table in key.tables] + [t for _, tables, _ in conditions for t in tables]
    root = find_nearest_root(plan.model, needed)
    if root is None:
        raise ValueError(f"no table joins {', '.join(dict.fromkeys(needed))} without multiplying rows")
    if plan.period or plan.grain:
        raise ValueError("a period needs a metric: the model dates metrics, not lists")
    query = build_join_query(plan.model, find_reachable_tables(plan.model, root), needed).distinct()
    for key in keys:
        query = query.select(_build_alias(key.tree, key.name))
    return query.where(*(tree for tree, _, _ in conditions)) if conditions else query


def _apply_order(query: Any, plan: QueryPlan, columns: tuple[str, ...]) -> Any:
    """With ORDER BY and LIMIT; rows that are cut off are told apart by the keys, so that the same ones always stay."""
    from sqlglot import exp

    intent = plan.intent
    order: dict[str, bool] = {}
    if intent.order_by is not None:
        if intent.order_by.column not in columns:
            raise ValueError(f"the order's column {intent.order_by.column} is not in the result")
        order[intent.order_by.column] = intent.order_by.direction == "DESC"
    if order or intent.limit or plan.grain:
        for name in columns:
            if name == PERIOD_COLUMN or name in intent.dimensions:
                order.setdefault(name, False)
    for name, desc in order.items():
        query = query.order_by(exp.Ordered(this=_build_column(name), desc=desc, nulls_first=False))
    return query.limit(intent.limit) if intent.limit else query


def _build_column(name: str) -> Any:
    from sqlglot import exp

    return exp.column(build_identifier(name))


def _build_alias(tree: Any, name: str) -> Any:
    from sqlglot import exp

    return exp.alias_(tree.copy(), build_identifier(name))
