"""Whether two results of a query are the same."""

import math
from collections.abc import Sequence
from typing import Any

TOLERANCE = 1e-4

Row = Sequence[Any]


def same_rows(gold: Sequence[Row], given: Sequence[Row], ordered: bool) -> bool:
    """Whether the rows are the same: as a multiset, or in order where `ordered`; numbers to 1e-4.

    Columns may stand in another order, the same for all rows; their names do not matter.
    """
    if len(gold) != len(given) or (gold and len(gold[0]) != len(given[0])):
        return False
    if not gold:
        return True
    return any(_same(gold, [[row[at] for at in order] for row in given], ordered) for order in _orders(gold, given))


def _same(gold: Sequence[Row], given: Sequence[Row], ordered: bool) -> bool:
    if not ordered:
        gold, given = sorted(gold, key=_key), sorted(given, key=_key)
    return all(_alike(a, b) for left, right in zip(gold, given, strict=True) for a, b in zip(left, right, strict=True))


def _orders(gold: Sequence[Row], given: Sequence[Row]) -> list[list[int]]:
    """The orders of the columns of `given` that might make it `gold`: the one it has first; at most 120."""
    width = len(gold[0])
    orders: list[list[int]] = [[]]
    bags = [sorted(_key([row[at]]) for row in given) for at in range(width)]
    for column in range(width):
        wanted = sorted(_key([row[column]]) for row in gold)
        fitting = [at for at in range(width) if _near(bags[at], wanted)]
        orders = [[*order, at] for order in orders for at in fitting if at not in order][:120]
    return orders


def _near(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return all(_alike(a[0][1], b[0][1]) and a[0][0] == b[0][0] for a, b in zip(left, right, strict=True))


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return _number(one) == _number(other)
    left, right = _number(one), _number(other)
    if left is not None and right is not None:
        return math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return str(one) == str(other)


def _number(value: Any) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return None


def _key(row: Row) -> list[tuple[int, Any]]:
    """What rows are sorted by: nothing, then numbers, then text."""
    key: list[tuple[int, Any]] = []
    for value in row:
        number = _number(value)
        if value is None:
            key.append((0, 0))
        elif number is not None:
            key.append((1, round(number, 3) + 0.0))
        else:
            key.append((2, str(value)))
    return key
