"""Another value than the one known to be wrong."""

import pytest

from opposable.domain.events import Token
from opposable.models.python_protocol.alternative_tokens import instead, towards


def token(text, *others):
    return Token(text, ((text, -0.1), *((word, -3.0 - n) for n, word in enumerate(others))))


@pytest.mark.parametrize(
    ("tokens", "avoid", "other"),
    [
        ((token("下午", "15", "3"), token("三点"), token('")')), "下午三点", "15"),
        ((token("Con", "Gre"), token("ference"), token('")')), "Conference", "Gre"),
        ((token("'"), token("Con", "Conf", "'", " "), token("ference", "cert"), token("'")), "Conference", "'Concert"),
        ((token("Con", "\ufffd", "Bl"), token("ference"), token('"')), "Conference", "Bl"),
        ((token("Con", "Gre"), token("cert"), token('")')), "Conference", ""),
        ((token("Conference", "Gre"), token(" Hall"), token('")')), "Conference", ""),
        ((token("Con"), token("ference"), token('")')), "Conference", ""),
        ((token("5", "6"), token(")")), 5, ""),
        ((), "x", ""),
    ],
)
def test_the_likeliest_beginning_of_another_value_is_taken(tokens, avoid, other):
    assert instead(tokens, {"value": avoid}) == other


def test_the_likeliest_word_towards_one_of_some_values_is_taken():
    words = (("div", -0.1), ("", -0.2), ("a", -1.0), ("b", -2.0))
    assert towards(words, "", ["b.x", "a.y"]) == "a"
    assert towards(words, "b.", ["b.x", "a.y"]) == ""
    assert towards((), "", ["b.x"]) == ""
