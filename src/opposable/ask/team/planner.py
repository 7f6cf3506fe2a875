"""Whose turn it is: by rules while they settle it, by the model's word when the team is in trouble."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from opposable.ask.team.state import TeamAction, TeamMember, TeamState, get_result_fingerprint
from opposable.domain.messages import Message, system_message, user_message
from opposable.models.base import ModelOptions

MAX_CORRECTIONS = 2
MAX_DRAFTS = 3
"""Times the generator is asked, each for one or more candidates."""

MIN_SURE_CERTAINTY = 0.8
"""The certainty from which on a writer is believed without another opinion."""

MEMBER_DESCRIPTIONS: dict[TeamMember, str] = {
    "semantic_parser": "reads the question again in the terms of the semantic model",
    "sql_generator": "writes new SQL, knowing what failed",
    "result_evaluator": "runs SQL and makes the smallest correction",
}


@dataclass(frozen=True, slots=True)
class TurnDecision:
    """What is done next, and why."""

    action: TeamAction
    reason: str


def decide_turn(state: TeamState, has_semantics: bool, max_extra_candidates: int = 0) -> TurnDecision:
    """The next turn by rules. At most `opinions` more candidates are asked for where the writer was not sure.

    | state | turn |
    |---|---|
    | nothing read yet, and there is a semantic model | semantic_parser |
    | nothing written yet | sql_generator |
    | a candidate waits | result_evaluator |
    | the last one ran, nothing is doubtful, but its writer was not sure | sql_generator: another opinion |
    | the last one ran, and nothing is doubtful | finish |
    | a correction made, and some candidate ran | finish, with what is doubtful said |
    | first problem of its kind | result_evaluator: a correction |
    | the same problem or the same SQL again, or two corrections made | sql_generator: a fresh start that knows what failed |
    | fresh starts used up, and some candidate ran | finish, with what is doubtful said |
    | fresh starts used up, and none ran | give_up |
    """
    last = state.last_outcome
    if last is not None and last.is_plausible and not state.pending_candidates:
        if state.extra_candidate_count < max_extra_candidates and is_unsettled(state):
            return TurnDecision("sql_generator", "its writer was not sure: another opinion")
        return TurnDecision("finish", "the SQL ran and its result is plausible")
    if has_semantics and not state.has_parsed:
        return TurnDecision("semantic_parser", "the question is read in the terms of the semantic model first")
    if state.pending_candidates:
        return TurnDecision("result_evaluator", "a candidate waits to be run")
    if last is None:
        return TurnDecision("sql_generator", "no SQL has been written yet")
    if state.correction_count and state.get_run_outcomes():
        return TurnDecision("finish", "a correction brought nothing better")
    if last.candidate.sql and not state.has_repeated_problem() and state.correction_count < MAX_CORRECTIONS:
        return TurnDecision("result_evaluator", last.problem or last.suspicion)
    if state.draft_count < MAX_DRAFTS:
        why = "the same problem came again" if state.has_repeated_problem() else "correcting did not help"
        return TurnDecision("sql_generator", f"{why}: a fresh start")
    if state.get_run_outcomes():
        return TurnDecision("finish", "no better candidate was found")
    return TurnDecision("give_up", last.problem)


def is_unsettled(state: TeamState) -> bool:
    """Whether no writer was sure, and no two candidates brought the same; how sure it was must be known."""
    good = [outcome for outcome in state.outcomes if outcome.is_plausible]
    if any(
        outcome.candidate.certainty is None or outcome.candidate.certainty >= MIN_SURE_CERTAINTY for outcome in good
    ):
        return False
    return len({get_result_fingerprint(outcome) for outcome in good}) == len(good)


def is_stuck(state: TeamState) -> bool:
    """Whether rules have no good turn left: what was tried failed more than once, and none ran."""
    return len(state.outcomes) > MAX_CORRECTIONS and not state.get_run_outcomes() and state.draft_count < MAX_DRAFTS


def build_stuck_messages(state: TeamState) -> list[Message]:
    """Asks the model, as the team's captain, whose turn it is."""
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
    """The model's word where it can be followed, else what the rules say."""
    try:
        told = orjson.loads(text)
        action, reason = told["action"], str(told["reason"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return fallback
    match action:
        case "sql_generator":
            return TurnDecision("sql_generator", reason)
        case "semantic_parser" if has_semantics:
            return TurnDecision("semantic_parser", reason)
    return fallback


def format_history(state: TeamState, limit: int = 8) -> str:
    """The last turns, a line or two each."""
    lines = []
    for number, step in list(enumerate(state.turns, 1))[-limit:]:
        mark = "failed" if step.error else "done"
        lines.append(f"{number}. {step.member} ({mark}): {step.error or step.output_text}")
    return "\n".join(lines)


def list_failed_attempts(state: TeamState, limit: int = 3) -> Sequence[str]:
    """What was wrong with the last SQL that did not do, for the one who writes anew.

    The SQL itself is not told: a small model that sees it writes it again.
    """
    told = [outcome.problem or outcome.suspicion for outcome in state.outcomes if not outcome.is_plausible]
    return [f"- {problem}" for problem in dict.fromkeys(told)][-limit:]
