"""Two answerers are compared on the same questions."""

import pytest

from opposable.domain.usage import NO_USAGE
from opposable.evals.text_to_sql.datasets import EvalQuestion
from opposable.evals.text_to_sql.harness import SqlScore, SqlScoreSheet
from opposable.evals.text_to_sql.paired import compare_paired, compare_sheets, compute_mcnemar


@pytest.mark.parametrize(
    ("won", "lost", "p_value"), [(0, 0, 1.0), (1, 0, 1.0), (6, 0, 0.0312), (20, 10, 0.0987), (10, 20, 0.0987)]
)
def test_mcnemar_is_exact_and_two_sided(won, lost, p_value):
    assert compute_mcnemar(won, lost) == p_value


def test_a_comparison_counts_pairs_and_has_an_interval():
    pairs = [(False, True)] * 20 + [(True, False)] * 10 + [(True, True)] * 44 + [(False, False)] * 56
    found = compare_paired(pairs)
    assert (found.won, found.lost, found.both, found.neither) == (20, 10, 44, 56)
    assert found.gain == 7.7
    assert -2 <= found.low <= 1
    assert 14 <= found.high <= 17
    assert found == compare_paired(pairs)
    assert compare_paired([(True, True)] * 5).low == compare_paired([]).high == 0.0


def make_score(set_name: str, database: str, is_correct: bool) -> SqlScore:
    question = EvalQuestion("1", database, "?", "SELECT 1", set_name=set_name)
    return SqlScore(question, "", is_correct, True, "", NO_USAGE, 0.0)


def test_sheets_are_compared_by_set_and_engine():
    questions = [("a", "x.sqlite"), ("a", "x.duckdb"), ("b", "postgresql://h/d")]
    sheets = {
        name: SqlScoreSheet([make_score(*question, right) for question, right in zip(questions, rights, strict=True)])
        for name, rights in {"one prompt": [True, False, False], "team": [True, True, False]}.items()
    }
    rows = compare_sheets(sheets)
    assert [(row["answerer"], row["questions"], row["won"], row["both"]) for row in rows] == [
        ("team", "all", 1, 1),
        ("team", "set a", 1, 1),
        ("team", "engine sqlite", 0, 1),
        ("team", "engine duckdb", 1, 0),
        ("team", "set b", 0, 0),
        ("team", "engine postgres", 0, 0),
    ]
    assert compare_sheets({"team": sheets["team"]}) == []
