"""Whose turn it is: by rules while they settle it, by the model's word when the team is in trouble."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from opposable.ask.team.state import Action, Member, State, print_of
from opposable.domain.messages import Message, system, user
from opposable.models.base import ModelOptions

MOST_CORRECTIONS = 2
MOST_DRAFTS = 3
"""Times the generator is asked, each for one or more candidates."""

SURE = 0.8
"""The certainty from which on a writer is believed without another opinion."""

SKILLS: dict[Member, str] = {
    "semantic_parser": "reads the question again in the terms of the semantic model",
    "sql_generator": "writes new SQL, knowing what failed",
    "result_evaluator": "runs SQL and makes the smallest correction",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done next, and why."""

    action: Action
    reason: str


def decide(state: State, has_semantics: bool, opinions: int = 0) -> Decision:
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
    last = state.last
    if last is not None and last.good and not state.waiting:
        if state.opinions < opinions and unsettled(state):
            return Decision("sql_generator", "its writer was not sure: another opinion")
        return Decision("finish", "the SQL ran and its result is plausible")
    if has_semantics and not state.parsed:
        return Decision("semantic_parser", "the question is read in the terms of the semantic model first")
    if state.waiting:
        return Decision("result_evaluator", "a candidate waits to be run")
    if last is None:
        return Decision("sql_generator", "no SQL has been written yet")
    if state.mending and state.ran():
        return Decision("finish", "a correction brought nothing better")
    if last.candidate.sql and not state.repeated() and state.mending < MOST_CORRECTIONS:
        return Decision("result_evaluator", last.problem or last.suspicion)
    if state.drafts < MOST_DRAFTS:
        why = "the same problem came again" if state.repeated() else "correcting did not help"
        return Decision("sql_generator", f"{why}: a fresh start")
    if state.ran():
        return Decision("finish", "no better candidate was found")
    return Decision("give_up", last.problem)


def unsettled(state: State) -> bool:
    """Whether no writer was sure, and no two candidates brought the same; how sure it was must be known."""
    good = [outcome for outcome in state.outcomes if outcome.good]
    if any(outcome.candidate.certainty is None or outcome.candidate.certainty >= SURE for outcome in good):
        return False
    return len({print_of(outcome) for outcome in good}) == len(good)


def in_trouble(state: State) -> bool:
    """Whether rules have no good turn left: what was tried failed more than once, and none ran."""
    return len(state.outcomes) > MOST_CORRECTIONS and not state.ran() and state.drafts < MOST_DRAFTS


def trouble_messages(state: State) -> list[Message]:
    """Asks the model, as the team's captain, whose turn it is."""
    team = "\n".join(f"- {member}: {skill}" for member, skill in SKILLS.items())
    return [
        system(
            "You lead a team that answers questions about a database with SQL. You do not write SQL yourself: you say "
            f"whose turn it is.\n{team}\n- give_up: the data cannot answer the question"
        ),
        user(f"Question: {state.question}\n\nWhat was done:\n{history_text(state)}\n\nWhose turn is it, and why?"),
    ]


TURN_OPTIONS = ModelOptions(
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


def read_decision(text: str, rules: Decision, has_semantics: bool) -> Decision:
    """The model's word where it can be followed, else what the rules say."""
    try:
        told = orjson.loads(text)
        action, reason = told["action"], str(told["reason"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return rules
    match action:
        case "sql_generator":
            return Decision("sql_generator", reason)
        case "semantic_parser" if has_semantics:
            return Decision("semantic_parser", reason)
    return rules


def history_text(state: State, most: int = 8) -> str:
    """The last turns, a line or two each."""
    lines = []
    for number, step in list(enumerate(state.steps, 1))[-most:]:
        mark = "failed" if step.error else "done"
        lines.append(f"{number}. {step.member} ({mark}): {step.error or step.came}")
    return "\n".join(lines)


def failed_attempts(state: State, most: int = 3) -> Sequence[str]:
    """What was wrong with the last SQL that did not do, for the one who writes anew.

    The SQL itself is not told: a small model that sees it writes it again.
    """
    told = [outcome.problem or outcome.suspicion for outcome in state.outcomes if not outcome.good]
    return [f"- {problem}" for problem in dict.fromkeys(told)][-most:]
