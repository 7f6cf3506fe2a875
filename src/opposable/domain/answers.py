"""An answer to a question about data."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class QueryCandidate:
    """SQL that was considered for an answer.

    Attributes:
        sql: The SQL as it was written.
        reason: What it reads, filters and computes, in the language of the question.
        source: Who wrote it: "semantics" (compiled from a semantic model), "generator" or "correction".
        diagnosis: What the database or the data say against it, "" for nothing.
        is_chosen: Whether the answer is its result.
    """

    sql: str
    reason: str
    source: str
    diagnosis: str = ""
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class TeamTurn:
    """One turn of a member of the team, with texts cut to a line; `error` is "" if it succeeded."""

    member: str
    input_text: str
    output_text: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class DataAnswer:
    """The answer to a question about data.

    Attributes:
        text: A sentence in the language of the question; never empty.
        sql: The query that ran, "" where none could.
        truncated: Whether the query has more rows.
        chart: A chart (`type`, `x`, `y`) where the rows fit one.
        assumptions: Assumptions, in the language of the question.
        corrections: Corrections of the query, in the language of the question.
        confidence: Between 0 and 1; None if it is not known.
        warnings: What the data say against the answer, in the language of the question.
        error: Why there is no answer, "" if there is one.
        doubts: What the answer is unsure of if its confidence is low, in the language of the question.
        candidates: The SQL that was considered, in order.
        intent: The question in the ids of a semantic model, None without one.
    """

    text: str
    sql: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    truncated: bool = False
    chart: dict[str, Any] | None = None
    assumptions: tuple[str, ...] = ()
    corrections: tuple[str, ...] = ()
    confidence: float | None = None
    warnings: tuple[str, ...] = ()
    error: str = ""
    doubts: tuple[str, ...] = ()
    candidates: tuple[QueryCandidate, ...] = ()
    intent: dict[str, Any] | None = None
    history: tuple[TeamTurn, ...] = ()

    @property
    def success(self) -> bool:
        """Whether there is an answer."""
        return not self.error
