"""Compiles a structured intent to SQL without a model, or says why it cannot."""

import datetime
from dataclasses import dataclass
from typing import Any

from opposable.ask.intent.assumption_messages import days_so_far, this_year
from opposable.ask.intent.filter_sql import comparison
from opposable.ask.intent.intent import PERIOD, Comparison, StructuredIntent, intent_problems, with_ids
from opposable.ask.intent.period_sql import SqlDialect
from opposable.ask.intent.periods import Period, before, granularity_of, period_of, year_of
from opposable.ask.intent.query_plan import Key, Part, Plan, group_metrics, operand
from opposable.ask.semantics.expressions import derived_tree
from opposable.ask.semantics.join_graph import identifier, joined, nearest_root, reach
from opposable.ask.semantics.metric_fanout import bind_metric
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.errors import BadInput
from opposable.domain.language import Language


@dataclass(frozen=True, slots=True)
class Compiled:
    """SQL for an intent. `columns` are the names of its result, `assumptions` what was taken for granted, in words.

    With a comparison each metric has three columns: `x`, `x_previous`, and `x_growth` (0.1 is 10 % more; NULL where
    there was nothing before).
    """

    sql: str
    columns: tuple[str, ...]
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotCovered:
    """Why an intent does not compile; someone who writes SQL must take over."""

    reason: str


def compile_intent(
    intent: StructuredIntent,
    model: SemanticModel,
    dialect: SqlDialect,
    today: datetime.date,
    language: Language = "en",
) -> Compiled | NotCovered:
    """The SQL of `intent` in `dialect`; `today` is what "this year" is reckoned from, assumptions are in `language`.

    Tables are joined from many to one only, so no row counts twice; metrics of several tables are each aggregated
    before they are put together. Default filters and exclusions are applied to every metric they belong to.
    """
    ready = with_ids(intent, model)
    if problems := intent_problems(ready, model):
        return NotCovered(" ".join(problems))
    try:
        return _compile(ready, model, dialect, today, language)
    except (ValueError, BadInput) as error:
        return NotCovered(str(error))


def _compile(
    intent: StructuredIntent, model: SemanticModel, dialect: SqlDialect, today: datetime.date, language: Language
) -> Compiled:
    plan, assumptions = _plan(intent, model, dialect, today, language)
    if not intent.metrics:
        query, columns = _listing(plan), intent.dimensions
    elif plan.previous is None and len(groups := group_metrics(plan)) == 1:
        query, columns = _direct(plan, groups[0])
    else:
        query, columns = _merged(plan)
    query = _ordered(query, plan, columns)
    return Compiled(query.sql(dialect=dialect), tuple(columns), assumptions)


def _plan(
    intent: StructuredIntent, model: SemanticModel, dialect: SqlDialect, today: datetime.date, language: Language
) -> tuple[Plan, tuple[str, ...]]:
    time = intent.time
    period = period_of(time, today) if time else None
    grain = time.grain if time else None
    against = time.comparison if time and time.comparison != "ytd" else None
    told: list[str] = []
    if against and period is None and grain is None:
        period = year_of(today.year)
        told.append(this_year(today.year, language))
    if against in ("qoq", "mom") and period and grain is None:
        size = granularity_of(period)
        step = "quarter" if against == "qoq" else "month"
        if size in ("year", "quarter") and size != step:
            grain = "quarter" if against == "qoq" else "month"
    if against and not intent.metrics:
        raise ValueError("a comparison needs a metric")
    if against and grain is None and period and period.start and period.end and period.start <= today < period.end:
        period = Period(period.start, today)
        told.append(days_so_far(today, language))
    previous = before(period or Period(None, None), against) if against else None
    if period and period.start and period.end and period.start > period.end:
        raise ValueError(f"the period ends ({period.end}) before it begins ({period.start})")
    plan = Plan(intent, model, dialect, period, grain, previous, against)
    return plan, tuple(told)


def _direct(plan: Plan, part: Part) -> tuple[Any, tuple[str, ...]]:
    """One SELECT that aggregates over one root."""
    query = part.select(plan, plan.period)
    for key in part.keys(plan):
        query = query.select(_named(key.tree, key.name)).group_by(key.tree.copy())
    trees = {ref: derived_tree(ref, plan.model, plan.dialect, part.aggregate(plan)) for ref in plan.metrics}
    for ref in plan.intent.metrics:
        query = query.select(_named(trees[ref], ref))
    for condition in plan.metric_filters:
        query = query.having(comparison(operand(trees[condition.dimension].copy()), condition))
    return query, (*(key.name for key in part.keys(plan)), *plan.intent.metrics)


def _merged(plan: Plan) -> tuple[Any, tuple[str, ...]]:
    """Each part aggregated by itself, put under one another, and brought together by their keys."""
    from sqlglot import exp

    parts = group_metrics(plan)
    windows: list[tuple[str, Period | None, Comparison | None]] = [("", plan.period, None)]
    windows += [("_previous", plan.previous, plan.against)] if plan.previous else []
    slots = [(ref, end) for part in parts for ref in part.metrics for end, _, _ in windows]
    selects = [_slotted(plan, part, window, slots) for part in parts for window in windows]
    inner = selects[0]
    for other in selects[1:]:
        inner = exp.union(inner, other, distinct=False)
    names = [key.name for key in parts[0].keys(plan)]
    columns = {name: _column(name) for name in [*names, *(f"{ref}{end}" for ref, end in slots)]}
    middle = exp.select(*(columns[name].copy() for name in names)).from_(inner.subquery("parts"))
    for ref, end in slots:
        middle = middle.select(_named(exp.Max(this=columns[f"{ref}{end}"].copy()), f"{ref}{end}"))
    if names:
        middle = middle.group_by(*(columns[name].copy() for name in names))
    return _outer(plan, middle, names)


def _outer(plan: Plan, middle: Any, names: list[str]) -> tuple[Any, tuple[str, ...]]:
    from sqlglot import exp

    outer = exp.select(*(_column(name) for name in names)).from_(middle.subquery("merged"))
    trees = {ref: _over(plan, ref, "") for ref in plan.metrics}
    columns = list(names)
    for ref in plan.intent.metrics:
        outer, columns = outer.select(_named(trees[ref], ref)), [*columns, ref]
        if plan.previous is None:
            continue
        earlier = _over(plan, ref, "_previous")
        outer = outer.select(_named(earlier, f"{ref}_previous"), _named(_growth(trees[ref], earlier), f"{ref}_growth"))
        columns += [f"{ref}_previous", f"{ref}_growth"]
    for condition in plan.metric_filters:
        outer = outer.where(comparison(operand(trees[condition.dimension].copy()), condition))
    if plan.previous is not None and plan.period is None:
        outer = outer.where(exp.not_(exp.Is(this=operand(trees[plan.intent.metrics[0]].copy()), expression=exp.null())))
    return outer, tuple(columns)


def _over(plan: Plan, ref: str, end: str) -> Any:

    return derived_tree(ref, plan.model, plan.dialect, lambda base: _column(f"{base}{end}"))


def _growth(now: Any, earlier: Any) -> Any:
    from sqlglot import exp

    change = exp.paren(exp.Sub(this=operand(now.copy()), expression=operand(earlier.copy())))
    return exp.Div(
        this=exp.cast(change, "double"),
        expression=exp.func("NULLIF", earlier.copy(), exp.Literal.number(0)),
        typed=False,
        safe=False,
    )


def _slotted(
    plan: Plan, part: Part, window: tuple[str, Period | None, Comparison | None], slots: list[tuple[str, str]]
) -> Any:
    """One part in one window: its keys, its metrics in their slots, NULL in the slots of others."""
    end, period, later = window
    query = part.select(plan, period)
    for key in part.keys(plan, later):
        query = query.select(_named(key.tree, key.name)).group_by(key.tree.copy())
    for ref, slot_end in slots:
        mine = slot_end == end and ref in part.metrics
        tree = part.aggregate(plan)(ref) if mine else _null(plan, ref)
        query = query.select(_named(tree, f"{ref}{slot_end}"))
    return query


def _null(plan: Plan, ref: str) -> Any:
    """A NULL that PostgreSQL can put under the metric's own type."""
    from sqlglot import exp

    tree, _ = bind_metric(plan.model.metrics[ref], plan.model, plan.dialect)
    if plan.dialect != "postgres" or tree.find(exp.Max, exp.Min):
        return exp.null()
    return exp.cast(exp.null(), "bigint" if isinstance(tree, exp.Count) else "decimal")


def _listing(plan: Plan) -> Any:
    """The values of dimensions, each once."""
    keys = [Key(ref, *plan.bound(plan.model.dimensions[ref])) for ref in plan.intent.dimensions]
    conditions = plan.row_conditions()
    needed = [table for key in keys for table in key.tables] + [t for _, tables, _ in conditions for t in tables]
    root = nearest_root(plan.model, needed)
    if root is None:
        raise ValueError(f"no table joins {', '.join(dict.fromkeys(needed))} without multiplying rows")
    if plan.period or plan.grain:
        raise ValueError("a period needs a metric: the model dates metrics, not lists")
    query = joined(plan.model, reach(plan.model, root), needed).distinct()
    for key in keys:
        query = query.select(_named(key.tree, key.name))
    return query.where(*(tree for tree, _, _ in conditions)) if conditions else query


def _ordered(query: Any, plan: Plan, columns: tuple[str, ...]) -> Any:
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
            if name == PERIOD or name in intent.dimensions:
                order.setdefault(name, False)
    for name, desc in order.items():
        query = query.order_by(exp.Ordered(this=_column(name), desc=desc, nulls_first=False))
    return query.limit(intent.limit) if intent.limit else query


def _column(name: str) -> Any:
    from sqlglot import exp

    return exp.column(identifier(name))


def _named(tree: Any, name: str) -> Any:
    from sqlglot import exp

    return exp.alias_(tree.copy(), identifier(name))
