"""The confidence in an answer of a small model, calibrated on recorded answers."""

import math
import re
from collections.abc import Sequence
from typing import Any

from opposable.domain.localized_text import LocalizedText

DOUBT_THRESHOLD = 0.6
"""The confidence below which an answer says what it is unsure of."""

_INTERCEPT, _LENGTH_WEIGHT, _EMPTY_WEIGHT, _EQUAL_ROWS_WEIGHT = 3.49, -0.79, -3.01, -1.68
"""A logistic regression (ridge penalty 1) on 342 answers of the embedded model, 249 of them right, to questions of 20
databases of fold 3 of Spider's training set, 2026-11-23. The length is the logarithm of the words and one more.
"""
_LONG_QUERY = LocalizedText("the SQL is long ({word_count} words)", "SQL 较长（{word_count} 个词）")
_EMPTY_RESULT = LocalizedText("the result is empty", "结果为空")
_EQUAL_ROWS = LocalizedText("some rows are equal", "有相同的行")


def estimate_confidence(sql: str, rows: Sequence[Sequence[Any]]) -> tuple[float, tuple[LocalizedText, ...]]:
    """Return the probability that the result of a query is right, and what is uncertain if it is low."""
    word_count = len(re.findall(r"\w+", sql))
    has_equal_rows = len({str(row) for row in rows}) < len(rows)
    score = _INTERCEPT + _LENGTH_WEIGHT * math.log(1 + word_count)
    score += _EMPTY_WEIGHT * (not rows) + _EQUAL_ROWS_WEIGHT * has_equal_rows
    confidence = round(1 / (1 + math.exp(-score)), 3)
    doubt = _EQUAL_ROWS if has_equal_rows else _LONG_QUERY.format(word_count=word_count) if rows else _EMPTY_RESULT
    return confidence, (doubt,) if confidence < DOUBT_THRESHOLD else ()
