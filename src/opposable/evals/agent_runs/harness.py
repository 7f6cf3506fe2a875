"""Runs scenarios and scores them: with all guards, without each of them, and with a baseline loop."""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from opposable.agent.agent import Agent
from opposable.agent.assistance.guard_options import ALL_GUARDS, NO_GUARDS, RULE_SWITCHES, GuardOptions
from opposable.agent.failure_memory import FailureMemory, ScopedMemory
from opposable.agent.limits import Limits
from opposable.domain.errors import ModelError
from opposable.evals.agent_runs.baseline_loop import run_baseline_loop
from opposable.evals.agent_runs.environment import Environment
from opposable.evals.agent_runs.scenario import Scenario
from opposable.models.base import Model

RUN_LIMITS = Limits(turns=24, tool_calls=40, seconds=300)


def get_variant_name(rule: str) -> str:
    """Return the name of the variant without a rule, which is given by its switch."""
    return f"without {rule.replace('_', ' ')}"


VARIANTS: Mapping[str, GuardOptions | None] = {
    "all guards": ALL_GUARDS,
    **{get_variant_name(rule): replace(ALL_GUARDS, **{rule: False}) for rule in RULE_SWITCHES},
    "no guards": NO_GUARDS,
    "bare loop": None,
}
"""The guard options to compare, by name. None is the baseline loop, without guards and without this library's loop."""

ScenarioModelFactory = Callable[[Scenario, bool], Model]
"""Takes a scenario and whether the loop under test parses calls from text; returns the model to run it with."""


@dataclass(frozen=True, slots=True)
class ScenarioScore:
    """The result of one scenario.

    Attributes:
        requested_call_count: Calls the model requested.
        executed_call_count: Calls that reached a tool.
        repeated_failure_count: Executed calls that failed exactly as the same call had failed before.
        repeat_score: The score of a second run that uses what the first run learned.
        error: The error of the model that ended the run, which is no success.
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
    error: ModelError | None = None


@dataclass(slots=True)
class ScenarioScoreSheet:
    """The scores of one variant."""

    scores: list[ScenarioScore] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Return the figures of one table row.

        Successes are percentages, the other figures are sums. Keys that begin with "2nd" belong to the second runs.
        """
        second_scores = [score.repeat_score for score in self.scores if score.repeat_score is not None]
        figures: dict[str, Any] = {
            "success %": _compute_success_percent(self.scores),
            "calls": sum(score.requested_call_count for score in self.scores),
            "executed": sum(score.executed_call_count for score in self.scores),
            "repeats": sum(score.repeated_failure_count for score in self.scores),
            "tokens": sum(score.tokens for score in self.scores),
            "s": round(sum(score.seconds for score in self.scores), 2),
        }
        if second_scores:
            figures["2nd %"] = _compute_success_percent(second_scores)
            figures["2nd calls"] = sum(score.requested_call_count for score in second_scores)
        return figures


async def score_scenarios(
    scenarios: Sequence[Scenario],
    model_factory: ScenarioModelFactory,
    guard_options: GuardOptions | None,
    *,
    run_twice: bool = True,
) -> AsyncIterator[ScenarioScore]:
    """Run each scenario and yield its score.

    With `run_twice`, run each one again with the failure memory of the first run.
    """
    for scenario in scenarios:
        memory = FailureMemory().with_scope()
        score = await _score_scenario(scenario, model_factory, guard_options, memory)
        if run_twice:
            score = replace(score, repeat_score=await _score_scenario(scenario, model_factory, guard_options, memory))
        yield score


async def _score_scenario(
    scenario: Scenario, model_factory: ScenarioModelFactory, guard_options: GuardOptions | None, memory: ScopedMemory
) -> ScenarioScore:
    environment = scenario.make_environment()
    model = model_factory(scenario, guard_options is None)
    started_at = time.perf_counter()
    model_error: ModelError | None = None
    try:
        answer, call_count, tokens = await _run_scenario(scenario, environment, model, guard_options, memory)
    except ModelError as error:
        answer, call_count, tokens, model_error = "", 0, 0, error
    seconds = time.perf_counter() - started_at
    success = bool(answer.strip()) and scenario.is_goal_reached(environment, answer)
    return ScenarioScore(
        scenario,
        success,
        call_count,
        len(environment.recorded_calls),
        environment.repeated_failure_count,
        tokens,
        seconds,
        answer,
        error=model_error,
    )


async def _run_scenario(
    scenario: Scenario, environment: Environment, model: Model, guard_options: GuardOptions | None, memory: ScopedMemory
) -> tuple[str, int, int]:
    """Return the answer, the number of requested calls, and the tokens used. Raises: `ModelError`."""
    limits = replace(RUN_LIMITS, context=scenario.context_tokens)
    if guard_options is None:
        answer, call_count, usage = await run_baseline_loop(model, environment, scenario.task, limits)
        return answer, call_count, usage.total_tokens
    library = environment.build_library()
    agent = Agent(model, library, limits=limits, assistance=guard_options, failure_memory=memory)
    run_finished = await agent.run(scenario.task)
    return run_finished.text, run_finished.tool_calls, run_finished.usage.total_tokens


def _compute_success_percent(scores: Sequence[ScenarioScore]) -> float:
    return round(100 * sum(score.success for score in scores) / max(len(scores), 1), 1)
