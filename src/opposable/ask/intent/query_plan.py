"""What a compiled query is put together from: metrics that share rows, the keys of their groups, their conditions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opposable.ask.intent.filter_sql import comparison, fails, holds
from opposable.ask.intent.intent import PERIOD, Comparison, Grain, IntentFilter, StructuredIntent
from opposable.ask.intent.period_sql import SqlDialect, label, within
from opposable.ask.intent.periods import Period
from opposable.ask.semantics.expressions import base_metrics, bind
from opposable.ask.semantics.join_graph import joined, reach
from opposable.ask.semantics.metric_fanout import bind_metric, metric_root
from opposable.ask.semantics.model import SemanticModel, Term
from opposable.domain.errors import BadInput


@dataclass(frozen=True, slots=True)
class Key:
    """What rows are grouped by: the column's name in the result, its tree, the tables it needs."""

    name: str
    tree: Any
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """An intent with its model, and its time as days; `previous` is the period it is compared with."""

    intent: StructuredIntent
    model: SemanticModel
    dialect: SqlDialect
    period: Period | None
    grain: Grain | None
    previous: Period | None
    against: Comparison | None

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that are shown, and those that filters speak of."""
        filtered = (condition.dimension for condition in self.metric_filters)
        return tuple(dict.fromkeys([*self.intent.metrics, *filtered]))

    @property
    def metric_filters(self) -> tuple[IntentFilter, ...]:
        """The conditions on metrics, which hold after aggregating."""
        return tuple(f for f in self.intent.filters if f.dimension in self.model.metrics)

    def bound(self, term: Term) -> tuple[Any, tuple[str, ...]]:
        """A dimension's, filter's or exclusion's tree and tables.

        Raises:
            BadInput: its expression is wrong, or aggregates.
        """
        found = bind(term.expr, term.table, self.model, self.dialect)
        if found.aggregates:
            raise BadInput(f"{term.id} aggregates: only metrics may.")
        return found.tree, found.tables

    def row_conditions(self) -> list[tuple[Any, tuple[str, ...], str]]:
        """The intent's conditions on rows: tree, tables, and the id they come from."""
        found: list[tuple[Any, tuple[str, ...], str]] = []
        for condition in self.intent.filters:
            if condition.dimension in self.model.metrics:
                continue
            if condition.dimension in self.model.filters:
                tree, tables = self.bound(self.model.filters[condition.dimension])
                wanted = condition.value not in (False, 0, "false") and condition.operator != "!="
                found.append((holds(tree) if wanted else fails(tree), tables, condition.dimension))
                continue
            tree, tables = self.bound(self.model.dimensions[condition.dimension])
            found.append((comparison(operand(tree), condition), tables, condition.dimension))
        for ref in self.intent.exclusions:
            tree, tables = self.bound(self.model.exclusions[ref])
            found.append((fails(tree), tables, ref))
        return found


@dataclass(frozen=True, slots=True)
class Part:
    """Metrics that are aggregated over the same rows: one root table, one date, the same default filters."""

    root: str
    time: str
    defaults: tuple[str, ...]
    metrics: tuple[str, ...]

    def keys(self, plan: Plan, later: Comparison | None = None) -> tuple[Key, ...]:
        """What its rows are grouped by; `later` labels a period as the one it is compared with."""
        found = [Key(ref, *plan.bound(plan.model.dimensions[ref])) for ref in plan.intent.dimensions]
        if plan.grain is None:
            return tuple(found)
        tree, tables = self.date(plan)
        return (Key(PERIOD, label(tree, plan.grain, plan.dialect, later), tables), *found)

    def date(self, plan: Plan) -> tuple[Any, tuple[str, ...]]:
        """The tree that dates its rows.

        Raises:
            BadInput: nothing does.
        """
        named = ", ".join(self.metrics)
        if not self.time:
            raise BadInput(f"the semantic model gives no time for {named}")
        bound = bind(self.time, self.root, plan.model, plan.dialect)
        if reach(plan.model, self.root).refusal(bound.tables):
            raise BadInput(f"{named} cannot be dated: {self.time} is not reached from {self.root}")
        return bound.tree, bound.tables

    def select(self, plan: Plan, period: Period | None) -> Any:
        """FROM, JOIN and WHERE of its rows in `period`.

        Raises:
            BadInput: something the intent names cannot be joined without counting rows twice.
        """
        way = reach(plan.model, self.root)
        conditions = [*_defaults(plan, self), *plan.row_conditions()]
        keys = [(key.tree, key.tables, key.name) for key in self.keys(plan)]
        if period is not None and (period.start or period.end):
            tree, tables = self.date(plan)
            conditions.insert(0, (within(tree, period, plan.dialect), tables, "the period"))
        for _, tables, ref in [*keys, *conditions]:
            if reason := way.refusal(tables):
                raise BadInput(f"{', '.join(self.metrics)} cannot go with {ref}: {reason}")
        own = [t for ref in self.metrics for t in bind_metric(plan.model.metrics[ref], plan.model, plan.dialect)[1]]
        needed = [*own, *(table for _, tables, _ in [*keys, *conditions] for table in tables)]
        query = joined(plan.model, way, needed)
        return query.where(*(tree for tree, _, _ in conditions)) if conditions else query

    def aggregate(self, plan: Plan) -> Callable[[str], Any]:
        """A function from the id of a base metric to its tree."""
        return lambda ref: bind_metric(plan.model.metrics[ref], plan.model, plan.dialect)[0].copy()


def group_metrics(plan: Plan) -> list[Part]:
    """The plan's base metrics, those over the same rows together."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    found = [base for ref in plan.metrics for base in base_metrics(ref, plan.model, plan.dialect)]
    for ref in dict.fromkeys(found):
        metric = plan.model.metrics[ref]
        root = metric_root(metric, plan.model, plan.dialect)
        time = metric.time or plan.model.tables[root].time or plan.model.time
        groups.setdefault((root, time, metric.default_filters), []).append(ref)
    return [Part(root, time, defaults, tuple(ids)) for (root, time, defaults), ids in groups.items()]


def operand(tree: Any) -> Any:
    """`tree`, in parentheses unless it is one word or a call, to stand beside an operator."""
    from sqlglot import exp

    return tree if isinstance(tree, exp.Column | exp.Func | exp.Paren | exp.Literal) else exp.paren(tree)


def _defaults(plan: Plan, part: Part) -> list[tuple[Any, tuple[str, ...], str]]:
    """The metrics' own default filters, and those of the model that its rows can be asked about."""
    way = reach(plan.model, part.root)
    found = [_default(plan, part.root, text) for text in part.defaults]
    for text in plan.model.default_filters:
        tree, tables, ref = _default(plan, part.root, text)
        if text not in part.defaults and not way.refusal(tables):
            found.append((tree, tables, ref))
    return found


def _default(plan: Plan, root: str, text: str) -> tuple[Any, tuple[str, ...], str]:
    if text in plan.model.exclusions:
        tree, tables = plan.bound(plan.model.exclusions[text])
        return fails(tree), tables, text
    if text in plan.model.filters:
        tree, tables = plan.bound(plan.model.filters[text])
        return holds(tree), tables, text
    bound = bind(text, root, plan.model, plan.dialect)
    return holds(bound.tree), bound.tables, text
