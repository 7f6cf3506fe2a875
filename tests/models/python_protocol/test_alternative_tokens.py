"""Another value than the one known to be wrong."""

import pytest

from opposable.domain.events import Token
from opposable.models.python_protocol.alternative_tokens import choose_next_token, get_alternative_prefix


def build_token(text, *others):
    return Token(text, ((text, -0.1), *((word, -3.0 - n) for n, word in enumerate(others))))


@pytest.mark.parametrize(
    ("tokens", "avoid", "other"),
    [
        ((build_token("下午", "15", "3"), build_token("三点"), build_token('")')), "下午三点", "15"),
        ((build_token("Con", "Gre"), build_token("ference"), build_token('")')), "Conference", "Gre"),
        (
            (build_token("'"), build_token("Con", "Conf", "'", " "), build_token("ference", "cert"), build_token("'")),
            "Conference",
            "'Concert",
        ),
        ((build_token("Con", "\ufffd", "Bl"), build_token("ference"), build_token('"')), "Conference", "Bl"),
        ((build_token("Con", "Gre"), build_token("cert"), build_token('")')), "Conference", ""),
        ((build_token("Conference", "Gre"), build_token(" Hall"), build_token('")')), "Conference", ""),
        ((build_token("Con"), build_token("ference"), build_token('")')), "Conference", ""),
        ((build_token("5", "6"), build_token(")")), 5, ""),
        ((), "x", ""),
    ],
)
def test_the_likeliest_beginning_of_another_value_is_taken(tokens, avoid, other):
    assert get_alternative_prefix(tokens, {"value": avoid}) == other


def test_the_likeliest_word_towards_one_of_some_values_is_taken():
    words = (("div", -0.1), ("", -0.2), ("a", -1.0), ("b", -2.0))
    assert choose_next_token(words, "", ["b.x", "a.y"]) == "a"
    assert choose_next_token(words, "b.", ["b.x", "a.y"]) == ""
    assert choose_next_token((), "", ["b.x"]) == ""
