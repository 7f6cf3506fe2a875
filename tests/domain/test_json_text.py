"""A key that a JSON file has twice is an error with its line."""

from pathlib import Path

import pytest

from opposable.domain.errors import BadInput
from opposable.domain.json_text import check_unique_keys, split_json_lines


@pytest.mark.parametrize(
    ("raw", "line", "key"),
    [
        (b'{"a": 1,\n "b": {"a": 2},\n "a" : 3}', 3, "a"),
        (b'\xef\xbb\xbf{"a": 1, "a": 2}', 1, "a"),
        (rb'{"a": "}\\\"{", "b": "a\":", "\u0061": 1}', 1, "a"),
        ('[{}, {"x": [{"键": {}, "键": []}]}]'.encode(), 1, "键"),
    ],
)
def test_a_key_that_an_object_has_twice_is_an_error(raw: bytes, line: int, key: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_unique_keys(raw, "a.json")
    assert str(caught.value) == f"a.json, line {line}: {key} is defined twice: remove one of them."


@pytest.mark.parametrize(
    "raw",
    [b'[{"a": 1}, {"a": "a"}]', b'{"x": ["a", "a"], "a": {"a": [{"a": "\\"a\\":"}]}}', b'"a"', b"a: 1", b"}", b""],
)
def test_other_texts_are_left_to_their_parser(raw: bytes) -> None:
    check_unique_keys(raw, "a.json")


def test_a_line_with_a_key_twice_is_an_error() -> None:
    with pytest.raises(BadInput, match=r"^tasks.jsonl, line 2: id is defined twice: remove one of them\.$"):
        split_json_lines(b'{"id": 1}\n{"id": 2, "id": 3}\n', Path("tasks.jsonl"))
