"""What a run does next when calls fail: rules over its trouble; the model is asked where they don't settle it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from opposable.agent import prompts
from opposable.agent.guard_options import Guarding
from opposable.domain.language import Language

Action = Literal["execute", "replan", "switch_tool", "complete"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """How badly a run goes.

    `refused_turns` and `failed_turns` count the turns running in which every call was refused, or failed. `tool` is the
    name of the one that failed last, `failures` how often it did since it last worked, with other arguments or the
    same; `is_away` says that it did not answer. `others` are tools that may do instead, best first.
    """

    refused_turns: int
    failed_turns: int
    tool: str
    failures: int
    is_away: bool
    others: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done next and why; `advice` is what the model is told of it, "" for nothing."""

    action: Action
    reason: str
    advice: str = ""


def decided(trouble: Trouble, guarding: Guarding, language: Language) -> Decision:
    """The decision at the end of a turn in which calls failed.

    A run comes to its end where nothing but refused calls comes any more. A tool that failed too often is exchanged
    where another one may do; where none does, and where a plan as a whole brings nothing but failures, the model is
    asked for another plan. Each is said again only after as many failures more.
    """
    if trouble.refused_turns >= guarding.hopeless:
        return Decision("complete", prompts.hopeless(trouble.refused_turns, language))
    most = 2 if trouble.is_away else guarding.failures
    if trouble.others and trouble.failures >= most and (trouble.failures - most) % guarding.failures == 0:
        reason = prompts.failing_tool(trouble.tool, trouble.failures, language)
        return Decision("switch_tool", reason, prompts.switch_tool(reason, trouble.others, language))
    if trouble.failed_turns >= guarding.failures and trouble.failed_turns % guarding.failures == 0:
        reason = prompts.failing_plan(trouble.failed_turns, language)
        return Decision("replan", reason, prompts.replan(reason, language))
    return Decision("execute", "")
