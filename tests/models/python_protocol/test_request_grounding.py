"""The words of a value that a request contains."""

import pytest

from opposable.domain.language import split_words
from opposable.models.python_protocol.request_grounding import get_word_overlap


@pytest.mark.parametrize(
    ("value", "said", "share"),
    [
        ("New York City", "weather in New York", 2 / 3),
        ("CA", "weather in California", 1.0),
        ("NY", "weather in New York", 1.0),
        ("District 2", "in district two", 1.0),
        ("Paris", "tell me a joke", 0.0),
        ("Shanghai", "上海的天气", None),
        ("...", "anything", None),
    ],
)
def test_the_share_of_the_words_that_were_said(value, said, share):
    assert get_word_overlap(value, split_words(said)) == (None if share is None else pytest.approx(share))
