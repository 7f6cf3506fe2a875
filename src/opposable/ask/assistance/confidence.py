"""The confidence in an answer of a small model, calibrated on recorded answers."""

import json
import math
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from opposable.ask.assistance import messages
from opposable.domain.localized_text import LocalizedText

DOUBT_THRESHOLD = 0.6
"""The confidence below which an answer says what it is unsure of."""

_JOIN = re.compile(r"\bjoin\b", re.IGNORECASE)


def estimate_confidence(sql: str, rows: Sequence[Sequence[Any]]) -> tuple[float, tuple[LocalizedText, ...]]:
    """Estimate how likely the result of a query is right.

    Args:
        sql: The query that ran.
        rows: Its rows.

    Returns:
        The probability, and what is uncertain if it is low.
    """
    calibration = _load_calibration()
    join_count = len(_JOIN.findall(sql))
    weights = calibration["weights"]
    score = calibration["intercept"] + weights["joins"] * join_count + weights["is_empty"] * (not rows)
    confidence = round(1 / (1 + math.exp(-score)), 3)
    doubts = [messages.many_joins(join_count)] if join_count else []
    doubts += [] if rows else [messages.EMPTY_RESULT]
    return confidence, tuple(doubts) if confidence < DOUBT_THRESHOLD else ()


@cache
def _load_calibration() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(files(__package__).joinpath("confidence.json").read_text(encoding="utf-8"))
    return data
