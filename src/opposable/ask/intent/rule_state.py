"""The state that the rules of the intent parser read and extend."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from opposable.ask.intent.intent import IntentFilter, Operator, TimeIntent
from opposable.ask.intent.lexicon import MeaningKind
from opposable.ask.intent.messages import SEVERAL_MEANINGS
from opposable.ask.intent.phrases import Phrase
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.localized_text import LocalizedText, join_localized

Kinds = tuple[MeaningKind, ...]
OPERATORS_BEFORE_NUMBER: dict[MeaningKind, Operator] = {"more": ">", "at_least": ">=", "less": "<", "at_most": "<="}
OPERATORS_AFTER_NUMBER: dict[MeaningKind, Operator] = {"or_more": ">=", "or_less": "<="}
BOUND_KINDS: Kinds = (*OPERATORS_BEFORE_NUMBER, *OPERATORS_AFTER_NUMBER)
SKIPPED_KINDS: Kinds = ("stop", "of", "in", "with", "show", "measure", "change", "compare", "total", "sort")
"""Kinds of phrases that are skipped in the search for a neighbor."""
ORDER_KINDS: Kinds = ("most", "least", "descending", "ascending", "sort", "top", "bottom")
QUANTITY_WORDS = ("most", "fewest", "least", "最多", "最少")
"""Superlatives that count what follows: the best customers are ranked, the most customers counted."""
_EXPLICIT_COUNT_PATTERN = re.compile(r"\b(number|count|total)\b|[数量总]")


@dataclass(slots=True)
class RuleState:
    """The phrases of a question and what the rules have concluded from them.

    Positions are indexes into `phrases`. `metrics` holds the ids of the phrases that are metrics by position,
    `dimensions` all ids that a dimension may mean, `groups` ids. Phrases at `context_positions` are dimensions that
    only describe a bound. `remaining_text` is the question with the characters of the time blank. `is_each_period`
    says that it asks "by" or "per" period. `text_dimensions` have texts as values, which no number bounds.
    """

    phrases: list[Phrase]
    model: SemanticModel
    text_dimensions: frozenset[str]
    time: TimeIntent | None
    remaining_text: str
    is_each_period: bool
    ambiguities: list[LocalizedText]
    assumptions: list[LocalizedText]
    metrics: dict[int, str] = field(default_factory=dict)
    dimensions: dict[int, tuple[str, ...]] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)
    context_positions: list[int] = field(default_factory=list)
    filters: list[IntentFilter] = field(default_factory=list)
    exclusions: list[str] = field(default_factory=list)
    limit: int | None = None

    @property
    def is_compared(self) -> bool:
        """Whether the question compares a period with the one before."""
        return self.time is not None and self.time.comparison in ("yoy", "qoq", "mom")

    @property
    def has_time_groups(self) -> bool:
        """Whether the question asks for one row per period."""
        return self.time is not None and self.time.grain is not None

    def get_value_dimensions(self, position: int | None) -> set[str]:
        """Return the dimensions whose value the phrase at `position` may be, if there is one."""
        phrases = [] if position is None else self.phrases[position : position + 1]
        return {ref for phrase in phrases for ref in phrase.get_ids("value")}

    def flag_if(self, is_unclear: object, ambiguity: LocalizedText) -> None:
        """Report an ambiguity if `is_unclear` is true."""
        self.ambiguities += [ambiguity] if is_unclear else []

    def add_several_meanings(self, position: int, ids: Sequence[str]) -> None:
        """Report a phrase that may mean one of several terms."""
        meanings = join_localized(ids, " or ", " 或 ")
        self.ambiguities.append(SEVERAL_MEANINGS.format(phrase=self.phrases[position].text, meanings=meanings))

    def is_counted(self, position: int) -> bool:
        """Return whether a phrase follows "how many", "most" without a metric, or a "total" that sums no other metric."""
        before = self.phrases[position - 1].text.lower() if position else ""
        others = (phrase for at, phrase in enumerate(self.phrases) if at != position)
        if before in QUANTITY_WORDS and not any(other.is_a("metric") for other in others):
            return True
        if self.is_at(position - 1, "total") and not self.has_neighbor(position, 1, "metric"):
            return True
        return self.has_neighbor(position, -1, "count", skipped_kinds=(*SKIPPED_KINDS, "value", "filter"))

    def is_count_metric(self, ref: str) -> bool:
        """Return whether a metric counts rows or values, so that a group without rows is missing and not 0."""
        return ref in self.model.metrics and bool(re.match(r"\s*count\b", self.model.metrics[ref].expr, re.IGNORECASE))

    def is_loose_count(self, position: int) -> bool:
        """Return whether a count has the name of what it counts: "orders", not "number of orders" or 订单数."""
        before = self.phrases[position - 1].text if self.is_at(position - 1, "count", "total") else ""
        text = f"{before} {self.phrases[position].text}".lower()
        return self.is_count_metric(self.metrics[position]) and not _EXPLICIT_COUNT_PATTERN.search(text)

    def find_neighbor(self, position: int, step: int, skipped_kinds: Kinds = SKIPPED_KINDS) -> int | None:
        """Return the position of the nearest phrase before (-1) or after (1) that is not of `skipped_kinds`."""
        positions = range(position + step, len(self.phrases) if step > 0 else -1, step)
        return next((at for at in positions if not self.phrases[at].is_a(*skipped_kinds)), None)

    def has_neighbor(self, position: int, step: int, *kinds: MeaningKind, skipped_kinds: Kinds = SKIPPED_KINDS) -> bool:
        """Return whether the nearest phrase in a direction may be one of `kinds`."""
        return self.is_at(self.find_neighbor(position, step, skipped_kinds), *kinds)

    def has_phrase(self, *kinds: MeaningKind) -> bool:
        """Return whether any phrase may be one of `kinds`."""
        return any(phrase.is_a(*kinds) for phrase in self.phrases)

    def is_at(self, position: int | None, *kinds: MeaningKind) -> bool:
        """Return whether there is a phrase at `position` that may be one of `kinds`."""
        return position is not None and 0 <= position < len(self.phrases) and self.phrases[position].is_a(*kinds)
