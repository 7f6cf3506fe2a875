"""The semantic parser: turns a question into a structured intent by rules, without a model."""

import datetime
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from opposable.ask.intent import messages
from opposable.ask.intent.intent import IntentType, OrderBy, StructuredIntent
from opposable.ask.intent.lexicon import MeaningKind, build_lexicon, tokenize_stems
from opposable.ask.intent.phrases import split_phrases
from opposable.ask.intent.rule_filters import apply_numbers, collect_filters, describes_next_value, precedes_time
from opposable.ask.intent.rule_state import OPERATORS_BEFORE_NUMBER, SKIPPED_KINDS, RuleState
from opposable.ask.intent.time_expressions import find_time
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.localized_text import LocalizedText
from opposable.domain.text_normalization import singularize

_MAX_QUESTION_CHARACTERS = 4_000
_COUNT_STAR_PATTERN = re.compile(r"count\s*\(\s*\*\s*\)", re.IGNORECASE)
_PLURAL_QUESTION_WORDS = ("哪些", "哪几个")
_QUANTITY_WORDS = ("most", "fewest", "least")
"""Superlatives that count what follows: the best customers are ranked, the most customers counted."""
_PLACE_AND_TIME_WORDS = ("where", "when")
"""Words that ask for a place or a time at the start of a question, and begin a condition elsewhere."""
_GROUP_KINDS: tuple[MeaningKind, ...] = ("group", "each", "breakdown")
"""Words that ask for groups; with "each" and a superlative, it may be the best within each group."""
_ORDER_KINDS: tuple[MeaningKind, ...] = ("most", "least", "descending", "ascending", "sort", "top", "bottom")


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


class SemanticParser:
    """Parser of questions in the terms of a semantic model, and of the values of its dimensions in the database."""

    def __init__(self, semantics: SemanticModel, values: Mapping[str, Sequence[str]]) -> None:
        self.semantics = semantics
        self._lexicon = build_lexicon(semantics, values)

    def parse(self, question: str, today: datetime.date) -> ParsedIntent:
        """Parse the first 4,000 characters of a question; relative times count from `today`."""
        text = question[:_MAX_QUESTION_CHARACTERS]
        time = find_time(text, today)
        phrases = split_phrases(text, self._lexicon, time.text)
        state = RuleState(phrases, self.semantics, time.time, time.text, time.ambiguities, time.assumptions)
        for rule in (_assign_roles, collect_filters, apply_numbers, _collect_groups, _flag_unsupported):
            rule(state)
        return _build_result(state)


def _assign_roles(state: RuleState) -> None:
    """Decide which phrases are metrics and which are dimensions.

    The words before a phrase decide where it may be both; the other phrases decide where those words do not.
    """
    undecided = []
    for position, phrase in enumerate(state.phrases):
        metrics, dimensions = phrase.get_ids("metric"), phrase.get_ids("dimension")
        is_metric = bool(metrics) and (not dimensions or _is_counted(state, position))
        if metrics and not is_metric and not _is_requested_grouping(state, position):
            undecided.append(position)
        elif is_metric:
            _add_metric(state, position)
        elif dimensions and (count_metric := _find_count_metric(state, position, dimensions[0])):
            state.metrics[position] = count_metric
        elif dimensions:
            state.dimensions[position] = dimensions
    for position in undecided:
        if not state.metrics:
            _add_metric(state, position)
            continue
        state.context_positions.append(position)
        is_attribute = state.is_at(position + 1, "metric") and not state.is_at(position - 1, "and", "or")
        if state.is_at(position - 1, "metric") or not (_describes_neighbor(state, position) or is_attribute):
            phrase = state.phrases[position]
            state.add_several_meanings(position, (*phrase.get_ids("metric"), *phrase.get_ids("dimension")))


def _add_metric(state: RuleState, position: int) -> None:
    ids = state.phrases[position].get_ids("metric")
    state.metrics[position] = ids[0]
    if len(ids) > 1:
        state.add_several_meanings(position, ids)


def _is_counted(state: RuleState, position: int) -> bool:
    """Return whether a phrase follows "how many", "most" without a metric, or a word such as "total" that sums no other metric."""
    before = state.phrases[position - 1].text.lower() if position else ""
    others = (phrase for at, phrase in enumerate(state.phrases) if at != position)
    if before in _QUANTITY_WORDS and not any(other.is_a("metric") for other in others):
        return True
    if state.is_at(position - 1, "total") and not state.has_neighbor(position, 1, "metric"):
        return True
    return state.has_neighbor(position, -1, "count", skipped_kinds=(*SKIPPED_KINDS, "value", "filter"))


def _find_count_metric(state: RuleState, position: int, dimension: str) -> str:
    """Return the metric that counts the rows of a dimension, or "".

    It must be the only one, and the dimension must follow "how many" and have the name of its table: the rows of
    `customers` are customers, not cities.
    """
    named = state.model.dimensions[dimension]
    table = named.table
    names = [tokenize_stems(name) for name in (named.id, *named.synonyms)]
    if not _is_counted(state, position) or tokenize_stems(table.rpartition(".")[2]) not in names:
        return ""
    count_metrics = [
        metric.id
        for metric in state.model.metrics.values()
        if metric.table == table and _COUNT_STAR_PATTERN.fullmatch(metric.expr.strip())
    ]
    return count_metrics[0] if table and len(count_metrics) == 1 else ""


def _is_requested_grouping(state: RuleState, position: int) -> bool:
    """Return whether the words around a dimension ask for one row per value of it."""
    before = state.find_neighbor(position, -1, (*SKIPPED_KINDS, "most", "least"))
    is_counted = before is not None and state.phrases[before].number is not None
    if before is not None and is_counted and not state.has_neighbor(before, -1, *OPERATORS_BEFORE_NUMBER):
        return True
    if state.is_at(before, *_GROUP_KINDS, "which", "top", "bottom"):
        return True
    if state.has_neighbor(position, -1, "most", "least", skipped_kinds=("of",)):
        return True
    after = state.find_neighbor(position, 1)
    if after is None:
        return state.is_at(position - 1, "of") and state.phrases[position - 1].text == "的"
    if before is not None or state.is_at(after, "breakdown"):
        return state.is_at(after, "breakdown")
    is_bounded_metric = state.is_at(after, "metric") and state.has_neighbor(after, 1, *OPERATORS_BEFORE_NUMBER)
    return is_bounded_metric or state.is_at(after, *OPERATORS_BEFORE_NUMBER)


def _collect_groups(state: RuleState) -> None:
    """Collect the dimensions that rows are grouped by.

    A dimension next to its own value only says what the value is.
    """
    filtered = {condition.dimension for condition in state.filters}
    follows_group = False
    for position in sorted({*state.metrics, *state.dimensions}):
        ids = state.dimensions.get(position, ())
        if not ids or position in state.context_positions:
            follows_group = follows_group and bool(ids)
            continue
        is_listed = follows_group and state.has_neighbor(position, -1, "and", "or")
        if _is_requested_grouping(state, position) or is_listed or not state.metrics:
            if not state.metrics and ids[0] in filtered:
                continue
            state.groups.append(ids[0])
            follows_group = True
            if len(ids) > 1:
                state.add_several_meanings(position, ids)
            continue
        follows_group = False
        if not _describes_neighbor(state, position):
            state.ambiguities.append(messages.UNCLEAR_GROUPING.format(dimension=ids[0]))
    if not state.groups and state.has_phrase("apart"):
        state.groups += [condition.dimension for condition in state.filters if isinstance(condition.value, tuple)]


def _describes_neighbor(state: RuleState, position: int) -> bool:
    """Return whether a dimension only describes a value or filter next to it; that of "clients in Berlin with sales" is asked for."""
    is_asked_for = min(state.metrics, default=0) > position and not state.has_neighbor(position, 1, "metric")
    is_asked_for |= state.is_at(position - 1, "and", "or") or state.has_neighbor(position, 1, "and", "or")
    is_described = any(state.has_neighbor(position, step, "value", "filter", "not") for step in (-1, 1))
    return describes_next_value(state, position) or (is_described and not is_asked_for)


def _flag_unsupported(state: RuleState) -> None:
    """Report the parts of the question that the rules recognize but cannot express."""
    if not state.metrics and state.has_phrase("count", "total"):
        state.ambiguities.append(messages.MISSING_COUNT_TARGET)
    if not state.metrics and (not state.groups or state.has_phrase("group", "each")):
        state.ambiguities.append(messages.MISSING_METRIC)
    for position, ref in state.metrics.items():
        dimensions = state.phrases[position].get_ids("dimension")
        is_list = dimensions and not state.groups and not state.has_time_groups and not _is_counted(state, position)
        if is_list:
            state.ambiguities.append(messages.UNCLEAR_GROUPING.format(dimension=ref))
        for condition in state.filters:
            if condition.value is False and condition.dimension in state.model.metrics[ref].default_filters:
                state.ambiguities.append(messages.CONTRADICTION.format(metric=ref, filter=condition.dimension))
    if not state.is_compared and state.has_phrase("change", "compare"):
        state.ambiguities.append(messages.MISSING_BASELINE)
    is_ranked = state.limit is not None or state.has_phrase("most", "least", "top", "bottom")
    is_grouped_by_time = bool(state.groups) and state.has_time_groups
    if is_ranked and (is_grouped_by_time or len(state.groups) > 1):
        state.ambiguities.append(messages.BEST_WITHIN_GROUPS)
    for position, phrase in enumerate(state.phrases):
        if phrase.is_a("count") and phrase.text != "多少" and state.find_neighbor(position, 1) is None:
            state.ambiguities.append(messages.MISSING_COUNT_TARGET)
        if phrase.is_a("group", "each") and not _has_group_after(state, position):
            after = state.find_neighbor(position, 1)
            group = phrase if after is None else state.phrases[after]
            state.ambiguities.append(messages.UNCLEAR_GROUPING.format(dimension=group.text))
    has_bound = any(condition.dimension in state.model.metrics for condition in state.filters)
    if has_bound and not state.groups and not state.has_time_groups:
        state.ambiguities.append(messages.BOUND_WITHOUT_GROUPS)


def _has_group_after(state: RuleState, position: int) -> bool:
    """Return whether a word such as "by" or "each" precedes a group of the rows, or what ranks or bounds groups."""
    after = state.find_neighbor(position, 1)
    if state.has_time_groups and precedes_time(state, position, after):
        return True
    is_group = after is not None and not set(state.groups).isdisjoint(state.dimensions.get(after, ()))
    is_order = after in state.metrics or state.is_at(after, "count", *_ORDER_KINDS)
    return is_group or (bool(state.groups) and is_order and state.is_at(position, "group"))


def _build_result(state: RuleState) -> ParsedIntent:
    metrics = tuple(dict.fromkeys(state.metrics.values()))
    groups = tuple(dict.fromkeys(state.groups))
    is_grouped = bool(groups) or state.has_time_groups
    order_by, limit = _build_order(state, metrics, is_grouped)
    intent = StructuredIntent(
        intent_type=_classify_intent(state, is_grouped),
        metrics=metrics,
        dimensions=groups,
        time=state.time,
        filters=tuple(state.filters),
        exclusions=tuple(dict.fromkeys(state.exclusions)),
        order_by=order_by,
        limit=limit,
    )
    words = [phrase.text for phrase in state.phrases[:1] if phrase.text.lower() in _PLACE_AND_TIME_WORDS]
    words += [phrase.text for phrase in state.phrases if phrase.is_unknown or phrase.is_a("ordinal")]
    return ParsedIntent(intent, tuple(words), tuple(dict.fromkeys(state.ambiguities)), tuple(state.assumptions))


def _build_order(state: RuleState, metrics: tuple[str, ...], is_grouped: bool) -> tuple[OrderBy | None, int | None]:
    ranking = [phrase for phrase in state.phrases if state.limit or len(phrase.text) > 1]  # 前 and 后 need a number
    kinds = {kind for kind in _ORDER_KINDS if any(phrase.is_a(kind) for phrase in ranking)}
    if not kinds and state.limit is None:
        return None, None
    if not is_grouped or not metrics or not kinds:
        state.ambiguities.append(messages.MISSING_RANKING_TARGET)
        return None, state.limit
    limit = state.limit
    is_ascending = bool(kinds & {"least", "ascending"}) or (state.is_lowest_first if limit else "bottom" in kinds)
    if kinds == {"sort"} or (is_ascending and kinds & {"most", "descending"} and not state.is_lowest_first):
        state.ambiguities.append(messages.UNCLEAR_ORDER)
    words = [state.phrases[at].text.lower() for at, ids in state.dimensions.items() if ids[0] in state.groups]
    is_plural = any(phrase.text in _PLURAL_QUESTION_WORDS for phrase in state.phrases)
    is_plural = is_plural or any(singularize(word) != word for word in words)
    if limit is None and kinds & {"most", "least", "top", "bottom"} and not is_plural:
        limit = 1
    direction: Literal["ASC", "DESC"] = "ASC" if is_ascending else "DESC"
    return OrderBy(column=_choose_ranking_column(state, metrics), direction=direction), limit


def _choose_ranking_column(state: RuleState, metrics: tuple[str, ...]) -> str:
    """Return the metric next to a superlative such as "most", or the first metric; its growth if that is ranked."""
    superlatives = [position for position, phrase in enumerate(state.phrases) if phrase.is_a("most", "least")]
    neighbors = [state.find_neighbor(position, step) for position in superlatives for step in (1, -1)]
    named_metrics = [state.metrics[at] for at in neighbors if at in state.metrics]
    metric = named_metrics[0] if named_metrics else metrics[0]
    if len(metrics) > 1 and not named_metrics:
        state.ambiguities.append(messages.MISSING_RANKING_TARGET)
    if not state.is_compared or not state.has_phrase("change"):
        return metric
    if any(_is_ranked_change(state, position) for position in range(len(state.phrases))):
        return f"{metric}_growth"
    state.ambiguities.append(messages.UNCLEAR_RANKING)
    return metric


def _is_ranked_change(state: RuleState, position: int) -> bool:
    """Return whether a phrase is a change directly at the word that ranks, as in "highest revenue growth".

    A change that "and" joins to a metric may be shown only.
    """
    first = position - 1 if position - 1 in state.metrics else position
    if not state.is_at(position, "change") or (first == position and state.has_neighbor(position, -1, "and", "or")):
        return False
    is_before_order = position + 1 < len(state.phrases) and _is_joined(state, position, position + 1)
    if is_before_order and state.is_at(position + 1, "most", "least", "descending", "ascending"):
        return True
    return first > 0 and state.is_at(first - 1, "most", "least", "group") and _is_joined(state, first - 1, position)


def _is_joined(state: RuleState, first: int, last: int) -> bool:
    """Return whether at most a space is between each two of these phrases, so no comma and no time."""
    pairs = itertools.pairwise(state.phrases[first : last + 1])
    return all(after.start - before.end <= (1 if after.text.isascii() else 0) for before, after in pairs)


def _classify_intent(state: RuleState, is_grouped: bool) -> IntentType:
    if state.is_compared:
        return "trend"
    if state.exclusions:
        return "complex"
    return "dimension" if is_grouped else "basic"
