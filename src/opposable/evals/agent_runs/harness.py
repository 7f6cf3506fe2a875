"""Scenarios run and scored: with all of the guarding, without each of its parts, and with a loop that has none."""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from opposable.agent.failure_memory import FailureMemory, ScopedMemory
from opposable.agent.guard_options import ALL_GUARDS, NO_GUARDS, GuardOptions
from opposable.agent.limits import Limits
from opposable.agent.loop import run
from opposable.domain.errors import ModelError
from opposable.domain.events import RunFinished
from opposable.domain.messages import user_message
from opposable.evals.agent_runs.baseline_loop import run_baseline_loop
from opposable.evals.agent_runs.environment import Environment
from opposable.evals.agent_runs.scenarios import Scenario
from opposable.evals.agent_runs.scripted_policies import POLICIES, TextCallingModel
from opposable.models.base import Model, ModelOptions
from opposable.models.text_protocol import TextProtocolModel

RUN_LIMITS = Limits(turns=24, tool_calls=40, seconds=300)

VARIANTS: Mapping[str, GuardOptions | None] = {
    "all of it": ALL_GUARDS,
    "without refusing": replace(ALL_GUARDS, block_repeats=False),
    "without telling": replace(ALL_GUARDS, status_notes=False),
    "without learning": replace(ALL_GUARDS, failure_memory=False),
    "without deciding": replace(ALL_GUARDS, replanning=False),
    "without insisting": replace(ALL_GUARDS, follow_ups=False),
    "without guarding": NO_GUARDS,
    "bare loop": None,
}
"""Ways to run: None is the bare loop, which has neither guarding nor this package's reading, checking and telling."""

ScenarioModelFactory = Callable[[Scenario, bool], Model]
"""The model for a scenario; the second argument says whether the loop around it reads calls from text by itself."""


@dataclass(frozen=True, slots=True)
class ScenarioScore:
    """What came of a scenario.

    `calls` were wanted by the model, `made` reached a tool, `repeats` of these failed just as they had failed before.
    `again` is the score of the same scenario done once more with what the first run learnt.
    """

    scenario: Scenario
    success: bool
    requested_call_count: int
    executed_call_count: int
    repeated_failure_count: int
    tokens: int
    seconds: float
    answer: str
    repeat_score: "ScenarioScore | None" = None


@dataclass(slots=True)
class ScenarioScoreSheet:
    """The scores of one variant."""

    scores: list[ScenarioScore] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """The figures of a table's row: successes in per cent, the rest as sums; "2nd" is of the runs done once more.

        "made" are the calls that reached a tool, "repeats" those of them that failed just as the same call had before.
        """
        again = [score.repeat_score for score in self.scores if score.repeat_score is not None]
        return {
            "success %": _compute_success_percent(self.scores),
            "calls": sum(one.requested_call_count for one in self.scores),
            "made": sum(one.executed_call_count for one in self.scores),
            "repeats": sum(one.repeated_failure_count for one in self.scores),
            "tokens": sum(one.tokens for one in self.scores),
            "s": round(sum(one.seconds for one in self.scores), 2),
            **(
                {"2nd %": _compute_success_percent(again), "2nd calls": sum(one.requested_call_count for one in again)}
                if again
                else {}
            ),
        }


def make_scripted_model(scenario: Scenario, parses_text_calls: bool) -> Model:
    """The model that misbehaves as the scenario says."""
    policy = POLICIES[scenario.fault](scenario.plan, scenario.answer)
    if not scenario.writes_calls_as_text:
        return policy
    return TextCallingModel(policy) if parses_text_calls else TextProtocolModel(TextCallingModel(policy))


def make_text_calling_model(scenario: Scenario, parses_text_calls: bool) -> Model:
    """The model that misbehaves as the scenario says, and writes every call as text."""
    return make_scripted_model(replace(scenario, writes_calls_as_text=True), parses_text_calls)


def make_faultless_model(scenario: Scenario, parses_text_calls: bool) -> Model:
    """A model that makes no mistake: to see that guarding leaves it alone."""
    return make_scripted_model(
        scenario if scenario.fault == "quoting" else replace(scenario, fault="none"), parses_text_calls
    )


async def score_scenarios(
    scenarios: Sequence[Scenario],
    model_factory: ScenarioModelFactory,
    guard_options: GuardOptions | None,
    *,
    run_twice: bool = True,
) -> AsyncIterator[ScenarioScore]:
    """Each scenario's score; `twice` does it once more with what was learnt."""
    for scenario in scenarios:
        learning = FailureMemory().scoped()
        first = await _score_scenario(scenario, model_factory, guard_options, learning)
        if run_twice:
            first = replace(first, repeat_score=await _score_scenario(scenario, model_factory, guard_options, learning))
        yield first


async def _score_scenario(
    scenario: Scenario, model_factory: ScenarioModelFactory, guard_options: GuardOptions | None, learning: ScopedMemory
) -> ScenarioScore:
    world = scenario.make_environment()
    model = model_factory(scenario, guard_options is None)
    start = time.perf_counter()
    answer, calls, tokens = await _run_scenario(scenario, world, model, guard_options, learning)
    seconds = time.perf_counter() - start
    success = bool(answer.strip()) and scenario.is_goal_reached(world, answer)
    return ScenarioScore(
        scenario, success, calls, len(world.recorded_calls), world.repeated_failure_count, tokens, seconds, answer
    )


async def _run_scenario(
    scenario: Scenario,
    environment: Environment,
    model: Model,
    guard_options: GuardOptions | None,
    learning: ScopedMemory,
) -> tuple[str, int, int]:
    """The answer, the calls that were wanted, the tokens."""
    limits = replace(RUN_LIMITS, context=scenario.context_tokens)
    try:
        if guard_options is None:
            answer, _, calls, usage = await run_baseline_loop(model, environment, scenario.task, limits)
            return answer, calls, usage.total_tokens
        events = run(
            model,
            environment.build_library(),
            (user_message(scenario.task),),
            limits=limits,
            options=ModelOptions(stream=False),
            guards=guard_options,
            failure_memory=learning,
        )
        async with aclosing(events):
            async for event in events:
                if isinstance(event, RunFinished):
                    end = event
    except ModelError as error:
        return f"{type(error).__name__}: {error}", 0, 0
    return end.text, end.tool_calls, end.usage.total_tokens


def _compute_success_percent(scores: Sequence[ScenarioScore]) -> float:
    return round(100 * sum(one.success for one in scores) / max(len(scores), 1), 1)
