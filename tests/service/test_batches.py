"""Files of tasks are checked line by line."""

import pytest

from opposable.domain.batches import BatchTask
from opposable.domain.errors import BadInput
from opposable.service.batches import parse_tasks


def test_tasks_are_read_from_json_lines():
    lines = b'{"id": "a", "task": "one"}\n\n{"id": 2, "task": "two", "note": "ignored"}'.splitlines()
    assert parse_tasks(lines) == [BatchTask("a", "one"), BatchTask("2", "two")]


@pytest.mark.parametrize(
    ("expected", "texts"),
    [
        ('"Paris"', ("Paris",)),
        ("42", ("42",)),
        ("42.0", ("42",)),
        ('["Paris", 2.5]', ("Paris", "2.5")),
        ("null", ()),
        ("[]", ()),
    ],
)
def test_a_task_of_an_evaluation_set_says_what_is_expected(expected, texts):
    [task] = parse_tasks([f'{{"id": "a", "task": "x", "expected": {expected}}}'])
    assert task.expected == texts


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "There are no tasks"),
        (["{"], "Line 1 is not JSON"),
        (['{"id": "a", "task": "x"}', "[]"], r"Line 2 is not a task: \[\]"),
        (['{"task": "x"}'], "Line 1 is not a task"),
        (['{"id": "a", "task": " "}'], "Line 1 is not a task"),
        (['{"id": "a", "task": "x"}', '{"id": "a", "task": "y"}'], "The id 'a' occurs 2 times"),
        (['{"id": "a", "task": "x", "expected": {"city": "Paris"}}'], "Line 1: `expected` is"),
        (['{"id": "a", "task": "x", "expected": [" "]}'], "Line 1: `expected` is"),
    ],
)
def test_a_wrong_line_is_reported(lines, reason):
    with pytest.raises(BadInput, match=reason):
        parse_tasks(lines)
