"""Scenarios run and scored: with all of the guarding, without each of its parts, and with a loop that has none."""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from opposable.agent.failure_memory import FailureMemory, Learning
from opposable.agent.guard_options import GUARDED, UNGUARDED, Guarding
from opposable.agent.limits import Limits
from opposable.agent.loop import run
from opposable.domain.errors import ModelError
from opposable.domain.events import RunFinished
from opposable.domain.messages import user
from opposable.evals.agent_runs.baseline_loop import bare_run
from opposable.evals.agent_runs.environment import World
from opposable.evals.agent_runs.scenarios import Scenario
from opposable.evals.agent_runs.scripted_policies import POLICIES, Written
from opposable.models.base import Model, ModelOptions
from opposable.models.text_protocol import TextProtocolModel

LIMITS = Limits(turns=24, tool_calls=40, seconds=300)

VARIANTS: Mapping[str, Guarding | None] = {
    "all of it": GUARDED,
    "without refusing": replace(GUARDED, refusing=False),
    "without telling": replace(GUARDED, telling=False),
    "without learning": replace(GUARDED, learning=False),
    "without deciding": replace(GUARDED, deciding=False),
    "without insisting": replace(GUARDED, insisting=False),
    "without guarding": UNGUARDED,
    "bare loop": None,
}
"""Ways to run: None is the bare loop, which has neither guarding nor this package's reading, checking and telling."""

ModelFor = Callable[[Scenario, bool], Model]
"""The model for a scenario; the second argument says whether the loop around it reads calls from text by itself."""


@dataclass(frozen=True, slots=True)
class Score:
    """What came of a scenario.

    `calls` were wanted by the model, `made` reached a tool, `repeats` of these failed just as they had failed before.
    `again` is the score of the same scenario done once more with what the first run learnt.
    """

    scenario: Scenario
    success: bool
    calls: int
    made: int
    repeats: int
    tokens: int
    seconds: float
    answer: str
    again: "Score | None" = None


@dataclass(slots=True)
class Sheet:
    """The scores of one variant."""

    scores: list[Score] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """The figures of a table's row: successes in per cent, the rest as sums; "2nd" is of the runs done once more.

        "made" are the calls that reached a tool, "repeats" those of them that failed just as the same call had before.
        """
        again = [score.again for score in self.scores if score.again is not None]
        return {
            "success %": _part(self.scores),
            "calls": sum(one.calls for one in self.scores),
            "made": sum(one.made for one in self.scores),
            "repeats": sum(one.repeats for one in self.scores),
            "tokens": sum(one.tokens for one in self.scores),
            "s": round(sum(one.seconds for one in self.scores), 2),
            **({"2nd %": _part(again), "2nd calls": sum(one.calls for one in again)} if again else {}),
        }


def scripted(scenario: Scenario, reads_text: bool) -> Model:
    """The model that misbehaves as the scenario says."""
    policy = POLICIES[scenario.fault](scenario.plan, scenario.answer)
    if not scenario.as_text:
        return policy
    return Written(policy) if reads_text else TextProtocolModel(Written(policy))


def written(scenario: Scenario, reads_text: bool) -> Model:
    """The model that misbehaves as the scenario says, and writes every call as text."""
    return scripted(replace(scenario, as_text=True), reads_text)


def well_behaved(scenario: Scenario, reads_text: bool) -> Model:
    """A model that makes no mistake: to see that guarding leaves it alone."""
    return scripted(scenario if scenario.fault == "quoting" else replace(scenario, fault="none"), reads_text)


async def scored(
    scenarios: Sequence[Scenario], model_for: ModelFor, guarding: Guarding | None, *, twice: bool = True
) -> AsyncIterator[Score]:
    """Each scenario's score; `twice` does it once more with what was learnt."""
    for scenario in scenarios:
        learning = FailureMemory().of()
        first = await _score(scenario, model_for, guarding, learning)
        if twice:
            first = replace(first, again=await _score(scenario, model_for, guarding, learning))
        yield first


async def _score(scenario: Scenario, model_for: ModelFor, guarding: Guarding | None, learning: Learning) -> Score:
    world = scenario.make()
    model = model_for(scenario, guarding is None)
    start = time.perf_counter()
    answer, calls, tokens = await _done(scenario, world, model, guarding, learning)
    seconds = time.perf_counter() - start
    success = bool(answer.strip()) and scenario.goal(world, answer)
    return Score(scenario, success, calls, len(world.made), world.repeats, tokens, seconds, answer)


async def _done(
    scenario: Scenario, world: World, model: Model, guarding: Guarding | None, learning: Learning
) -> tuple[str, int, int]:
    """The answer, the calls that were wanted, the tokens."""
    limits = replace(LIMITS, context=scenario.window)
    try:
        if guarding is None:
            answer, _, calls, usage = await bare_run(model, world, scenario.task, limits)
            return answer, calls, usage.total_tokens
        events = run(
            model,
            world.library(),
            (user(scenario.task),),
            limits=limits,
            options=ModelOptions(stream=False),
            guarding=guarding,
            learning=learning,
        )
        async with aclosing(events):
            async for event in events:
                if isinstance(event, RunFinished):
                    end = event
    except ModelError as error:
        return f"{type(error).__name__}: {error}", 0, 0
    return end.text, end.tool_calls, end.usage.total_tokens


def _part(scores: Sequence[Score]) -> float:
    return round(100 * sum(one.success for one in scores) / max(len(scores), 1), 1)
