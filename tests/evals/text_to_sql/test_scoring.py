"""Results of two queries are compared."""

import pytest

from opposable.evals.text_to_sql.scoring import are_same_rows


@pytest.mark.parametrize(
    ("gold", "actual", "ordered", "same"),
    [
        ([(1, "a")], [(1, "a")], False, True),
        ([(1,), (2,)], [(2,), (1,)], False, True),
        ([(1,), (2,)], [(2,), (1,)], True, False),
        ([(1,), (1,)], [(1,)], False, False),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)], False, False),
        ([(0.333333,)], [(0.33334,)], False, True),
        ([(0.3333,)], [(0.34,)], False, False),
        ([(3,)], [("3",)], False, True),
        ([(None,)], [(None,)], False, True),
        ([(None,)], [(0,)], False, False),
        ([(None,)], [("None",)], False, False),
        ([("a", 1), ("b", 2)], [(1, "a"), (2, "b")], False, True),
        ([("a", 1), ("b", 2)], [(2, "a"), (1, "b")], False, False),
        ([(1, 2), (2, 1)], [(2, 1), (1, 2)], False, True),
        ([(1, 1), (2, 3)], [(1, 1), (3, 2)], True, True),
        ([("行政",)], [("行政",)], False, True),
        ([("行政",)], [("行政管理",)], False, False),
        ([(12345,)], [(12346,)], False, False),
        ([(10_000,)], [(10_000.5,)], False, True),
        ([("NaN", 1)], [("NaN", 1)], False, True),
        ([("Nan",), ("Ann",)], [("Ann",), ("Nan",)], False, True),
        ([("Nan",)], [("nan",)], False, False),
        ([], [], False, True),
        ([], [(1,)], False, False),
        ([(1,)], [(1, 2)], False, False),
    ],
)
def test_rows_are_compared_as_a_multiset_unless_they_are_ordered(gold, actual, ordered, same):
    assert are_same_rows(gold, actual, ordered) is same
