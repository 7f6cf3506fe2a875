"""The semantic parser: turns a question into a structured intent by rules, without a model."""

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opposable.ask.intent import messages
from opposable.ask.intent.intent import IntentType, OrderBy, StructuredIntent
from opposable.ask.intent.lexicon import build_lexicon, tokenize_stems
from opposable.ask.intent.phrases import split_phrases
from opposable.ask.intent.rule_checks import flag_guesses, flag_unsupported
from opposable.ask.intent.rule_filters import apply_numbers, collect_filters, describes_value
from opposable.ask.intent.rule_state import OPERATORS_BEFORE_NUMBER, ORDER_KINDS, SKIPPED_KINDS, RuleState
from opposable.ask.intent.time_expressions import find_time
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.localized_text import LocalizedText
from opposable.domain.text_normalization import singularize

_MAX_QUESTION_CHARACTERS = 4_000
_COUNT_STAR_PATTERN = re.compile(r"count\s*\(\s*\*\s*\)", re.IGNORECASE)


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
        self._text_dimensions = frozenset(dimension for dimension, texts in values.items() if texts)

    def parse(self, question: str, today: datetime.date) -> ParsedIntent:
        """Parse a question of at most 4,000 characters; relative times count from `today`."""
        if len(question) > _MAX_QUESTION_CHARACTERS:
            return ParsedIntent(StructuredIntent(), ambiguities=(messages.LONG_QUESTION,))
        time = find_time(question, today)
        phrases = split_phrases(question, self._lexicon, time.text)
        time_fields = (time.time, time.text, time.is_each_period, time.ambiguities, time.assumptions)
        state = RuleState(phrases, self.semantics, self._text_dimensions, *time_fields)
        for rule in (_assign_roles, collect_filters, apply_numbers, _collect_groups, flag_unsupported, flag_guesses):
            rule(state)
        return _build_result(state)


def _assign_roles(state: RuleState) -> None:
    """Decide which phrases are metrics and which are dimensions, by the words before a phrase that may be both."""
    for position, phrase in enumerate(state.phrases):
        metrics, dimensions = phrase.get_ids("metric"), phrase.get_ids("dimension")
        is_counted = not dimensions or state.is_counted(position)
        if metrics and (is_counted or not _is_requested_grouping(state, position)):
            state.metrics[position] = metrics[0]
            others = () if is_counted or state.is_count_metric(metrics[0]) else dimensions
            if len(metrics) > 1 or others:
                state.add_several_meanings(position, (*metrics, *others))
        elif dimensions and (count_metric := _find_count_metric(state, position, dimensions[0])):
            state.metrics[position] = count_metric
        elif dimensions:
            state.dimensions[position] = dimensions
            if metrics and state.phrases[position - 1].text.lower() == "per":  # a ratio, or one row of each?
                state.add_several_meanings(position, (*metrics, *dimensions))


def _find_count_metric(state: RuleState, position: int, dimension: str) -> str:
    """Return the metric that counts the rows of a dimension, or "".

    It must be the only one. The dimension must follow "how many", have texts, and have the name of its table: the rows
    of `customers` are customers, not cities.
    """
    named = state.model.dimensions[dimension]
    names = [tokenize_stems(name) for name in (named.id, *named.synonyms)]
    metrics = [metric for metric in state.model.metrics.values() if named.table and metric.table == named.table]
    counts = [metric.id for metric in metrics if _COUNT_STAR_PATTERN.fullmatch(metric.expr.strip())]
    is_row = dimension in state.text_dimensions and tokenize_stems(named.table.rpartition(".")[2]) in names
    return counts[0] if is_row and state.is_counted(position) and len(counts) == 1 else ""


def _is_requested_grouping(state: RuleState, position: int) -> bool:
    """Return whether the words around a dimension ask for one row per value of it."""
    before = state.find_neighbor(position, -1, (*SKIPPED_KINDS, "most", "least"))
    if before is not None and state.phrases[before].number is not None:
        is_requested = not state.has_neighbor(before, -1, *OPERATORS_BEFORE_NUMBER)
    else:
        is_requested = state.is_at(before, "group", "each", "breakdown", "which", "top", "bottom")
    if is_requested or state.has_neighbor(position, -1, "most", "least", skipped_kinds=("of",)):
        return True
    after = state.find_neighbor(position, 1)
    if after is None:
        at = state.find_neighbor(position - 2, -1)  # 超过2次就诊的医生 are groups, 最大订单的客户 is one customer
        is_listed = not state.is_at(position - 2, "metric") or (at is not None and state.phrases[at].number is not None)
        return is_listed and state.is_at(position - 1, "of") and state.phrases[position - 1].text == "的"
    bound = state.find_neighbor(after, 1) if state.is_at(after, "metric") else after
    return state.is_at(after, "breakdown") or (before is None and state.is_at(bound, *OPERATORS_BEFORE_NUMBER))


def _collect_groups(state: RuleState) -> None:
    """Collect the dimensions that rows are grouped by. One next to its own value only says what the value is."""
    filtered = {condition.dimension for condition in state.filters}
    follows_group = False
    for position in sorted({*state.metrics, *state.dimensions}):
        ids = state.dimensions.get(position, ())
        if not ids or position in state.context_positions:
            follows_group = follows_group and bool(ids)
            continue
        is_listed = follows_group and state.has_neighbor(position, -1, "and", "or")
        if not state.metrics and ids[0] in filtered:
            continue
        follows_group = _is_requested_grouping(state, position) or is_listed or not state.metrics
        if follows_group:
            state.groups.append(ids[0])
            if len(ids) > 1:
                state.add_several_meanings(position, ids)
        elif not describes_value(state, position, -1) and not describes_value(state, position, 1):
            state.ambiguities.append(messages.UNCLEAR_GROUPING.format(dimension=ids[0]))
    if state.has_phrase("apart"):
        listed = [condition.dimension for condition in state.filters if isinstance(condition.value, tuple)]
        if len({*state.groups, *listed}) > 1:
            state.ambiguities.append(messages.UNCLEAR_GROUPING.format(dimension=" + ".join(listed or state.groups)))
        state.groups = state.groups or listed


def _build_result(state: RuleState) -> ParsedIntent:
    metrics = tuple(dict.fromkeys(state.metrics.values()))
    groups = tuple(dict.fromkeys(state.groups))
    is_grouped = bool(groups) or state.has_time_groups
    order_by, limit = _build_order(state, metrics, is_grouped)
    intent_type: IntentType = "complex" if state.exclusions else "dimension" if is_grouped else "basic"
    intent = StructuredIntent(
        intent_type="trend" if state.is_compared else intent_type,
        metrics=metrics,
        dimensions=groups,
        time=state.time,
        filters=tuple(state.filters),
        exclusions=tuple(dict.fromkeys(state.exclusions)),
        order_by=order_by,
        limit=limit,
    )
    words = [phrase.text for position, phrase in enumerate(state.phrases) if _is_unmatched(state, position)]
    return ParsedIntent(intent, tuple(words), tuple(dict.fromkeys(state.ambiguities)), tuple(state.assumptions))


def _is_unmatched(state: RuleState, position: int) -> bool:
    """Return whether a phrase is not understood, or a 前, 后 or measure word without its number."""
    phrase, before = state.phrases[position], state.phrases[max(position - 1, 0)]
    if phrase.text in ("前", "后"):
        return position + 1 == len(state.phrases) or state.phrases[position + 1].number is None
    is_measured = before.number is not None or before.is_a("count", "each", "which")
    return phrase.is_unknown or phrase.is_a("unsupported") or (phrase.is_a("measure") and not is_measured)


def _build_order(state: RuleState, metrics: tuple[str, ...], is_grouped: bool) -> tuple[OrderBy | None, int | None]:
    kinds = {kind for kind in ORDER_KINDS if state.has_phrase(kind)}
    if not kinds and state.limit is None:
        return None, None
    if not is_grouped or len(metrics) != 1 or not kinds:
        state.ambiguities.append(messages.MISSING_RANKING_TARGET)
        return None, state.limit
    is_ascending = bool(kinds & {"least", "ascending", "bottom"})
    is_mixed = {"top", "bottom"} <= kinds or {"top", "ascending"} <= kinds
    if kinds == {"sort"} or is_mixed or (is_ascending and kinds & {"most", "descending"}):
        state.ambiguities.append(messages.UNCLEAR_ORDER)
    state.flag_if(state.is_compared, messages.UNCLEAR_RANKING)
    words = [state.phrases[at].text.lower() for at, ids in state.dimensions.items() if ids[0] in state.groups]
    is_plural = any(singularize(word) != word for word in words)
    is_plural = is_plural or any(phrase.text in ("哪些", "哪几个") for phrase in state.phrases)
    is_one_row = bool(kinds & {"most", "least", "top", "bottom"}) and not is_plural
    order_by = OrderBy(column=metrics[0], direction="ASC" if is_ascending else "DESC")
    return order_by, state.limit or (1 if is_one_row else None)
