"""Compares two answerers on the same questions."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from opposable.app.models import compute_sign_test
from opposable.evals.text_to_sql.datasets import SEED
from opposable.evals.text_to_sql.harness import SqlScore, SqlScoreSheet

BOOTSTRAP_SAMPLES = 2_000
BASELINE_NAME = "one prompt"


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """How often one answerer is right where a baseline is wrong, and the reverse.

    Attributes:
        won: Questions that only the answerer gets right.
        lost: Questions that only the baseline gets right.
        both: Questions that both get right.
        neither: Questions that none gets right.
        gain: The difference of the accuracies, in percentage points.
        low: The lower end of the 95 % interval of the gain, by bootstrap over the questions.
        high: The upper end.
        p_value: The two-sided exact McNemar test.
    """

    won: int
    lost: int
    both: int
    neither: int
    gain: float
    low: float
    high: float
    p_value: float


def compare_paired(pairs: Sequence[tuple[bool, bool]]) -> PairedComparison:
    """Compare an answerer with a baseline.

    Args:
        pairs: For each question, whether the baseline is right and whether the answerer is.
    """
    counts = {outcome: pairs.count(outcome) for outcome in ((False, True), (True, False), (True, True))}
    won, lost, both = counts.values()
    count = max(1, len(pairs))
    generator = random.Random(SEED)  # noqa: S311 - resampling
    differences = [right - baseline for baseline, right in pairs] or [0]
    gains = sorted(100 * sum(generator.choices(differences, k=count)) / count for _ in range(BOOTSTRAP_SAMPLES))
    low, high = gains[int(0.025 * BOOTSTRAP_SAMPLES)], gains[int(0.975 * BOOTSTRAP_SAMPLES) - 1]
    gain = 100 * (won - lost) / count
    neither = len(pairs) - won - lost - both
    return PairedComparison(
        won, lost, both, neither, round(gain, 1), round(low, 1), round(high, 1), compute_mcnemar(won, lost)
    )


def compute_mcnemar(won: int, lost: int) -> float:
    """Return the two-sided exact p-value of `won` against `lost`."""
    return round(min(1.0, 2 * compute_sign_test(max(won, lost), min(won, lost))), 4)


def compare_sheets(score_sheets: Mapping[str, SqlScoreSheet]) -> list[dict[str, Any]]:
    """Compare every answerer with the baseline: over all questions, by set, and by engine.

    Returns:
        A JSON object per answerer and group; empty without the baseline.
    """
    baseline = score_sheets.get(BASELINE_NAME)
    if baseline is None:
        return []
    rows: list[dict[str, Any]] = []
    for name, sheet in score_sheets.items():
        pairs = list(zip(baseline.scores, sheet.scores, strict=True)) if name != BASELINE_NAME else []
        for group, members in _group_pairs(pairs).items():
            comparison = compare_paired([(first.is_correct, second.is_correct) for first, second in members])
            rows.append({"answerer": name, "baseline": BASELINE_NAME, "questions": group} | asdict(comparison))
    return rows


def _group_pairs(pairs: Sequence[tuple[SqlScore, SqlScore]]) -> dict[str, list[tuple[SqlScore, SqlScore]]]:
    """Group the pairs; a set or an engine of all questions is not listed again."""
    groups: dict[str, list[tuple[SqlScore, SqlScore]]] = {"all": list(pairs)} if pairs else {}
    for pair in pairs:
        for name in (f"set {pair[0].question.set_name}", f"engine {pair[0].question.engine}"):
            groups.setdefault(name, []).append(pair)
    return {name: members for name, members in groups.items() if name == "all" or len(members) < len(pairs)}
