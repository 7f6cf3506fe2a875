"""What the team knows while it works on one question."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from opposable.domain.language import Language
from opposable.domain.usage import NO_USAGE, Usage

TeamMember = Literal["semantic_parser", "sql_generator", "result_evaluator"]
"""Who can be sent: the one who reads the question, who writes SQL, who runs and mends it."""

TeamAction = Literal["semantic_parser", "sql_generator", "result_evaluator", "finish", "give_up"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """SQL that may answer the question, why it is thought to, and how sure its writer was (0 to 1; None: not known)."""

    sql: str
    reason: str
    certainty: float | None = None
    source: Literal["semantics", "generator", "correction"] = "generator"

    @property
    def weight(self) -> float:
        """How sure its writer was, a half where that is not known."""
        return 0.5 if self.certainty is None else self.certainty


@dataclass(frozen=True, slots=True)
class CandidateOutcome:
    """What came of one candidate: rows, or the problem that stopped it; `kind` folds problems that are alike.

    `suspicion` says what about rows that came makes them doubtful, "" for nothing.
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

    @property
    def has_run(self) -> bool:
        """Whether rows came, or none where none fit."""
        return not self.problem

    @property
    def is_plausible(self) -> bool:
        """Whether it ran and nothing about it is doubtful."""
        return not self.problem and not self.suspicion


@dataclass(frozen=True, slots=True)
class TeamTurn:
    """One member's turn, for the history that decisions are made from."""

    member: TeamMember
    input_text: str
    output_text: str
    error: str = ""


@dataclass(slots=True)
class TeamState:
    """How far the team has come with one question.

    `mending` counts corrections of the candidate at hand, `drafts` how often the generator was asked, `opinions` how
    often only to hear another one, `parsed` whether the parser had its turn. `waiting` are candidates not yet run.
    """

    question: str
    language: Language
    has_parsed: bool = False
    pending_candidates: list[Candidate] = field(default_factory=list)
    outcomes: list[CandidateOutcome] = field(default_factory=list)
    correction_count: int = 0
    draft_count: int = 0
    extra_candidate_count: int = 0
    turns: list[TeamTurn] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    usage: Usage = NO_USAGE

    @property
    def last_outcome(self) -> CandidateOutcome | None:
        """What came last."""
        return self.outcomes[-1] if self.outcomes else None

    def has_repeated_problem(self) -> bool:
        """Whether the last problem is one that was there before."""
        kinds = Counter(outcome.problem_kind for outcome in self.outcomes if outcome.problem_kind)
        return self.last_outcome is not None and kinds[self.last_outcome.problem_kind] > 1

    def record_turn(self, member: TeamMember, input_text: str, output_text: str, error: str = "") -> None:
        """Remember a turn."""
        self.turns.append(TeamTurn(member, input_text[:200], output_text[:300], error[:300]))

    def get_run_outcomes(self) -> Sequence[CandidateOutcome]:
        """The outcomes that brought rows."""
        return [outcome for outcome in self.outcomes if outcome.has_run]


def get_result_fingerprint(outcome: CandidateOutcome) -> str:
    """The rows as a text that is the same for the same rows in any order."""
    return str(sorted(str([round(c, 4) if isinstance(c, float) else c for c in row]) for row in outcome.rows))
