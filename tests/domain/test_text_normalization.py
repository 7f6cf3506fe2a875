import pytest

from opposable.domain.text_normalization import (
    compute_edit_distance,
    extract_index_words,
    find_close_names,
    fold_text,
    lowercase_halfwidth,
    normalize_text,
    remove_separators,
    singularize,
    split_bigrams,
    split_camel_case,
    split_identifier,
    unwrap_lines,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  one   line ", "one line"),
        ("a sentence\n  on two lines\n\n\nand a paragraph", "a sentence on two lines\n\nand a paragraph"),
        ("Fields:\n\n  - a\n  - b\n", "Fields:\n\n  - a\n  - b"),
        ("1. one\n2. two", "1. one\n2. two"),
        ("| a | b |\n|---|---|", "| a | b |\n|---|---|"),
        ("Write::\n\n    SELECT a\n    FROM b", "Write::\n\n    SELECT a\n    FROM b"),
        ("Write\n```\na\n\nb\n```", "Write\n```\na\n\nb\n```"),
    ],
)
def test_lines_of_paragraphs_are_joined_and_those_of_lists_and_code_are_not(text, expected):
    assert unwrap_lines(text) == expected


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
def test_identifiers_are_split_into_words(name, words):
    assert split_identifier(name) == words


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ＡＢＣ　１", "abc 1"), ("AC/DC", "ac dc"), ("  A--b  ", "a b"), ("行政（管理）", "行政 管理")],
)
def test_width_case_and_signs_are_normalized(text, expected):
    assert normalize_text(text) == expected


def test_folding_keeps_separators_and_removing_them_keeps_letters_and_digits():
    assert fold_text("Ｓtraße_1") == "strasse_1"
    assert remove_separators("Order-Date (2)") == "orderdate2"


def test_lowercasing_keeps_the_position_of_every_character():
    text = "Ｑ1 İstanbul（ＡＢ）"
    lowered = lowercase_halfwidth(text)
    assert lowered == "q1 İstanbul(ab)"
    assert len(lowered) == len(text)


def test_chinese_text_is_split_into_bigrams():
    assert extract_index_words("abc行政管理 x") == ["abc", "行政", "政管", "管理", "x"]
    assert split_bigrams("行") == ["行"]


def test_camel_case_is_split_at_capitals():
    assert split_camel_case("findHTTPStatus by2") == "find HTTP Status by2"


@pytest.mark.parametrize(
    ("plural", "singular"),
    [("cities", "city"), ("buses", "buse"), ("glass", "glass"), ("boxes", "box"), ("status", "status"), ("bus", "bus")],
)
def test_plurals_lose_their_ending(plural, singular):
    assert singularize(plural) == singular


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ("califronia", "california", 1),
        ("paris", "pariss", 1),
        ("abcd", "abcd", 0),
        ("berlni", "berlin", 1),
        ("madrid", "marrib", 2),
    ],
)
def test_edits_between_two_words_are_counted(first, second, count):
    assert compute_edit_distance(first, second) == count


def test_the_distance_of_different_words_is_their_length():
    assert compute_edit_distance("abcdefghij", "klmnopqrst") == 10


def test_close_names_are_returned_best_first():
    names = ["order_id", "OrderDate", "customer"]
    assert find_close_names("orderdate", names, remove_separators) == ["OrderDate", "order_id"]
    assert find_close_names("zzz", names, remove_separators) == []
