"""Rules for what a run does next when calls fail."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from opposable.agent.assistance import prompts
from opposable.agent.assistance.guard_options import GuardOptions
from opposable.domain.language import Language

RecoveryAction = Literal["execute", "replan", "switch_tool", "complete"]


@dataclass(frozen=True, slots=True)
class FailureState:
    """The failures of a run at the end of a turn.

    Attributes:
        blocked_turns: Consecutive turns in which every call was blocked.
        failed_turns: Consecutive turns in which every call failed.
        tool: The name of the tool that failed last.
        tool_failures: How often that tool has failed since its last success, with any arguments.
        is_unavailable: Whether that tool did not answer.
        alternative_tools: The names of tools that may replace it, the best first.
    """

    blocked_turns: int
    failed_turns: int
    tool: str
    tool_failures: int
    is_unavailable: bool
    alternative_tools: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RecoveryDecision:
    """The next action and its reason; `advice` is the text for the model, "" for none."""

    action: RecoveryAction
    reason: str
    advice: str = ""


def choose_next_action(state: FailureState, guards: GuardOptions, language: Language) -> RecoveryDecision:
    """Return the decision at the end of a turn in which calls failed.

    The run ends if the model only repeats blocked calls. A tool that fails too often is replaced if there is an
    alternative. Otherwise, and when whole turns fail, the model is asked for another plan. The model gets the same
    advice again only after as many further failures.
    """
    if state.blocked_turns >= guards.give_up_after:
        return RecoveryDecision("complete", prompts.explain_no_progress(state.blocked_turns, language))
    max_failures = 2 if state.is_unavailable else guards.switch_after
    if (
        state.alternative_tools
        and state.tool_failures >= max_failures
        and (state.tool_failures - max_failures) % guards.switch_after == 0
    ):
        reason = prompts.explain_failing_tool(state.tool, state.tool_failures, language)
        return RecoveryDecision(
            "switch_tool", reason, prompts.ask_to_switch_tool(reason, state.alternative_tools, language)
        )
    if state.failed_turns >= guards.switch_after and state.failed_turns % guards.switch_after == 0:
        reason = prompts.explain_failing_plan(state.failed_turns, language)
        return RecoveryDecision("replan", reason, prompts.ask_to_replan(reason, language))
    return RecoveryDecision("execute", "")
