"""The existing names that an unknown name may mean."""

import pytest

from opposable.sql.name_similarity import suggest_names


@pytest.mark.parametrize(
    ("name", "names", "first"),
    [
        ("naem", ["city", "name", "names", "nation"], "name"),
        ("CustomerID", ["customer", "customer_id"], "customer_id"),
        ("行政", ["研发", "行政管理"], "行政管理"),
    ],
)
def test_suggestions_are_ordered_by_similarity(name, names, first):
    assert suggest_names(name, names)[0] == first


def test_names_without_common_letters_are_not_suggested():
    assert suggest_names("xyz", ["name", "city"]) == suggest_names("x", []) == ()
