"""Strict JSON text: keys that a file has twice, deep nesting, and values that encoders reject."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from opposable.domain.errors import BadInput
from opposable.domain.json_text import (
    check_unique_keys,
    dump_json,
    parse_reply_json,
    preview_json,
    split_json_lines,
    to_portable_json,
)


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


def nest(depth: int, value: Any) -> Any:
    """Return a value in this number of objects and lists."""
    for level in range(depth):
        value = {"a": value, "b": "é"} if level % 2 else [1.5, value]
    return value


@pytest.mark.parametrize("depth", [200, 300, 900, 1000, 5000])
def test_values_of_any_depth_are_serialized(depth: int) -> None:
    text = dump_json(nest(depth, 2**70), default=str).decode()
    compact = text.replace(" ", "")
    assert compact.startswith('{"a":[1.5,{"a":[1.5,{"a":')
    assert compact.endswith('}],"b":"é"}],"b":"é"}')
    assert (compact.count("["), compact.count("{"), compact.count(str(2**70))) == (depth // 2, depth // 2, 1)
    assert len(preview_json(nest(depth, 1), 50)) <= 60


def test_deep_values_are_serialized_as_others_are() -> None:
    value = {"b": [None, True, '"\ud800é', (), {}], "a": 1e-7, "n": [2**70, float("nan")], "d": Decimal("1.5"), 3: 0}
    deep = dump_json(nest(1000, value), default=str).decode()
    start = deep.index('{"b"')
    flat = '{"b": [null, true, "\\"?é", [], {}], "a": 1e-07, "n": [1180591620717411303424, null], "d": "1.5", "3": 0}'
    assert deep[start : start + len(flat)] == flat
    assert dump_json(value, default=str).decode() == flat
    assert json.loads(dump_json(nest(500, {"b": 1, "a": 2}), sort_keys=True)) == nest(500, {"a": 2, "b": 1})


def test_circular_values_and_unknown_types_are_errors() -> None:
    circle: list[Any] = []
    circle.append(nest(2000, circle))
    with pytest.raises(ValueError, match="Circular"):
        dump_json(circle)
    with pytest.raises(TypeError):
        dump_json(nest(2000, Decimal(1)))


def test_replies_that_are_nested_too_deeply_are_not_json() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_reply_json(b"[" * 5000 + b"]" * 5000)


@pytest.mark.parametrize(
    ("text", "portable"),
    [
        (r'{"a": "\ud83d\ude00 \\ud83d \ud83d\n"}', r'{"a": "\ud83d\ude00 \\ud83d ?\n"}'),
        (r'{"\ude00": "\uD83D\uD83D\uDE00"}', r'{"?": "?\uD83D\uDE00"}'),
        ('[[[1, "]"], 2], {"a": {"b": [3]}}]', '[["[nested too deeply]", 2], {"a": "[nested too deeply]"}]'),
        ("hello ]} [", "hello ]} ["),
        ('{"a": "\\"', '{"a": "\\"'),
    ],
)
def test_json_for_strict_parsers_has_no_lone_surrogates_and_no_deep_nesting(text: str, portable: str) -> None:
    assert to_portable_json(text, 2) == portable
