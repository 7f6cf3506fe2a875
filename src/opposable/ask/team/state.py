"""What the team knows while it works on one question."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from opposable.domain.language import Language
from opposable.domain.usage import NO_USAGE, Usage

Member = Literal["semantic_parser", "sql_generator", "result_evaluator"]
"""Who can be sent: the one who reads the question, who writes SQL, who runs and mends it."""

Action = Literal["semantic_parser", "sql_generator", "result_evaluator", "finish", "give_up"]


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
class Outcome:
    """What came of one candidate: rows, or the problem that stopped it; `kind` folds problems that are alike.

    `suspicion` says what about rows that came makes them doubtful, "" for nothing.
    """

    candidate: Candidate
    sql: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    truncated: bool = False
    problem: str = ""
    kind: str = ""
    suspicion: str = ""
    corrections: tuple[str, ...] = ()

    @property
    def ran(self) -> bool:
        """Whether rows came, or none where none fit."""
        return not self.problem

    @property
    def good(self) -> bool:
        """Whether it ran and nothing about it is doubtful."""
        return not self.problem and not self.suspicion


@dataclass(frozen=True, slots=True)
class Step:
    """One member's turn, for the history that decisions are made from."""

    member: Member
    given: str
    came: str
    error: str = ""


@dataclass(slots=True)
class State:
    """How far the team has come with one question.

    `mending` counts corrections of the candidate at hand, `drafts` how often the generator was asked, `opinions` how
    often only to hear another one, `parsed` whether the parser had its turn. `waiting` are candidates not yet run.
    """

    question: str
    language: Language
    parsed: bool = False
    waiting: list[Candidate] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    mending: int = 0
    drafts: int = 0
    opinions: int = 0
    steps: list[Step] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    usage: Usage = NO_USAGE

    @property
    def last(self) -> Outcome | None:
        """What came last."""
        return self.outcomes[-1] if self.outcomes else None

    def repeated(self) -> bool:
        """Whether the last problem is one that was there before."""
        kinds = Counter(outcome.kind for outcome in self.outcomes if outcome.kind)
        return self.last is not None and kinds[self.last.kind] > 1

    def note(self, member: Member, given: str, came: str, error: str = "") -> None:
        """Remember a turn."""
        self.steps.append(Step(member, given[:200], came[:300], error[:300]))

    def ran(self) -> Sequence[Outcome]:
        """The outcomes that brought rows."""
        return [outcome for outcome in self.outcomes if outcome.ran]


def print_of(outcome: Outcome) -> str:
    """The rows as a text that is the same for the same rows in any order."""
    return str(sorted(str([round(c, 4) if isinstance(c, float) else c for c in row]) for row in outcome.rows))
