"""YAML that has a key twice, or is nested too deeply, is not loaded."""

import pytest
import yaml

from opposable.domain.yaml_checks import MAX_NESTING, check_yaml_events


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: 2\na: 3", 3),
        ("a:\n  - x: {y: 1}\n  - x: 1\n    z: [1]\n    'x': 2", 5),
        ("a: b\n? [a, b]\n: c\nb: &x {c: 1}\nd: *x\nb: 1", 6),
        ("200: a\n'200': b", 2),
    ],
)
def test_a_key_that_is_defined_twice_is_reported_with_its_line(text: str, line: int) -> None:
    with pytest.raises(yaml.MarkedYAMLError, match=rf"is defined twice.*\n.*line {line},"):
        check_yaml_events(yaml.parse(text))


def test_keys_may_occur_once_in_each_mapping() -> None:
    text = "a: &a {b: a, c: b}\nb: [{a: 1}, {a: 1}, a, a]\nc:\n  <<: *a\n  <<: *a\n  b: 1\n---\na: a\n"
    check_yaml_events(yaml.parse(text))


def test_deep_nesting_is_rejected() -> None:
    check_yaml_events(yaml.parse("[" * MAX_NESTING + "]" * MAX_NESTING, Loader=yaml.CSafeLoader))
    with pytest.raises(RecursionError):
        check_yaml_events(yaml.parse("[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1), Loader=yaml.CSafeLoader))
