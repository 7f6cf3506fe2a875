"""Text as it is compared."""

import pytest

from opposable.ask.catalog.text_normalization import (
    extract_index_words,
    find_longest_common_substring,
    format_prompt_value,
    normalize_text,
    singularize,
    split_name,
)
from opposable.ask.catalog.value_matching import compute_edit_distance


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("customer_orders", ["customer", "order"]),
        ("CustomerOrders", ["customer", "order"]),
        ("HTTPStatus2", ["http", "status", "2"]),
        ("部门名称", ["部门", "门名", "名称"]),
        ("t_部门", ["t", "部门"]),
        ("", []),
    ],
)
def test_names_are_split_into_words(name, words):
    assert split_name(name) == words


@pytest.mark.parametrize(
    ("text", "same"), [("ＡＢＣ　１", "abc 1"), ("AC/DC", "ac dc"), ("  A--b  ", "a b"), ("行政（管理）", "行政 管理")]
)
def test_width_case_and_signs_make_no_difference(text, same):
    assert normalize_text(text) == same


def test_chinese_is_found_by_pairs_of_characters():
    assert extract_index_words("abc行政管理 x") == ["abc", "行政", "政管", "管理", "x"]


@pytest.mark.parametrize(
    ("plural", "one"), [("cities", "city"), ("buses", "buse"), ("glass", "glass"), ("boxes", "box")]
)
def test_plurals_lose_their_ending(plural, one):
    assert singularize(plural) == one


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        ("califronia", "california", 1),
        ("paris", "pariss", 1),
        ("abcd", "abcd", 0),
        ("berlni", "berlin", 1),
        ("madrid", "marrib", 2),
    ],
)
def test_wrong_letters_are_counted(one, other, count):
    assert compute_edit_distance(one, other, 1) == count


def test_the_longest_common_part_is_found():
    assert find_longest_common_substring("行政部门的预算", "总行政部") == "行政部"


@pytest.mark.parametrize(
    ("text", "told"),
    [("it's", "'it''s'"), ("a\nb\x00\u200b", "'a b'"), ("x" * 90, "'" + "x" * 39 + "…'"), ("", "''")],
)
def test_values_are_shown_on_one_line_in_quotes(text, told):
    assert format_prompt_value(text) == told
