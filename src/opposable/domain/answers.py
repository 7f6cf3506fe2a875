"""An answer to a question about data."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class DataAnswer:
    """The answer to a question about data.

    Attributes:
        text: A sentence in the language of the question; never empty.
        sql: The query that ran, "" where none could.
        columns: Names of the result columns.
        rows: The result rows.
        truncated: Whether the query has more rows.
        chart: A chart (`type`, `x`, `y`) where the rows fit one.
        assumptions: Assumptions, in the language of the question.
        corrections: Corrections of the query, in the language of the question.
        confidence: Between 0 and 1.
        warnings: What the data say against the answer, in the language of the question.
        error: Why there is no answer, "" if there is one.
    """

    text: str
    sql: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    truncated: bool = False
    chart: dict[str, Any] | None = None
    assumptions: tuple[str, ...] = ()
    corrections: tuple[str, ...] = ()
    confidence: float = 0.0
    warnings: tuple[str, ...] = ()
    error: str = ""

    @property
    def success(self) -> bool:
        """Whether there is an answer."""
        return not self.error
