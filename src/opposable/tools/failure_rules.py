"""Decides by a spec's `failure_when` whether a result is a failure."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson

from opposable.domain.json_pointer import get_part

NO_RULES: Mapping[str, Any] = {}
"""The rules of a tool whose results are never failures."""


def is_failure(result: Any, rules: Mapping[str, Any]) -> bool:
    """Return whether any rule matches a result. A missing field counts as null, and a text is read as JSON if it is.

    The rules are the spec's `failure_when`: JSON pointers with the value or values of a failure, or `{"not": …}` with
    those of a success.
    """
    if not rules:
        return False
    if isinstance(result, str):
        with suppress(orjson.JSONDecodeError):
            result = orjson.loads(result)
    return any(_matches(_get_at(result, pointer), expected) for pointer, expected in rules.items())


def _matches(value: Any, expected: Any) -> bool:
    if isinstance(expected, Mapping):
        return not _matches(value, expected["not"])
    choices = expected if isinstance(expected, list | tuple) else [expected]
    # In Python, False equals 0.
    return any(value == choice and isinstance(value, bool) == isinstance(choice, bool) for choice in choices)


def _get_at(value: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer, None if it is missing. `status` is read as `/status`."""
    try:
        return get_part(value, pointer.removeprefix("/").split("/"))
    except LookupError:
        return None
