"""Reads an intent from the phrases of a question by rules alone, and says what it could not settle."""

import re
from dataclasses import dataclass, field

from opposable.ask.intent.assumption_messages import describe_value_choice
from opposable.ask.intent.intent import IntentFilter, IntentType, Operator, OrderBy, StructuredIntent
from opposable.ask.intent.lexicon import MeaningKind
from opposable.ask.intent.phrases import Phrase
from opposable.ask.intent.time_expressions import TimeParseResult
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.language import Language

_OPERATORS_BEFORE_NUMBER: dict[MeaningKind, Operator] = {"more": ">", "at_least": ">=", "less": "<", "at_most": "<="}
_OPERATORS_AFTER_NUMBER: dict[MeaningKind, Operator] = {"or_more": ">=", "or_less": "<="}
_SKIPPED_KINDS: tuple[MeaningKind, ...] = ("stop", "of", "change")
_COUNT_STAR_PATTERN = re.compile(r"count\s*\(\s*\*\s*\)", re.IGNORECASE)
_PLURAL_QUESTION_WORDS = ("哪些", "哪几个")
_EACH_WORDS = frozenset(
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
_AMOUNT_WORDS = frozenset({"total", "totals", "amount", "amounts", "value", "values", "sum", "figure", "result"})
"""Words that say nothing beside a metric, and stand for something unnamed where a bound is put on them."""


@dataclass(frozen=True, slots=True)
class RuleParseResult:
    """What the rules made of a question. It is settled when nothing is `unmatched` (words) or `unsure` (sentences)."""

    intent: StructuredIntent
    unmatched_words: tuple[str, ...] = ()
    ambiguities: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def is_resolved(self) -> bool:
        """Whether the intent can be taken as it is."""
        return not self.unmatched_words and not self.ambiguities


@dataclass(slots=True)
class _RuleState:
    phrases: list[Phrase]
    model: SemanticModel
    time: TimeParseResult
    language: Language
    roles: dict[int, MeaningKind] = field(default_factory=dict)
    metrics: list[tuple[int, str]] = field(default_factory=list)
    groups: list[tuple[int, str]] = field(default_factory=list)
    context_positions: list[int] = field(default_factory=list)
    values: list[tuple[str, str, bool]] = field(default_factory=list)
    filters: list[IntentFilter] = field(default_factory=list)
    exclusions: list[str] = field(default_factory=list)
    limit: int | None = None
    is_lowest_first: bool = False
    ambiguities: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)

    def find_neighbor(
        self, position: int, step: int, skipped_kinds: tuple[MeaningKind, ...] = _SKIPPED_KINDS
    ) -> int | None:
        """The nearest item before (-1) or after (1) that is not passed over."""
        position += step
        while 0 <= position < len(self.phrases):
            if not (self.phrases[position].meanings and self.phrases[position].is_a(*skipped_kinds)):
                return position
            position += step
        return None

    def has_neighbor(
        self, position: int, step: int, *kinds: MeaningKind, skipped_kinds: tuple[MeaningKind, ...] = _SKIPPED_KINDS
    ) -> bool:
        """Whether that item may be one of `kinds`."""
        found = self.find_neighbor(position, step, skipped_kinds)
        return found is not None and self.phrases[found].is_a(*kinds)


def parse_by_rules(
    phrases: list[Phrase], time: TimeParseResult, model: SemanticModel, language: Language
) -> RuleParseResult:
    """The intent that `items` and `time` say; what is assumed is told in `language`."""
    state = _RuleState(
        phrases, model, time, language, ambiguities=list(time.ambiguities), assumptions=list(time.assumptions)
    )
    for rule in (
        _assign_roles,
        _collect_value_filters,
        _collect_named_filters,
        _apply_numbers,
        _collect_groups,
        _flag_unsupported,
    ):
        rule(state)
    return _build_result(state)


def _assign_roles(state: _RuleState) -> None:
    """Settles what a phrase is that may be a metric and a dimension: by the words before it, then by the others."""
    waiting = []
    for at, item in enumerate(state.phrases):
        metric, dimension = item.get_ids("metric"), item.get_ids("dimension")
        if item.get_ids("value") and not metric and not dimension:
            continue
        if metric and dimension:
            if state.has_neighbor(at, -1, "count", skipped_kinds=(*_SKIPPED_KINDS, "value", "filter")):
                state.roles[at] = "metric"
            elif _is_requested_grouping(state, at):
                state.roles[at] = "dimension"
            else:
                waiting.append(at)
        elif metric:
            state.roles[at] = "metric"
        elif dimension and (counting := _find_count_metric(state, at, dimension[0])):
            state.roles[at] = "metric"
            state.metrics.append((at, counting))
        elif dimension:
            state.roles[at] = "dimension"
    for at in waiting:
        if "metric" in state.roles.values():
            state.context_positions.append(at)
        else:
            state.roles[at] = "metric"
    for at, role in sorted(state.roles.items()):
        ids = state.phrases[at].get_ids("metric")
        if role == "metric" and ids:
            state.metrics.append((at, ids[0]))
            if len(ids) > 1:
                state.ambiguities.append(f"{state.phrases[at].text} may be {' or '.join(ids)}")


def _find_count_metric(state: _RuleState, position: int, dimension: str) -> str:
    """The one metric that counts the rows of the dimension's table, where "how many" asks for them; or ""."""
    if not state.has_neighbor(position, -1, "count", skipped_kinds=(*_SKIPPED_KINDS, "value", "filter")):
        return ""
    table = state.model.dimensions[dimension].table
    counts = [
        m.id for m in state.model.metrics.values() if m.table == table and _COUNT_STAR_PATTERN.fullmatch(m.expr.strip())
    ]
    return counts[0] if table and len(counts) == 1 else ""


def _is_requested_grouping(state: _RuleState, position: int) -> bool:
    """Whether the words around say that rows are wanted by this dimension."""
    before = state.find_neighbor(position, -1, (*_SKIPPED_KINDS, "most", "least"))
    counted = before is not None and state.phrases[before].number is not None
    if before is not None and counted and not state.has_neighbor(before, -1, *_OPERATORS_BEFORE_NUMBER):
        return True
    if before is not None and state.phrases[before].is_a("group", "which", "top", "bottom"):
        return True
    straight = position - 1 if position else None
    while straight is not None and straight > 0 and state.phrases[straight].is_a("of"):
        straight -= 1
    if straight is not None and state.phrases[straight].is_a("most", "least"):
        return True
    after = state.find_neighbor(position, 1)
    if after is not None and state.phrases[after].is_a("group") and state.phrases[after].text in ("分布", "breakdown"):
        return True
    if after is not None and before is None and state.phrases[after].is_a(*_OPERATORS_BEFORE_NUMBER):
        return True
    if (
        after is not None
        and before is None
        and state.phrases[after].is_a("metric")
        and state.has_neighbor(after, 1, *_OPERATORS_BEFORE_NUMBER)
    ):
        return True
    return (
        after is None
        and position > 0
        and state.phrases[position - 1].is_a("of")
        and state.phrases[position - 1].text == "的"
    )


def _collect_value_filters(state: _RuleState) -> None:
    """Values become filters; several of one dimension, a list; those after "except", what is left out."""
    denied = _find_negated_positions(state.phrases)
    for at, item in enumerate(state.phrases):
        named = item.is_a("filter") or (item.is_a("exclusion") and at in denied)
        if item.is_a("value") and not named and at not in state.roles and at not in state.context_positions:
            ref = _choose_dimension(state, at)
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


def _find_negated_positions(phrases: list[Phrase]) -> set[int]:
    """The values, filters and exclusions that "except" speaks of: the next one, and those joined to it by "and"."""
    found: set[int] = set()
    denying = False
    for at, item in enumerate(phrases):
        if item.is_a("not"):
            denying = True
        elif item.is_a("not_after"):
            found |= {at - 1}
        elif item.is_a("value", "filter", "exclusion"):
            found |= {at} if denying else set()
            following = phrases[at + 1] if at + 1 < len(phrases) else None
            joined = following is not None and (
                following.is_a("and") or (following.is_a("value") and item.is_a("value"))
            )
            denying = denying and joined
    return found


def _choose_dimension(state: _RuleState, position: int) -> str:
    """Which dimension a value belongs to: one named beside it, one that lists it, or the first declared."""
    ids = state.phrases[position].get_ids("value")
    if len(ids) == 1:
        return ids[0]
    for step in (-1, 1):
        beside = state.find_neighbor(position, step)
        named = state.phrases[beside].get_ids("dimension") if beside is not None else ()
        if both := [ref for ref in ids if ref in named]:
            return both[0]
    value = next(m.value for m in state.phrases[position].meanings if m.kind == "value")
    listed = [ref for ref in ids if value in state.model.dimensions[ref].values]
    chosen = (listed or sorted(ids, key=list(state.model.dimensions).index))[0]
    others = [ref for ref in ids if ref != chosen]
    state.assumptions.append(describe_value_choice(state.phrases[position].text, chosen, others, state.language))
    return chosen


def _collect_named_filters(state: _RuleState) -> None:
    """Named filters and exclusions."""
    denied = _find_negated_positions(state.phrases)
    for at, item in enumerate(state.phrases):
        if at in state.roles:
            continue
        if item.get_ids("exclusion") and at in denied:
            state.exclusions.append(item.get_ids("exclusion")[0])
        elif item.get_ids("filter"):
            state.filters.append(IntentFilter(dimension=item.get_ids("filter")[0], value=at not in denied))
        elif item.get_ids("exclusion") and not item.is_a("value"):
            state.ambiguities.append(f"{item.text} is known only as something to leave out")


def _apply_numbers(state: _RuleState) -> None:
    """Numbers are limits (top 5, five manufacturers) or bounds (more than 100)."""
    for at, item in enumerate(state.phrases):
        if item.number is None:
            continue
        before, after = state.find_neighbor(at, -1), state.find_neighbor(at, 1)
        signs = [k for k in _OPERATORS_BEFORE_NUMBER if before is not None and state.phrases[before].is_a(k)]
        ends = [k for k in _OPERATORS_AFTER_NUMBER if after is not None and state.phrases[after].is_a(k)]
        if signs or ends:
            _add_bound(state, at, _OPERATORS_BEFORE_NUMBER[signs[0]] if signs else _OPERATORS_AFTER_NUMBER[ends[0]])
        elif isinstance(item.number, int) and item.number > 0 and _is_limit(state, at, before, after):
            state.limit = item.number
            state.is_lowest_first = before is not None and state.phrases[before].is_a("bottom")
        else:
            state.ambiguities.append(f"the number {item.text}")


def _is_limit(state: _RuleState, position: int, before: int | None, after: int | None) -> bool:
    if before is not None and state.phrases[before].is_a("top", "bottom", "most", "least"):
        return True
    return after is not None and (state.roles.get(after) == "dimension" or state.phrases[after].is_a("most", "least"))


def _add_bound(state: _RuleState, position: int, operator: Operator) -> None:
    if told := _find_unnamed_amount(state, position):
        state.ambiguities.append(f"which {told} {state.phrases[position].text} bounds")
    after = state.find_neighbor(position, 1)
    if after is not None and state.phrases[after].is_a(*_OPERATORS_AFTER_NUMBER):
        after = state.find_neighbor(after, 1)
    target = dict(state.metrics).get(after) if after is not None else None
    if target is None:
        named = [(i, ref) for i, ref in state.metrics if i < position]
        dimensions = [i for i, role in state.roles.items() if role == "dimension" and position - 4 < i < position]
        named += [
            (i, state.phrases[i].get_ids("dimension")[0])
            for i in dimensions
            if state.find_neighbor(i, 1) == state.find_neighbor(position, -1)
        ]
        target = max(named)[1] if named else (state.metrics[0][1] if state.metrics else None)
    if target is None:
        state.ambiguities.append(f"what {state.phrases[position].text} bounds")
        return
    if target in state.model.dimensions:
        state.context_positions += [
            i
            for i, role in state.roles.items()
            if role == "dimension" and target in state.phrases[i].get_ids("dimension")
        ]
    state.filters.append(IntentFilter(dimension=target, value=state.phrases[position].number, operator=operator))


def _find_unnamed_amount(state: _RuleState, position: int) -> str:
    """The word for an amount before a bound that no metric or dimension stands beside ("orders with total above 10")."""
    sign = state.find_neighbor(position, -1)
    noun = sign - 1 if sign is not None and state.phrases[sign].is_a(*_OPERATORS_BEFORE_NUMBER) else -1
    if noun < 1 or state.phrases[noun].text.casefold() not in _AMOUNT_WORDS or noun - 1 in state.roles:
        return ""
    return state.phrases[noun].text


def _collect_groups(state: _RuleState) -> None:
    """Dimensions that rows are wanted by; one beside its own value only says what the value is."""
    filtered = {condition.dimension for condition in state.filters}
    grouped_before = False
    for at, role in sorted(state.roles.items()):
        if role != "dimension" or at in state.context_positions:
            grouped_before = grouped_before and role == "dimension"
            continue
        ids = state.phrases[at].get_ids("dimension")
        listed = grouped_before and state.has_neighbor(at, -1, "and")
        if _is_requested_grouping(state, at) or listed or not state.metrics:
            if not state.metrics and ids[0] in filtered:
                continue
            state.groups.append((at, ids[0]))
            grouped_before = True
            if len(ids) > 1:
                state.ambiguities.append(f"{state.phrases[at].text} may be {' or '.join(ids)}")
            continue
        grouped_before = False
        beside = state.has_neighbor(at, -1, "value", "filter", "not") or state.has_neighbor(at, 1, "value", "filter")
        if ids[0] not in filtered and not beside and not filtered:
            state.ambiguities.append(f"whether rows are wanted by {ids[0]}")
    if any(item.is_a("apart") for item in state.phrases) and not state.groups:
        several = [c.dimension for c in state.filters if isinstance(c.value, tuple)]
        state.groups += [(len(state.phrases), ref) for ref in several]


def _flag_unsupported(state: _RuleState) -> None:
    """What the rules know of and cannot do."""
    state.ambiguities += [f"the word {item.text}" for item in state.phrases if item.is_a("hard")]
    if not state.metrics and any(item.is_a("count") for item in state.phrases):
        state.ambiguities.append("what is counted")
    if not state.metrics and not state.groups:
        state.ambiguities.append("no metric of the semantic model is named")
    against = state.time.time.comparison if state.time.time else None
    if against in (None, "ytd") and any(item.is_a("change") for item in state.phrases):
        state.ambiguities.append("what a change is measured against")
    apart = any(item.is_a("group") and item.text.casefold() in _EACH_WORDS for item in state.phrases)
    best = state.limit is not None or any(item.is_a("most", "least", "top", "bottom") for item in state.phrases)
    by_time = state.groups and state.time.time and state.time.time.grain
    if best and (by_time or (apart and len(state.groups) > 1)):
        state.ambiguities.append("the best within each group")
    grouped = state.groups or (state.time.time and state.time.time.grain)
    if not grouped and any(condition.dimension in state.model.metrics for condition in state.filters):
        state.ambiguities.append("a bound on a metric needs groups")


def _build_result(state: _RuleState) -> RuleParseResult:
    metrics = tuple(dict.fromkeys(ref for _, ref in state.metrics))
    groups = tuple(dict.fromkeys(ref for _, ref in state.groups))
    order, limit = _build_order(state, metrics, bool(groups))
    intent = StructuredIntent(
        intent_type=_classify_intent(state, bool(groups)),
        metrics=metrics,
        dimensions=groups,
        time=state.time.time,
        filters=tuple(state.filters),
        exclusions=tuple(dict.fromkeys(state.exclusions)),
        order_by=order,
        limit=limit,
    )
    unmatched = tuple(item.text for item in state.phrases if not item.meanings and item.number is None)
    return RuleParseResult(intent, unmatched, tuple(dict.fromkeys(state.ambiguities)), tuple(state.assumptions))


def _build_order(state: _RuleState, metrics: tuple[str, ...], grouped: bool) -> tuple[OrderBy | None, int | None]:
    kinds = {kind for kind in _ORDER_KINDS if any(item.is_a(kind) for item in state.phrases)}
    grouped = grouped or bool(state.time.time and state.time.time.grain)
    superlative = bool(kinds & {"most", "least"})
    if not kinds and state.limit is None:
        return None, None
    if not grouped or not metrics:
        if superlative or state.limit is not None:
            state.ambiguities.append("what is ranked")
        return None, state.limit
    low = state.is_lowest_first or bool(kinds & {"least", "ascending"})
    if low and kinds & {"most", "descending"} and not state.is_lowest_first:
        state.ambiguities.append("whether the highest or the lowest come first")
    limit = state.limit
    if limit is None and superlative and not any(item.text in _PLURAL_QUESTION_WORDS for item in state.phrases):
        limit = 1
    return OrderBy(column=_choose_ranking_metric(state, metrics), direction="ASC" if low else "DESC"), limit


_ORDER_KINDS: tuple[MeaningKind, ...] = ("most", "least", "descending", "ascending", "top", "bottom")


def _choose_ranking_metric(state: _RuleState, metrics: tuple[str, ...]) -> str:
    """The metric beside "most"; else the first."""
    for at, item in enumerate(state.phrases):
        if item.is_a("most", "least"):
            for step in (1, -1):
                beside = state.find_neighbor(at, step)
                if beside is not None and (ref := dict(state.metrics).get(beside)):
                    return ref
    return metrics[0]


def _classify_intent(state: _RuleState, grouped: bool) -> IntentType:
    time = state.time.time
    if time is not None and time.comparison in ("yoy", "qoq", "mom"):
        return "trend"
    if state.exclusions:
        return "complex"
    return "dimension" if grouped or (time is not None and time.grain) else "basic"
