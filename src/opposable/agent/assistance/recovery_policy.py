"""What a run does next when calls fail: rules over its trouble; the model is asked where they don't settle it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from opposable.agent.assistance import prompts
from opposable.agent.assistance.guard_options import GuardOptions
from opposable.domain.language import Language

RecoveryAction = Literal["execute", "replan", "switch_tool", "complete"]


@dataclass(frozen=True, slots=True)
class FailureState:
    """How badly a run goes.

    `refused_turns` and `failed_turns` count the turns running in which every call was refused, or failed. `tool` is the
    name of the one that failed last, `failures` how often it did since it last worked, with other arguments or the
    same; `is_away` says that it did not answer. `others` are tools that may do instead, best first.
    """

    blocked_turns: int
    failed_turns: int
    tool: str
    tool_failures: int
    is_unavailable: bool
    alternative_tools: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RecoveryDecision:
    """What is done next and why; `advice` is what the model is told of it, "" for nothing."""

    action: RecoveryAction
    reason: str
    advice: str = ""


def choose_next_action(state: FailureState, guards: GuardOptions, language: Language) -> RecoveryDecision:
    """The decision at the end of a turn in which calls failed.

    A run comes to its end where nothing but refused calls comes any more. A tool that failed too often is exchanged
    where another one may do; where none does, and where a plan as a whole brings nothing but failures, the model is
    asked for another plan. Each is said again only after as many failures more.
    """
    if state.blocked_turns >= guards.give_up_after:
        return RecoveryDecision("complete", prompts.explain_no_progress(state.blocked_turns, language))
    most = 2 if state.is_unavailable else guards.switch_after
    if (
        state.alternative_tools
        and state.tool_failures >= most
        and (state.tool_failures - most) % guards.switch_after == 0
    ):
        reason = prompts.explain_failing_tool(state.tool, state.tool_failures, language)
        return RecoveryDecision(
            "switch_tool", reason, prompts.ask_to_switch_tool(reason, state.alternative_tools, language)
        )
    if state.failed_turns >= guards.switch_after and state.failed_turns % guards.switch_after == 0:
        reason = prompts.explain_failing_plan(state.failed_turns, language)
        return RecoveryDecision("replan", reason, prompts.ask_to_replan(reason, language))
    return RecoveryDecision("execute", "")
