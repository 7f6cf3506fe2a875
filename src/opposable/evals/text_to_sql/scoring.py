"""Compares the results of two queries."""

import contextlib
import math
from collections.abc import Sequence
from typing import Any

NUMBER_TOLERANCE = 1e-4

Row = Sequence[Any]


def are_same_rows(gold_rows: Sequence[Row], actual_rows: Sequence[Row], is_ordered: bool) -> bool:
    """Return whether two results have the same rows.

    Numbers are compared to 1e-4, whole ones exactly. Column names are ignored, and the columns may be in another order.

    Args:
        gold_rows: The expected rows.
        actual_rows: The rows to compare.
        is_ordered: Whether the order of the rows matters.
    """
    if len(gold_rows) != len(actual_rows) or (gold_rows and len(gold_rows[0]) != len(actual_rows[0])):
        return False
    if not gold_rows:
        return True
    return any(
        _are_equal_rows(gold_rows, [[row[index] for index in order] for row in actual_rows], is_ordered)
        for order in _find_column_orders(gold_rows, actual_rows)
    )


def _are_equal_rows(gold_rows: Sequence[Row], actual_rows: Sequence[Row], is_ordered: bool) -> bool:
    if not is_ordered:
        gold_rows, actual_rows = sorted(gold_rows, key=_make_sort_key), sorted(actual_rows, key=_make_sort_key)
    return all(
        _are_equal_values(a, b)
        for left, right in zip(gold_rows, actual_rows, strict=True)
        for a, b in zip(left, right, strict=True)
    )


def _find_column_orders(gold_rows: Sequence[Row], actual_rows: Sequence[Row]) -> list[list[int]]:
    """Return at most 120 column orders of `actual_rows` that may match, the unchanged order first."""
    width = len(gold_rows[0])
    orders: list[list[int]] = [[]]
    actual_columns = [sorted(_make_sort_key([row[index]]) for row in actual_rows) for index in range(width)]
    for column in range(width):
        gold_column = sorted(_make_sort_key([row[column]]) for row in gold_rows)
        matching = [index for index in range(width) if _are_close(actual_columns[index], gold_column)]
        orders = [[*order, index] for order in orders for index in matching if index not in order][:120]
    return orders


def _are_close(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return all(_are_equal_values(a[0][1], b[0][1]) and a[0][0] == b[0][0] for a, b in zip(left, right, strict=True))


def _are_equal_values(first: Any, second: Any) -> bool:
    if isinstance(first, int) and isinstance(second, int):
        return first == second
    if isinstance(first, bool) or isinstance(second, bool):
        return _parse_number(first) == _parse_number(second)
    left, right = _parse_number(first), _parse_number(second)
    if left is not None and right is not None:
        return math.isclose(left, right, rel_tol=NUMBER_TOLERANCE, abs_tol=NUMBER_TOLERANCE)
    return str(first) == str(second)


def _parse_number(value: Any) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return None if math.isnan(number := float(value)) else number  # NaN, and people whose name is Nan
    return None


def _make_sort_key(row: Row) -> list[tuple[int, Any]]:
    """Return a sort key: NULL first, then numbers, then text."""
    key: list[tuple[int, Any]] = []
    for value in row:
        number = _parse_number(value)
        if value is None:
            key.append((0, 0))
        elif number is not None:
            key.append((1, round(number, 3) + 0.0))
        else:
            key.append((2, str(value)))
    return key
