"""Builds the answer of a team from the state of its question: text, data, candidates and history."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from opposable.ask.assistance.confidence import estimate_confidence
from opposable.ask.sql_trees import exp, parse_query
from opposable.ask.team import answer_text, messages
from opposable.ask.team.state import TeamState
from opposable.domain.answers import DataAnswer, QueryCandidate
from opposable.domain.localized_text import LocalizedText, join_localized, localize
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import to_one_line

_MAX_NAMES = 6
_MAX_NAME_CHARACTERS = 80


def build_answer(state: TeamState, dialect: Dialect, give_up_reason: str = "", *, assisted: bool = False) -> DataAnswer:
    """Build the answer: the result of the best candidate, or the reason of the failure.

    The confidence is that of the semantic parser, or with `assisted` that of small models. SQL of other models has none.
    """

    def translate(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(localize(text, state.language) for text in texts)

    best = state.best_outcome
    answer = DataAnswer(
        "",
        assumptions=translate(state.assumptions),
        candidates=tuple(
            QueryCandidate(
                outcome.candidate.sql,
                localize(describe_sql(outcome.candidate.sql, dialect), state.language),
                outcome.candidate.source,
                localize(outcome.problem or outcome.suspicion or "; ".join(outcome.warnings), state.language),
                is_chosen=outcome is best,
            )
            for outcome in state.outcomes
            if outcome.candidate.sql
        ),
        intent=state.intent,
        history=tuple(state.turns),
    )
    if best is None:
        reason = give_up_reason or (state.last_outcome.problem if state.last_outcome else "")
        text = state.reply_text or answer_text.format_failure_sentence(reason, state.language)
        return replace(answer, text=text, error=answer_text.localize_problem(reason, state.language) or text)
    confidence = best.candidate.certainty
    doubts: Sequence[LocalizedText] = ()
    if confidence is not None and best.warnings:
        confidence /= 2
    if assisted and best.candidate.source != "semantics":
        confidence, doubts = estimate_confidence(best.sql, best.rows)
    reason, is_compiled = localize(best.empty_reason, state.language), best.candidate.source == "semantics"
    text = state.reply_text or answer_text.format_answer_sentence(
        best.columns, best.rows, best.truncated, state.language, reason, is_compiled=is_compiled
    )
    return replace(
        answer,
        text=text + answer_text.format_doubts(translate(doubts), state.language),
        sql=best.sql,
        columns=best.columns,
        rows=best.rows,
        truncated=best.truncated,
        chart=answer_text.build_chart(best.columns, best.rows),
        corrections=translate(best.corrections),
        confidence=None if confidence is None else round(confidence, 3),
        warnings=translate(best.warnings),
        doubts=translate(doubts),
    )


def describe_sql(sql: str, dialect: Dialect) -> str:
    """Describe what a SELECT computes, reads, filters and groups by; "" for SQL that cannot be parsed."""
    tree = parse_query(sql, dialect)
    select = tree.find(exp.Select) if tree else None
    if select is None:
        return ""

    def write(nodes: Iterable[Any]) -> list[str]:
        return [to_one_line(node.sql(dialect=dialect), _MAX_NAME_CHARACTERS) for node in nodes]

    described = (
        (messages.QUERY_OUTPUTS, write(select.expressions)),
        (messages.QUERY_TABLES, [".".join(filter(None, (one.db, one.name))) for one in tree.find_all(exp.Table)]),
        (messages.QUERY_CONDITIONS, write(clause.this for clause in tree.find_all(exp.Where, exp.Having))),
        (messages.QUERY_GROUPS, write(node for clause in tree.find_all(exp.Group) for node in clause.expressions)),
    )
    parts = [part.format(names=", ".join([*dict.fromkeys(names)][:_MAX_NAMES])) for part, names in described if names]
    return join_localized(parts, "; ", "；")
