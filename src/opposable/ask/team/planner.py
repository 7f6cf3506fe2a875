"""Decides the next turn by rules."""

from collections.abc import Sequence

import orjson

from opposable.ask.team import messages
from opposable.ask.team.state import TeamState
from opposable.domain.events import DecisionMade

MAX_CORRECTIONS = 2
MAX_DRAFTS = 3
"""Times the generator is asked for new SQL."""


def decide_turn(state: TeamState, has_semantics: bool) -> DecisionMade:
    """Decide the next turn by rules: the reason of each decision says when it is made."""
    last = state.last_outcome
    if last is not None and last.is_plausible and not state.pending_candidates:
        return DecisionMade("finish", messages.RESULT_PLAUSIBLE)
    if has_semantics and not state.has_parsed:
        return DecisionMade("semantic_parser", messages.SEMANTIC_MODEL_FIRST)
    if state.pending_candidates:
        is_compiled = state.intent is not None and state.pending_candidates[0].source == "semantics"
        compiled = messages.INTENT_COMPILED.format(intent=orjson.dumps(state.intent).decode())
        return DecisionMade("result_evaluator", compiled if is_compiled else messages.CANDIDATE_PENDING)
    if last is None:
        return DecisionMade("sql_generator", messages.NO_SQL_YET)
    if last.problem_kind == "ToolUnavailable" and not state.best_outcome:
        return DecisionMade("give_up", last.problem)
    if state.correction_count and state.best_outcome:
        return DecisionMade("finish", messages.CORRECTION_NOT_BETTER)
    if last.candidate.sql and not state.has_repeated_problem() and state.correction_count < MAX_CORRECTIONS:
        return DecisionMade("result_evaluator", last.problem or last.suspicion)
    if state.draft_count < MAX_DRAFTS:
        is_repeated = state.has_repeated_problem()
        reason = messages.FRESH_START_AFTER_REPEATED_PROBLEM if is_repeated else messages.FRESH_START_AFTER_CORRECTIONS
        return DecisionMade("sql_generator", reason)
    if state.best_outcome:
        return DecisionMade("finish", messages.NO_BETTER_CANDIDATE)
    return DecisionMade("give_up", last.problem)


def list_failed_attempts(state: TeamState, limit: int = 3) -> Sequence[str]:
    """List the problems of failed and doubtful candidates for the next draft.

    The SQL itself is left out: a small model that sees it writes it again.
    """
    problems = [outcome.problem or outcome.suspicion for outcome in state.outcomes if not outcome.is_plausible]
    return [f"- {problem}" for problem in dict.fromkeys(problems)][-limit:]
