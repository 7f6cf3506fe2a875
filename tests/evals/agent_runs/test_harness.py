"""Scenarios in simulated worlds: the bars they are measured for hold on scripted models."""

import pytest

from opposable.evals.agent_runs.harness import (
    VARIANTS,
    ScenarioScoreSheet,
    make_faultless_model,
    make_scripted_model,
    make_text_calling_model,
    score_scenarios,
)
from opposable.evals.agent_runs.scenarios import SCENARIOS

pytestmark = pytest.mark.anyio


async def build_score_sheet(model_for, variant: str, twice: bool = True) -> ScenarioScoreSheet:
    return ScenarioScoreSheet(
        [score async for score in score_scenarios(SCENARIOS, model_for, VARIANTS[variant], run_twice=twice)]
    )


def test_there_are_scenarios_of_every_kind_in_both_languages():
    kinds = {scenario.kind for scenario in SCENARIOS}
    assert len(SCENARIOS) >= 30
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert kinds >= {
        *("error recovery", "flaky tool", "argument name", "missing data", "unknown tool", "polling", "long chain"),
        *("relevance", "switching tool", "injected instructions"),
    }
    assert {bool(scenario.task.isascii()) for scenario in SCENARIOS} == {True, False}


@pytest.mark.parametrize("model_for", [make_scripted_model, make_text_calling_model])
async def test_misbehaviour_is_recovered_from_without_one_repeated_failure(model_for):
    sheet = await build_score_sheet(model_for, "all of it")
    assert [score.scenario.name for score in sheet.scores if not score.success or not score.repeat_score.success] == []
    assert [
        score.scenario.name
        for score in sheet.scores
        if score.repeated_failure_count or score.repeat_score.repeated_failure_count
    ] == []
    assert sum(score.repeat_score.requested_call_count for score in sheet.scores) < 0.9 * sum(
        score.requested_call_count for score in sheet.scores
    )


async def test_a_bare_loop_recovers_from_none_of_it():
    assert (await build_score_sheet(make_scripted_model, "bare loop", twice=False)).summary()["success %"] < 5


async def test_each_part_is_worth_something():
    whole = (await build_score_sheet(make_scripted_model, "all of it")).summary()
    for name in ("refusing", "telling", "deciding", "learning"):
        less = (await build_score_sheet(make_scripted_model, f"without {name}")).summary()
        assert less["success %"] < whole["success %"], name


async def test_a_model_that_makes_no_mistake_is_left_alone():
    guarded = await build_score_sheet(make_faultless_model, "all of it", twice=False)
    free = await build_score_sheet(make_faultless_model, "without guarding", twice=False)
    assert guarded.summary()["success %"] == 100
    assert [score.requested_call_count for score in guarded.scores] == [
        score.requested_call_count for score in free.scores
    ]
    assert [score.executed_call_count for score in guarded.scores] == [
        score.executed_call_count for score in free.scores
    ]
