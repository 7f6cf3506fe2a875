"""Decides the next turn by rules, or asks the model if the team is stuck."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from opposable.ask.team import messages
from opposable.ask.team.state import TeamAction, TeamMember, TeamState
from opposable.domain.messages import Message, system_message, user_message
from opposable.models.base import ModelOptions

MAX_CORRECTIONS = 2
MAX_DRAFTS = 3
"""Times the generator is asked for new SQL."""

MEMBER_DESCRIPTIONS: dict[TeamMember, str] = {
    "semantic_parser": "reads the question again in the terms of the semantic model",
    "sql_generator": "writes new SQL, knowing what failed",
    "result_evaluator": "runs SQL and makes the smallest correction",
}


@dataclass(frozen=True, slots=True)
class TurnDecision:
    """The next action and its reason."""

    action: TeamAction
    reason: str


def decide_turn(state: TeamState, has_semantics: bool) -> TurnDecision:
    """Decide the next turn by rules.

    | state | turn |
    |---|---|
    | there is a semantic model, and it has not interpreted the question | semantic_parser |
    | there is no candidate yet | sql_generator |
    | a candidate is pending | result_evaluator |
    | the last candidate is plausible | finish |
    | a correction was made, and a candidate ran | finish, with a warning |
    | a problem occurs for the first time | result_evaluator: a correction |
    | a problem or the SQL is repeated, or two corrections were made | sql_generator: a fresh start |
    | no fresh start is left, and a candidate ran | finish, with a warning |
    | no fresh start is left, and no candidate ran | give_up |

    Args:
        state: The progress so far.
        has_semantics: Whether the team has a semantic model.
    """
    last = state.last_outcome
    if last is not None and last.is_plausible and not state.pending_candidates:
        return TurnDecision("finish", messages.result_plausible())
    if has_semantics and not state.has_parsed:
        return TurnDecision("semantic_parser", messages.semantic_model_first())
    if state.pending_candidates:
        return TurnDecision("result_evaluator", messages.candidate_pending())
    if last is None:
        return TurnDecision("sql_generator", messages.no_sql_yet())
    if state.correction_count and state.get_run_outcomes():
        return TurnDecision("finish", messages.correction_not_better())
    if last.candidate.sql and not state.has_repeated_problem() and state.correction_count < MAX_CORRECTIONS:
        return TurnDecision("result_evaluator", last.problem or last.suspicion)
    if state.draft_count < MAX_DRAFTS:
        if state.has_repeated_problem():
            return TurnDecision("sql_generator", messages.fresh_start_after_repeated_problem())
        return TurnDecision("sql_generator", messages.fresh_start_after_corrections())
    if state.get_run_outcomes():
        return TurnDecision("finish", messages.no_better_candidate())
    return TurnDecision("give_up", last.problem)


def is_stuck(state: TeamState) -> bool:
    """Return whether several candidates failed, none ran, and a fresh start is left."""
    return len(state.outcomes) > MAX_CORRECTIONS and not state.get_run_outcomes() and state.draft_count < MAX_DRAFTS


def build_stuck_messages(state: TeamState) -> list[Message]:
    """Build the prompt that asks the model for the next turn."""
    team = "\n".join(f"- {member}: {skill}" for member, skill in MEMBER_DESCRIPTIONS.items())
    return [
        system_message(
            "You lead a team that answers questions about a database with SQL. You do not write SQL yourself: you say "
            f"whose turn it is.\n{team}\n- give_up: the data cannot answer the question"
        ),
        user_message(
            f"Question: {state.question}\n\nWhat was done:\n{format_history(state)}\n\nWhose turn is it, and why?"
        ),
    ]


TURN_DECISION_OPTIONS = ModelOptions(
    stream=False,
    max_tokens=120,
    temperature=0.0,
    response_schema={
        "type": "object",
        "properties": {
            "action": {"enum": ["semantic_parser", "sql_generator", "give_up"]},
            "reason": {"type": "string", "maxLength": 200},
        },
        "required": ["action", "reason"],
        "additionalProperties": False,
    },
)


def parse_decision(text: str, fallback: TurnDecision, has_semantics: bool) -> TurnDecision:
    """Parse the model's decision; return `fallback` if it cannot be followed."""
    try:
        reply = orjson.loads(text)
        action, reason = reply["action"], str(reply["reason"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return fallback
    match action:
        case "sql_generator":
            return TurnDecision("sql_generator", reason)
        case "semantic_parser" if has_semantics:
            return TurnDecision("semantic_parser", reason)
    return fallback


def format_history(state: TeamState, limit: int = 8) -> str:
    """Format the last turns, one line each."""
    lines = []
    for number, turn in list(enumerate(state.turns, 1))[-limit:]:
        mark = "failed" if turn.error else "done"
        lines.append(f"{number}. {turn.member} ({mark}): {turn.error or turn.output_text}")
    return "\n".join(lines)


def list_failed_attempts(state: TeamState, limit: int = 3) -> Sequence[str]:
    """List the problems of failed and doubtful candidates for the next draft.

    The SQL itself is left out: a small model that sees it writes it again.
    """
    problems = [outcome.problem or outcome.suspicion for outcome in state.outcomes if not outcome.is_plausible]
    return [f"- {problem}" for problem in dict.fromkeys(problems)][-limit:]
