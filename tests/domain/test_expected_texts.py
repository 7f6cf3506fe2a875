"""Answers contain what is expected as whole words and numbers."""

import pytest

from opposable.domain.expected_texts import contains_expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The capital is **Paris**.", ["paris"]),
        ("It costs $1,234.50 in total.", ["1234.50"]),
        ("It costs $1,234.50 in total.", ["1234.5"]),
        ("It costs 1200.00.", ["1200"]),
        ("首都是北京市。", ["北京"]),
        ("Ｔｏｔａｌ：４２", ["total", "42"]),
        ("New\n  York", ["new york"]),
        ("between 3-5 days", ["5"]),
        ("-5 degrees", ["-5"]),
        ("A-17 was cancelled", ["A-17"]),
        ("(a+b)*2", ["(a+b)*2"]),
    ],
)
def test_the_answer_contains_what_is_expected(answer, expected):
    assert contains_expected(answer, expected)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("", ["42"]),
        ("It is 142.", ["42"]),
        ("It is 42.5.", ["42"]),
        ("It is 1.42.", ["42"]),
        ("It is 42.05.", ["42"]),
        ("It is 42.0.1.", ["42"]),
        ("It is 4.205.", ["4.2"]),
        ("It is 10.", ["1"]),
        ("It is -42.", ["42"]),
        ("It is 42,000.", ["42"]),
        ("a comparison", ["paris"]),
        ("Paris", ["paris", "rome"]),
    ],
)
def test_a_part_of_a_word_or_number_is_not_enough(answer, expected):
    assert not contains_expected(answer, expected)
