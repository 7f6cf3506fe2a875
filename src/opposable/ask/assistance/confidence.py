"""The confidence in an answer of a small model, calibrated on recorded answers."""

import math
import re
from collections.abc import Sequence
from typing import Any

from opposable.ask.assistance import messages
from opposable.domain.localized_text import LocalizedText

DOUBT_THRESHOLD = 0.6
"""The confidence below which an answer says what it is unsure of."""

_INTERCEPT, _JOIN_WEIGHT, _EMPTY_WEIGHT = 2.222, -1.082, -1.736
"""A logistic regression on 65 answers of the embedded model to questions of 8 databases of Spider's training set, 2026-11-22."""

_JOIN = re.compile(r"\bjoin\b", re.IGNORECASE)


def estimate_confidence(sql: str, rows: Sequence[Sequence[Any]]) -> tuple[float, tuple[LocalizedText, ...]]:
    """Return the probability that the result of a query is right, and what is uncertain if it is low."""
    join_count = len(_JOIN.findall(sql))
    score = _INTERCEPT + _JOIN_WEIGHT * join_count + _EMPTY_WEIGHT * (not rows)
    confidence = round(1 / (1 + math.exp(-score)), 3)
    doubts = [messages.many_joins(join_count)] if join_count else []
    doubts += [] if rows else [messages.EMPTY_RESULT]
    return confidence, tuple(doubts) if confidence < DOUBT_THRESHOLD else ()
