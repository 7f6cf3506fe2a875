"""Reads an intent from the phrases of a question by rules alone, and says what it could not settle."""

import re
from dataclasses import dataclass, field

from opposable.ask.intent.assumption_messages import taken_as
from opposable.ask.intent.intent import IntentFilter, IntentType, Operator, OrderBy, StructuredIntent
from opposable.ask.intent.lexicon import Kind
from opposable.ask.intent.phrases import Item
from opposable.ask.intent.time_expressions import TimeFound
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.language import Language

_OPERATORS: dict[Kind, Operator] = {"more": ">", "at_least": ">=", "less": "<", "at_most": "<="}
_AFTER: dict[Kind, Operator] = {"or_more": ">=", "or_less": "<="}
_PASSED: tuple[Kind, ...] = ("stop", "of", "change")
_COUNT = re.compile(r"count\s*\(\s*\*\s*\)", re.IGNORECASE)
_PLURAL = ("哪些", "哪几个")
_EACH = frozenset(
    [
        "each",
        "every",
        "per",
        "for each",
        "for every",
        "in each",
        "每",
        "每个",
        "每位",
        "每种",
        "每家",
        "每一个",
        "各",
        "各个",
        "各种",
        "各类",
    ]
)
"""Words that set groups apart, within which a best one may be meant."""
_AMOUNTS = frozenset({"total", "totals", "amount", "amounts", "value", "values", "sum", "figure", "result"})
"""Words that say nothing beside a metric, and stand for something unnamed where a bound is put on them."""


@dataclass(frozen=True, slots=True)
class Ruled:
    """What the rules made of a question. It is settled when nothing is `unmatched` (words) or `unsure` (sentences)."""

    intent: StructuredIntent
    unmatched: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether the intent can be taken as it is."""
        return not self.unmatched and not self.unsure


@dataclass(slots=True)
class _State:
    items: list[Item]
    model: SemanticModel
    time: TimeFound
    language: Language
    roles: dict[int, Kind] = field(default_factory=dict)
    metrics: list[tuple[int, str]] = field(default_factory=list)
    groups: list[tuple[int, str]] = field(default_factory=list)
    context: list[int] = field(default_factory=list)
    values: list[tuple[str, str, bool]] = field(default_factory=list)
    filters: list[IntentFilter] = field(default_factory=list)
    exclusions: list[str] = field(default_factory=list)
    limit: int | None = None
    bottom: bool = False
    unsure: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)

    def near(self, at: int, step: int, passed: tuple[Kind, ...] = _PASSED) -> int | None:
        """The nearest item before (-1) or after (1) that is not passed over."""
        at += step
        while 0 <= at < len(self.items):
            if not (self.items[at].meanings and self.items[at].is_a(*passed)):
                return at
            at += step
        return None

    def is_near(self, at: int, step: int, *kinds: Kind, passed: tuple[Kind, ...] = _PASSED) -> bool:
        """Whether that item may be one of `kinds`."""
        found = self.near(at, step, passed)
        return found is not None and self.items[found].is_a(*kinds)


def read_by_rules(items: list[Item], time: TimeFound, model: SemanticModel, language: Language) -> Ruled:
    """The intent that `items` and `time` say; what is assumed is told in `language`."""
    state = _State(items, model, time, language, unsure=list(time.unsure), assumptions=list(time.assumptions))
    for rule in (_roles, _values, _terms, _numbers, _groups, _hard):
        rule(state)
    return _made(state)


def _roles(state: _State) -> None:
    """Settles what a phrase is that may be a metric and a dimension: by the words before it, then by the others."""
    waiting = []
    for at, item in enumerate(state.items):
        metric, dimension = item.ids("metric"), item.ids("dimension")
        if item.ids("value") and not metric and not dimension:
            continue
        if metric and dimension:
            if state.is_near(at, -1, "count", passed=(*_PASSED, "value", "filter")):
                state.roles[at] = "metric"
            elif _cue(state, at):
                state.roles[at] = "dimension"
            else:
                waiting.append(at)
        elif metric:
            state.roles[at] = "metric"
        elif dimension and (counting := _counting(state, at, dimension[0])):
            state.roles[at] = "metric"
            state.metrics.append((at, counting))
        elif dimension:
            state.roles[at] = "dimension"
    for at in waiting:
        if "metric" in state.roles.values():
            state.context.append(at)
        else:
            state.roles[at] = "metric"
    for at, role in sorted(state.roles.items()):
        ids = state.items[at].ids("metric")
        if role == "metric" and ids:
            state.metrics.append((at, ids[0]))
            if len(ids) > 1:
                state.unsure.append(f"{state.items[at].text} may be {' or '.join(ids)}")


def _counting(state: _State, at: int, dimension: str) -> str:
    """The one metric that counts the rows of the dimension's table, where "how many" asks for them; or ""."""
    if not state.is_near(at, -1, "count", passed=(*_PASSED, "value", "filter")):
        return ""
    table = state.model.dimensions[dimension].table
    counts = [m.id for m in state.model.metrics.values() if m.table == table and _COUNT.fullmatch(m.expr.strip())]
    return counts[0] if table and len(counts) == 1 else ""


def _cue(state: _State, at: int) -> bool:
    """Whether the words around say that rows are wanted by this dimension."""
    before = state.near(at, -1, (*_PASSED, "most", "least"))
    counted = before is not None and state.items[before].number is not None
    if before is not None and counted and not state.is_near(before, -1, *_OPERATORS):
        return True
    if before is not None and state.items[before].is_a("group", "which", "top", "bottom"):
        return True
    straight = at - 1 if at else None
    while straight is not None and straight > 0 and state.items[straight].is_a("of"):
        straight -= 1
    if straight is not None and state.items[straight].is_a("most", "least"):
        return True
    after = state.near(at, 1)
    if after is not None and state.items[after].is_a("group") and state.items[after].text in ("分布", "breakdown"):
        return True
    if after is not None and before is None and state.items[after].is_a(*_OPERATORS):
        return True
    if (
        after is not None
        and before is None
        and state.items[after].is_a("metric")
        and state.is_near(after, 1, *_OPERATORS)
    ):
        return True
    return after is None and at > 0 and state.items[at - 1].is_a("of") and state.items[at - 1].text == "的"


def _values(state: _State) -> None:
    """Values become filters; several of one dimension, a list; those after "except", what is left out."""
    denied = _denied(state.items)
    for at, item in enumerate(state.items):
        named = item.is_a("filter") or (item.is_a("exclusion") and at in denied)
        if item.is_a("value") and not named and at not in state.roles and at not in state.context:
            ref = _dimension_of(state, at)
            value = next(m.value for m in item.meanings if m.kind == "value" and m.id == ref)
            state.values.append((ref, value, at in denied))
    for ref in dict.fromkeys(ref for ref, _, _ in state.values):
        for wrong in (False, True):
            found = tuple(dict.fromkeys(v for i, v, d in state.values if i == ref and d is wrong))
            if found:
                many: Operator = "not in" if wrong else "in"
                one: Operator = "!=" if wrong else "="
                condition = IntentFilter(
                    dimension=ref, value=found if found[1:] else found[0], operator=many if found[1:] else one
                )
                state.filters.append(condition)


def _denied(items: list[Item]) -> set[int]:
    """The values, filters and exclusions that "except" speaks of: the next one, and those joined to it by "and"."""
    found: set[int] = set()
    denying = False
    for at, item in enumerate(items):
        if item.is_a("not"):
            denying = True
        elif item.is_a("not_after"):
            found |= {at - 1}
        elif item.is_a("value", "filter", "exclusion"):
            found |= {at} if denying else set()
            following = items[at + 1] if at + 1 < len(items) else None
            joined = following is not None and (
                following.is_a("and") or (following.is_a("value") and item.is_a("value"))
            )
            denying = denying and joined
    return found


def _dimension_of(state: _State, at: int) -> str:
    """Which dimension a value belongs to: one named beside it, one that lists it, or the first declared."""
    ids = state.items[at].ids("value")
    if len(ids) == 1:
        return ids[0]
    for step in (-1, 1):
        beside = state.near(at, step)
        named = state.items[beside].ids("dimension") if beside is not None else ()
        if both := [ref for ref in ids if ref in named]:
            return both[0]
    value = next(m.value for m in state.items[at].meanings if m.kind == "value")
    listed = [ref for ref in ids if value in state.model.dimensions[ref].values]
    chosen = (listed or sorted(ids, key=list(state.model.dimensions).index))[0]
    others = [ref for ref in ids if ref != chosen]
    state.assumptions.append(taken_as(state.items[at].text, chosen, others, state.language))
    return chosen


def _terms(state: _State) -> None:
    """Named filters and exclusions."""
    denied = _denied(state.items)
    for at, item in enumerate(state.items):
        if at in state.roles:
            continue
        if item.ids("exclusion") and at in denied:
            state.exclusions.append(item.ids("exclusion")[0])
        elif item.ids("filter"):
            state.filters.append(IntentFilter(dimension=item.ids("filter")[0], value=at not in denied))
        elif item.ids("exclusion") and not item.is_a("value"):
            state.unsure.append(f"{item.text} is known only as something to leave out")


def _numbers(state: _State) -> None:
    """Numbers are limits (top 5, five manufacturers) or bounds (more than 100)."""
    for at, item in enumerate(state.items):
        if item.number is None:
            continue
        before, after = state.near(at, -1), state.near(at, 1)
        signs = [k for k in _OPERATORS if before is not None and state.items[before].is_a(k)]
        ends = [k for k in _AFTER if after is not None and state.items[after].is_a(k)]
        if signs or ends:
            _bound(state, at, _OPERATORS[signs[0]] if signs else _AFTER[ends[0]])
        elif isinstance(item.number, int) and item.number > 0 and _is_limit(state, at, before, after):
            state.limit = item.number
            state.bottom = before is not None and state.items[before].is_a("bottom")
        else:
            state.unsure.append(f"the number {item.text}")


def _is_limit(state: _State, at: int, before: int | None, after: int | None) -> bool:
    if before is not None and state.items[before].is_a("top", "bottom", "most", "least"):
        return True
    return after is not None and (state.roles.get(after) == "dimension" or state.items[after].is_a("most", "least"))


def _bound(state: _State, at: int, operator: Operator) -> None:
    if told := _unnamed_amount(state, at):
        state.unsure.append(f"which {told} {state.items[at].text} bounds")
    after = state.near(at, 1)
    if after is not None and state.items[after].is_a(*_AFTER):
        after = state.near(after, 1)
    target = dict(state.metrics).get(after) if after is not None else None
    if target is None:
        named = [(i, ref) for i, ref in state.metrics if i < at]
        dimensions = [i for i, role in state.roles.items() if role == "dimension" and at - 4 < i < at]
        named += [(i, state.items[i].ids("dimension")[0]) for i in dimensions if state.near(i, 1) == state.near(at, -1)]
        target = max(named)[1] if named else (state.metrics[0][1] if state.metrics else None)
    if target is None:
        state.unsure.append(f"what {state.items[at].text} bounds")
        return
    if target in state.model.dimensions:
        state.context += [
            i for i, role in state.roles.items() if role == "dimension" and target in state.items[i].ids("dimension")
        ]
    state.filters.append(IntentFilter(dimension=target, value=state.items[at].number, operator=operator))


def _unnamed_amount(state: _State, at: int) -> str:
    """The word for an amount before a bound that no metric or dimension stands beside ("orders with total above 10")."""
    sign = state.near(at, -1)
    noun = sign - 1 if sign is not None and state.items[sign].is_a(*_OPERATORS) else -1
    if noun < 1 or state.items[noun].text.casefold() not in _AMOUNTS or noun - 1 in state.roles:
        return ""
    return state.items[noun].text


def _groups(state: _State) -> None:
    """Dimensions that rows are wanted by; one beside its own value only says what the value is."""
    filtered = {condition.dimension for condition in state.filters}
    grouped_before = False
    for at, role in sorted(state.roles.items()):
        if role != "dimension" or at in state.context:
            grouped_before = grouped_before and role == "dimension"
            continue
        ids = state.items[at].ids("dimension")
        listed = grouped_before and state.is_near(at, -1, "and")
        if _cue(state, at) or listed or not state.metrics:
            if not state.metrics and ids[0] in filtered:
                continue
            state.groups.append((at, ids[0]))
            grouped_before = True
            if len(ids) > 1:
                state.unsure.append(f"{state.items[at].text} may be {' or '.join(ids)}")
            continue
        grouped_before = False
        beside = state.is_near(at, -1, "value", "filter", "not") or state.is_near(at, 1, "value", "filter")
        if ids[0] not in filtered and not beside and not filtered:
            state.unsure.append(f"whether rows are wanted by {ids[0]}")
    if any(item.is_a("apart") for item in state.items) and not state.groups:
        several = [c.dimension for c in state.filters if isinstance(c.value, tuple)]
        state.groups += [(len(state.items), ref) for ref in several]


def _hard(state: _State) -> None:
    """What the rules know of and cannot do."""
    state.unsure += [f"the word {item.text}" for item in state.items if item.is_a("hard")]
    if not state.metrics and any(item.is_a("count") for item in state.items):
        state.unsure.append("what is counted")
    if not state.metrics and not state.groups:
        state.unsure.append("no metric of the semantic model is named")
    against = state.time.time.comparison if state.time.time else None
    if against in (None, "ytd") and any(item.is_a("change") for item in state.items):
        state.unsure.append("what a change is measured against")
    apart = any(item.is_a("group") and item.text.casefold() in _EACH for item in state.items)
    best = state.limit is not None or any(item.is_a("most", "least", "top", "bottom") for item in state.items)
    by_time = state.groups and state.time.time and state.time.time.grain
    if best and (by_time or (apart and len(state.groups) > 1)):
        state.unsure.append("the best within each group")
    grouped = state.groups or (state.time.time and state.time.time.grain)
    if not grouped and any(condition.dimension in state.model.metrics for condition in state.filters):
        state.unsure.append("a bound on a metric needs groups")


def _made(state: _State) -> Ruled:
    metrics = tuple(dict.fromkeys(ref for _, ref in state.metrics))
    groups = tuple(dict.fromkeys(ref for _, ref in state.groups))
    order, limit = _order(state, metrics, bool(groups))
    intent = StructuredIntent(
        intent_type=_type(state, bool(groups)),
        metrics=metrics,
        dimensions=groups,
        time=state.time.time,
        filters=tuple(state.filters),
        exclusions=tuple(dict.fromkeys(state.exclusions)),
        order_by=order,
        limit=limit,
    )
    unmatched = tuple(item.text for item in state.items if not item.meanings and item.number is None)
    return Ruled(intent, unmatched, tuple(dict.fromkeys(state.unsure)), tuple(state.assumptions))


def _order(state: _State, metrics: tuple[str, ...], grouped: bool) -> tuple[OrderBy | None, int | None]:
    kinds = {kind for kind in _DIRECTIONS if any(item.is_a(kind) for item in state.items)}
    grouped = grouped or bool(state.time.time and state.time.time.grain)
    superlative = bool(kinds & {"most", "least"})
    if not kinds and state.limit is None:
        return None, None
    if not grouped or not metrics:
        if superlative or state.limit is not None:
            state.unsure.append("what is ranked")
        return None, state.limit
    low = state.bottom or bool(kinds & {"least", "ascending"})
    if low and kinds & {"most", "descending"} and not state.bottom:
        state.unsure.append("whether the highest or the lowest come first")
    limit = state.limit
    if limit is None and superlative and not any(item.text in _PLURAL for item in state.items):
        limit = 1
    return OrderBy(column=_ranked_by(state, metrics), direction="ASC" if low else "DESC"), limit


_DIRECTIONS: tuple[Kind, ...] = ("most", "least", "descending", "ascending", "top", "bottom")


def _ranked_by(state: _State, metrics: tuple[str, ...]) -> str:
    """The metric beside "most"; else the first."""
    for at, item in enumerate(state.items):
        if item.is_a("most", "least"):
            for step in (1, -1):
                beside = state.near(at, step)
                if beside is not None and (ref := dict(state.metrics).get(beside)):
                    return ref
    return metrics[0]


def _type(state: _State, grouped: bool) -> IntentType:
    time = state.time.time
    if time is not None and time.comparison in ("yoy", "qoq", "mom"):
        return "trend"
    if state.exclusions:
        return "complex"
    return "dimension" if grouped or (time is not None and time.grain) else "basic"
