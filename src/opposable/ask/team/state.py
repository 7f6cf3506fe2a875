"""The state of a team while it answers one question."""

import math
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from opposable.domain.answers import TeamTurn
from opposable.domain.language import Language
from opposable.domain.localized_text import localize
from opposable.domain.records import QueryExample
from opposable.domain.usage import NO_USAGE, Usage

TeamMember = Literal["semantic_parser", "sql_generator", "result_evaluator"]
"""The members of a team: one interprets the question, one writes SQL, one runs and corrects it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """SQL that may answer the question.

    Attributes:
        certainty: How certain the semantic parser was, from 0 to 1; None for a model.
    """

    sql: str
    certainty: float | None = None
    source: Literal["semantics", "generator", "correction"] = "generator"


@dataclass(frozen=True, slots=True)
class CandidateOutcome:
    """The outcome of one candidate: its rows, or the problem that stopped it.

    Attributes:
        sql: The SQL that ran, after repairs.
        problem: Why the SQL did not run, "" if it did.
        problem_kind: The problem or suspicion without names and numbers, to recognize repetitions.
        suspicion: Why the model should answer again, "" if it need not.
        corrections: The repairs made before the SQL ran.
        warnings: What the data say against the result.
        empty_reason: Why the result is empty, "" if it is not or if that is unknown.
    """

    candidate: Candidate
    sql: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    truncated: bool = False
    problem: str = ""
    problem_kind: str = ""
    suspicion: str = ""
    corrections: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    empty_reason: str = ""

    @property
    def has_run(self) -> bool:
        """Whether the SQL ran, with or without rows."""
        return not self.problem

    @property
    def is_plausible(self) -> bool:
        """Whether the SQL ran and the model need not answer again."""
        return not self.problem and not self.suspicion


@dataclass(slots=True)
class TeamState:
    """The progress of a team on one question.

    Attributes:
        deadline: The time of the monotonic clock at which the question is given up.
        schema: The schema of the database as text.
        notes: Definitions that concern the question.
        examples: Similar questions whose SQL a person confirmed.
        has_parsed: Whether the semantic parser had its turn.
        pending_candidates: Candidates that have not run yet.
        correction_count: Corrections of the current candidate.
        draft_count: Times the generator was asked for new SQL.
        intent: The question in the ids of the semantic model.
        follow_up: The question as it was asked, if a model without assistance completed it; else "".
        reply_text: A reply of the model without SQL, which is its answer: a question, or why there is no SQL.
    """

    question: str
    language: Language
    deadline: float = math.inf
    schema: str = ""
    notes: list[str] = field(default_factory=list)
    examples: tuple[QueryExample, ...] = ()
    has_parsed: bool = False
    pending_candidates: list[Candidate] = field(default_factory=list)
    outcomes: list[CandidateOutcome] = field(default_factory=list)
    correction_count: int = 0
    draft_count: int = 0
    turns: list[TeamTurn] = field(default_factory=list)
    intent: dict[str, Any] | None = None
    follow_up: str = ""
    reply_text: str = ""
    assumptions: list[str] = field(default_factory=list)
    usage: Usage = NO_USAGE
    model_turn_count: int = 0

    @property
    def remaining_seconds(self) -> float:
        """The seconds until the deadline."""
        return self.deadline - time.monotonic()

    @property
    def last_outcome(self) -> CandidateOutcome | None:
        """The outcome of the last candidate."""
        return self.outcomes[-1] if self.outcomes else None

    @property
    def best_outcome(self) -> CandidateOutcome | None:
        """The outcome to answer with: the first plausible one, else the first that ran."""
        has_run = [outcome for outcome in self.outcomes if outcome.has_run]
        return next((outcome for outcome in has_run if outcome.is_plausible), has_run[0] if has_run else None)

    def has_repeated_problem(self) -> bool:
        """Return whether the last problem occurred before."""
        kinds = [outcome.problem_kind for outcome in self.outcomes]
        return bool(kinds and kinds[-1]) and kinds.count(kinds[-1]) > 1

    def record_turn(self, member: TeamMember, input_text: str, output_text: str, error: str = "") -> None:
        """Record a turn, with texts cut to the length of a history line."""
        texts = [localize(text, self.language) for text in (input_text, output_text, error)]
        self.turns.append(TeamTurn(member, texts[0][:200], texts[1][:300], texts[2][:300]))
