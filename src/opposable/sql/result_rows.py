"""Rows of an engine as bounded JSON rows."""

from collections.abc import Sequence
from typing import Any

from opposable.sql.database import Limits, Rows
from opposable.sql.json_values import cut_cell, json_value


def rows_of(columns: tuple[str, ...], found: Sequence[Sequence[Any]], limits: Limits, seconds: float) -> Rows:
    """The first `limits.rows` of `found` with every cell cut to its limit; `found` holds one more when there are."""
    cut = 0
    rows: list[tuple[Any, ...]] = []
    for row in found[: limits.rows]:
        cells = [cut_cell(json_value(value), limits.cell_characters) for value in row]
        cut += sum(was_cut for _, was_cut in cells)
        rows.append(tuple(value for value, _ in cells))
    return Rows(columns, tuple(rows), len(found) > limits.rows, cut, round(seconds, 4))
