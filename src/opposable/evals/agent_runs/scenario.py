"""Scenarios of agent runs: a task in a simulated environment, its goal, and the plan that reaches it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from opposable.evals.agent_runs.environment import Environment

PlannedCall = tuple[str, dict[str, Any]]
"""The name and the arguments of a tool call."""

Fault = Literal[
    "none",
    "stubborn",
    "deaf",
    "guessing",
    "cycling",
    "rereading",
    "loyal",
    "discouraged",
    "quoting",
    "silent",
    "forgetful",
]
"""How a scripted model misbehaves."""

Goal = Callable[[Environment, str], bool]
"""Takes the environment and the final answer; returns whether the goal is reached."""


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """One step of a plan.

    Attributes:
        right_call: The call that does the step.
        wrong_calls: Calls that a misbehaving model makes first.
        cue_pattern: A regular expression. A misbehaving model knows the right call once the pattern occurs in the
            text it received.
        done_pattern: A regular expression. The step is done once it occurs in a result, whichever call returned it.
    """

    right_call: PlannedCall
    wrong_calls: tuple[PlannedCall, ...] = ()
    cue_pattern: str = ""
    done_pattern: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A task in a simulated environment.

    Attributes:
        plan: The steps of a faultless model, each with the wrong calls of a misbehaving one.
        fault: How the scripted model misbehaves.
        answer: The final answer of the scripted model.
        writes_calls_as_text: Whether the model writes its calls as text.
        context_tokens: The largest number of message tokens per request; None for no limit.
    """

    name: str
    kind: str
    task: str
    make_environment: Callable[[], Environment]
    is_goal_reached: Goal
    plan: tuple[PlannedMove, ...]
    fault: Fault = "stubborn"
    answer: str = "Done. 完成。"
    writes_calls_as_text: bool = False
    context_tokens: int | None = None
