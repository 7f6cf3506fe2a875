"""Builds the answer of a team from the state of its question: text, data, candidates and history."""

from collections.abc import Sequence
from typing import Any

from opposable.ask.assistance.confidence import estimate_confidence
from opposable.ask.sql_trees import exp, parse_query
from opposable.ask.team import answer_text, messages
from opposable.ask.team.state import CandidateOutcome, TeamState
from opposable.domain.answers import DataAnswer, QueryCandidate
from opposable.domain.localized_text import LocalizedText, localize
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import to_one_line

_MAX_NAMES = 6
_MAX_NAME_CHARACTERS = 80


def build_answer(state: TeamState, dialect: Dialect, give_up_reason: str = "", *, assisted: bool = False) -> DataAnswer:
    """Build the answer: the result of the best candidate, or the reason of the failure.

    Args:
        state: The finished question.
        dialect: The SQL dialect of the database.
        give_up_reason: Why the team gave up.
        assisted: Whether the confidence is that of small models.
    """

    def translate(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(localize(text, state.language) for text in texts)

    best = state.best_outcome
    assumptions, history = translate(state.assumptions), tuple(state.turns)
    candidates = tuple(
        _build_candidate(outcome, state, dialect, is_chosen=outcome is best)
        for outcome in state.outcomes
        if outcome.candidate.sql
    )
    if best is None:
        reason = give_up_reason or (state.last_outcome.problem if state.last_outcome else "")
        text = answer_text.format_failure_sentence(reason, state.language)
        error = localize(reason, state.language) or text
        return DataAnswer(
            text, assumptions=assumptions, error=error, candidates=candidates, intent=state.intent, history=history
        )
    confidence = best.candidate.certainty * (0.5 if best.warnings else 1.0)
    doubts: Sequence[LocalizedText] = ()
    if assisted and best.candidate.source != "semantics":
        confidence, doubts = estimate_confidence(best.sql, best.rows)
    text = answer_text.format_answer_sentence(
        best.columns, best.rows, best.truncated, state.language, localize(best.empty_reason, state.language)
    )
    return DataAnswer(
        text + answer_text.format_doubts(translate(doubts), state.language),
        best.sql,
        best.columns,
        best.rows,
        best.truncated,
        answer_text.build_chart(best.columns, best.rows),
        assumptions,
        translate(best.corrections),
        round(confidence, 3),
        translate(best.warnings),
        doubts=translate(doubts),
        candidates=candidates,
        intent=state.intent,
        history=history,
    )


def _build_candidate(
    outcome: CandidateOutcome, state: TeamState, dialect: Dialect, *, is_chosen: bool
) -> QueryCandidate:
    candidate = outcome.candidate
    diagnosis = outcome.problem or outcome.suspicion or "; ".join(outcome.warnings)
    reason = candidate.reason or describe_sql(candidate.sql, dialect)
    return QueryCandidate(
        candidate.sql,
        localize(reason, state.language),
        candidate.source,
        localize(diagnosis, state.language),
        is_chosen,
    )


def describe_sql(sql: str, dialect: Dialect) -> str:
    """Describe what a SELECT computes, reads, filters and groups by; "" for SQL that cannot be parsed."""
    tree = parse_query(sql, dialect)
    select = tree.find(exp.Select) if tree else None
    if select is None:
        return ""

    def write(nodes: Sequence[Any]) -> list[str]:
        texts = dict.fromkeys(to_one_line(node.sql(dialect=dialect), _MAX_NAME_CHARACTERS) for node in nodes)
        return list(texts)[:_MAX_NAMES]

    conditions = [clause.this for clause in tree.find_all(exp.Where, exp.Having)]
    groups = [node for clause in tree.find_all(exp.Group) for node in clause.expressions]
    tables = list(dict.fromkeys(table.name for table in tree.find_all(exp.Table)))[:_MAX_NAMES]
    return messages.describe_query(write(select.expressions), tables, write(conditions), write(groups))
