"""The existing name that an unknown name means."""

import pytest

from opposable.sql.name_similarity import find_sure_match, suggest_names


@pytest.mark.parametrize(
    ("name", "names", "sure"),
    [
        ("custmer", ["customer", "order"], "customer"),
        ("CustomerID", ["customer_id", "customer"], "customer_id"),
        ("行政", ["行政管理", "研发"], "行政管理"),
        ("部们", ["部门编号", "预算"], None),
        ("xyz", ["name", "city"], None),
        ("x", [], None),
    ],
)
def test_the_most_similar_name_is_used_only_without_a_rival(name, names, sure):
    assert find_sure_match(name, names) == sure


def test_suggestions_are_ordered_by_similarity():
    assert suggest_names("naem", ["city", "name", "names", "nation"])[0] == "name"
