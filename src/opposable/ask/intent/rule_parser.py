"""The rule-based intent parser, which needs no model."""

import re
from dataclasses import dataclass
from typing import Literal

from opposable.ask.intent.intent import IntentType, OrderBy, StructuredIntent
from opposable.ask.intent.lexicon import MeaningKind
from opposable.ask.intent.messages import (
    BEST_WITHIN_GROUPS,
    BOUND_WITHOUT_GROUPS,
    MISSING_BASELINE,
    MISSING_COUNT_TARGET,
    MISSING_METRIC,
    MISSING_RANKING_TARGET,
    UNCLEAR_ORDER,
    describe_several_meanings,
    describe_unclear_grouping,
)
from opposable.ask.intent.phrases import Phrase
from opposable.ask.intent.rule_filters import apply_numbers, collect_named_filters, collect_value_filters
from opposable.ask.intent.rule_state import OPERATORS_BEFORE_NUMBER, SKIPPED_KINDS, RuleState
from opposable.ask.intent.time_expressions import TimeParseResult
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.localized_text import LocalizedText

_COUNT_STAR_PATTERN = re.compile(r"count\s*\(\s*\*\s*\)", re.IGNORECASE)
_PLURAL_QUESTION_WORDS = ("哪些", "哪几个")
_GROUP_KINDS: tuple[MeaningKind, ...] = ("group", "each", "breakdown")
"""Words that ask for groups; with "each" and a superlative, it may be the best within each group."""
_ORDER_KINDS: tuple[MeaningKind, ...] = ("most", "least", "descending", "ascending", "top", "bottom")


@dataclass(frozen=True, slots=True)
class ParsedIntent:
    """The intent of a question, and what the rules could not resolve.

    Attributes:
        intent: What the question asks for.
        unmatched_words: Phrases of the question without a meaning in the semantic model.
        ambiguities: What can be understood in more than one way, or not at all.
        assumptions: What the parser assumed where the question does not say.
    """

    intent: StructuredIntent
    unmatched_words: tuple[str, ...] = ()
    ambiguities: tuple[LocalizedText, ...] = ()
    assumptions: tuple[LocalizedText, ...] = ()

    @property
    def is_resolved(self) -> bool:
        """Whether the rules understood every word in exactly one way."""
        return not self.unmatched_words and not self.ambiguities

    @property
    def confidence(self) -> float:
        """The confidence in the intent, from 0 to 1."""
        doubt_count = len(self.unmatched_words) + len(self.ambiguities)
        return max(0.1, round((0.95 if self.assumptions else 1.0) - 0.25 * doubt_count, 2))


def parse_by_rules(phrases: list[Phrase], time: TimeParseResult, model: SemanticModel) -> ParsedIntent:
    """Parse the intent of a question from its phrases and its time."""
    state = RuleState(phrases, model, time, ambiguities=list(time.ambiguities), assumptions=list(time.assumptions))
    rules = (
        _assign_roles,
        collect_value_filters,
        collect_named_filters,
        apply_numbers,
        _collect_groups,
        _flag_unsupported,
    )
    for rule in rules:
        rule(state)
    return _build_result(state)


def _assign_roles(state: RuleState) -> None:
    """Decide which phrases are metrics and which are dimensions.

    The words before a phrase decide where it may be both; the other phrases decide where those words do not.
    """
    undecided = []
    for position, phrase in enumerate(state.phrases):
        metrics, dimensions = phrase.get_ids("metric"), phrase.get_ids("dimension")
        if metrics and dimensions:
            if _is_counted(state, position):
                state.roles[position] = "metric"
            elif _is_requested_grouping(state, position):
                state.roles[position] = "dimension"
            else:
                undecided.append(position)
        elif metrics:
            state.roles[position] = "metric"
        elif dimensions and (count_metric := _find_count_metric(state, position, dimensions[0])):
            state.roles[position] = "metric"
            state.metrics.append((position, count_metric))
        elif dimensions:
            state.roles[position] = "dimension"
    for position in undecided:
        if "metric" in state.roles.values():
            state.context_positions.append(position)
        else:
            state.roles[position] = "metric"
    for position, role in sorted(state.roles.items()):
        ids = state.phrases[position].get_ids("metric")
        if role == "metric" and ids:
            state.metrics.append((position, ids[0]))
            if len(ids) > 1:
                state.ambiguities.append(describe_several_meanings(state.phrases[position].text, ids))


def _is_counted(state: RuleState, position: int) -> bool:
    return state.has_neighbor(position, -1, "count", skipped_kinds=(*SKIPPED_KINDS, "value", "filter"))


def _find_count_metric(state: RuleState, position: int, dimension: str) -> str:
    """Return the metric that counts the rows of a dimension, or "".

    It must be the only one, and the dimension must follow "how many".
    """
    if not _is_counted(state, position):
        return ""
    table = state.model.dimensions[dimension].table
    count_metrics = [
        metric.id
        for metric in state.model.metrics.values()
        if metric.table == table and _COUNT_STAR_PATTERN.fullmatch(metric.expr.strip())
    ]
    return count_metrics[0] if table and len(count_metrics) == 1 else ""


def _is_requested_grouping(state: RuleState, position: int) -> bool:
    """Return whether the words around a dimension ask for one row per value of it."""
    return _is_grouping_requested_before(state, position) or _is_grouping_requested_after(state, position)


def _is_grouping_requested_before(state: RuleState, position: int) -> bool:
    before = state.find_neighbor(position, -1, (*SKIPPED_KINDS, "most", "least"))
    is_counted = before is not None and state.phrases[before].number is not None
    if before is not None and is_counted and not state.has_neighbor(before, -1, *OPERATORS_BEFORE_NUMBER):
        return True
    if state.is_at(before, *_GROUP_KINDS, "which", "top", "bottom"):
        return True
    previous = position - 1 if position else None
    while previous is not None and previous > 0 and state.is_at(previous, "of"):
        previous -= 1
    return state.is_at(previous, "most", "least")


def _is_grouping_requested_after(state: RuleState, position: int) -> bool:
    before = state.find_neighbor(position, -1, (*SKIPPED_KINDS, "most", "least"))
    after = state.find_neighbor(position, 1)
    if after is None:
        previous = state.phrases[position - 1] if position > 0 else None
        return previous is not None and previous.is_a("of") and previous.text == "的"
    if state.is_at(after, "breakdown"):
        return True
    if before is not None:
        return False
    is_bounded_metric = state.is_at(after, "metric") and state.has_neighbor(after, 1, *OPERATORS_BEFORE_NUMBER)
    return is_bounded_metric or state.is_at(after, *OPERATORS_BEFORE_NUMBER)


def _collect_groups(state: RuleState) -> None:
    """Collect the dimensions that rows are grouped by.

    A dimension next to its own value only says what the value is.
    """
    filtered = {condition.dimension for condition in state.filters}
    follows_group = False
    for position, role in sorted(state.roles.items()):
        if role != "dimension" or position in state.context_positions:
            follows_group = follows_group and role == "dimension"
            continue
        ids = state.phrases[position].get_ids("dimension")
        is_listed = follows_group and state.has_neighbor(position, -1, "and")
        if _is_requested_grouping(state, position) or is_listed or not state.metrics:
            if not state.metrics and ids[0] in filtered:
                continue
            state.groups.append((position, ids[0]))
            follows_group = True
            if len(ids) > 1:
                state.ambiguities.append(describe_several_meanings(state.phrases[position].text, ids))
            continue
        follows_group = False
        if not filtered and not _describes_neighbor(state, position):
            state.ambiguities.append(describe_unclear_grouping(ids[0]))
    if not state.groups and any(phrase.is_a("apart") for phrase in state.phrases):
        listed = [condition.dimension for condition in state.filters if isinstance(condition.value, tuple)]
        state.groups += [(len(state.phrases), dimension) for dimension in listed]


def _describes_neighbor(state: RuleState, position: int) -> bool:
    """Return whether a dimension describes a value or filter next to it."""
    return state.has_neighbor(position, -1, "value", "filter", "not") or state.has_neighbor(
        position, 1, "value", "filter"
    )


def _flag_unsupported(state: RuleState) -> None:
    """Report the parts of the question that the rules recognize but cannot express."""
    if not state.metrics and any(phrase.is_a("count") for phrase in state.phrases):
        state.ambiguities.append(MISSING_COUNT_TARGET)
    if not state.metrics and not state.groups:
        state.ambiguities.append(MISSING_METRIC)
    comparison = state.time.time.comparison if state.time.time else None
    if comparison in (None, "ytd") and any(phrase.is_a("change") for phrase in state.phrases):
        state.ambiguities.append(MISSING_BASELINE)
    has_each_word = any(phrase.is_a("each") for phrase in state.phrases)
    is_ranked = state.limit is not None or any(p.is_a("most", "least", "top", "bottom") for p in state.phrases)
    is_grouped_by_time = bool(state.groups) and state.has_time_groups
    if is_ranked and (is_grouped_by_time or (has_each_word and len(state.groups) > 1)):
        state.ambiguities.append(BEST_WITHIN_GROUPS)
    is_grouped = state.groups or state.has_time_groups
    if not is_grouped and any(condition.dimension in state.model.metrics for condition in state.filters):
        state.ambiguities.append(BOUND_WITHOUT_GROUPS)


def _build_result(state: RuleState) -> ParsedIntent:
    metrics = tuple(dict.fromkeys(metric for _, metric in state.metrics))
    groups = tuple(dict.fromkeys(dimension for _, dimension in state.groups))
    is_grouped = bool(groups) or state.has_time_groups
    order_by, limit = _build_order(state, metrics, is_grouped)
    intent = StructuredIntent(
        intent_type=_classify_intent(state, is_grouped),
        metrics=metrics,
        dimensions=groups,
        time=state.time.time,
        filters=tuple(state.filters),
        exclusions=tuple(dict.fromkeys(state.exclusions)),
        order_by=order_by,
        limit=limit,
    )
    unmatched_words = tuple(p.text for p in state.phrases if not p.meanings and p.number is None)
    return ParsedIntent(intent, unmatched_words, tuple(dict.fromkeys(state.ambiguities)), tuple(state.assumptions))


def _build_order(state: RuleState, metrics: tuple[str, ...], is_grouped: bool) -> tuple[OrderBy | None, int | None]:
    kinds = {kind for kind in _ORDER_KINDS if any(phrase.is_a(kind) for phrase in state.phrases)}
    is_superlative = bool(kinds & {"most", "least"})
    if not kinds and state.limit is None:
        return None, None
    if not is_grouped or not metrics:
        if is_superlative or state.limit is not None:
            state.ambiguities.append(MISSING_RANKING_TARGET)
        return None, state.limit
    is_ascending = state.is_lowest_first or bool(kinds & {"least", "ascending"})
    if is_ascending and kinds & {"most", "descending"} and not state.is_lowest_first:
        state.ambiguities.append(UNCLEAR_ORDER)
    limit = state.limit
    if limit is None and is_superlative and not any(p.text in _PLURAL_QUESTION_WORDS for p in state.phrases):
        limit = 1
    direction: Literal["ASC", "DESC"] = "ASC" if is_ascending else "DESC"
    return OrderBy(column=_choose_ranking_metric(state, metrics), direction=direction), limit


def _choose_ranking_metric(state: RuleState, metrics: tuple[str, ...]) -> str:
    """Return the metric next to a superlative such as "most", or the first metric."""
    metric_at = dict(state.metrics)
    for position, phrase in enumerate(state.phrases):
        if phrase.is_a("most", "least"):
            for step in (1, -1):
                neighbor = state.find_neighbor(position, step)
                if neighbor is not None and neighbor in metric_at:
                    return metric_at[neighbor]
    return metrics[0]


def _classify_intent(state: RuleState, is_grouped: bool) -> IntentType:
    time = state.time.time
    if time is not None and time.comparison in ("yoy", "qoq", "mom"):
        return "trend"
    if state.exclusions:
        return "complex"
    return "dimension" if is_grouped else "basic"
