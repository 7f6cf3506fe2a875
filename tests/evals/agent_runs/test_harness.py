"""The scenarios for development reach their target figures with scripted models."""

from pathlib import Path

import pytest

from opposable.domain.errors import ModelUnavailable
from opposable.evals.agent_runs.harness import (
    VARIANTS,
    ScenarioScoreSheet,
    score_scenarios,
)
from opposable.evals.agent_runs.scenario_loader import load_scenarios
from opposable.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio
SCENARIO_FOLDER = Path(__file__).parents[3] / "evals" / "agent_runs"
SUITE = load_scenarios(SCENARIO_FOLDER)


async def build_score_sheet(model_for, variant: str, twice: bool = True) -> ScenarioScoreSheet:
    return ScenarioScoreSheet(
        [score async for score in score_scenarios(SUITE.scenarios, model_for, VARIANTS[variant], run_twice=twice)]
    )


def test_there_are_scenarios_of_every_kind_in_both_languages():
    kinds = {scenario.kind for scenario in SUITE.scenarios}
    assert len(SUITE.scenarios) >= 30
    assert len({scenario.name for scenario in SUITE.scenarios}) == len(SUITE.scenarios)
    assert kinds >= {
        *("error recovery", "flaky tool", "argument name", "missing data", "unknown tool", "polling", "long chain"),
        *("relevance", "switching tool", "injected instructions"),
    }
    assert {bool(scenario.task.isascii()) for scenario in SUITE.scenarios} == {True, False}


@pytest.mark.parametrize("model_for", [SUITE.scripted_models["bad"], SUITE.scripted_models["bad-text"]])
async def test_the_guards_recover_from_misbehaviour_without_a_repeated_failure(model_for):
    sheet = await build_score_sheet(model_for, "all guards")
    assert [score.scenario.name for score in sheet.scores if not score.success or not score.repeat_score.success] == []
    assert [
        score.scenario.name
        for score in sheet.scores
        if score.repeated_failure_count or score.repeat_score.repeated_failure_count
    ] == []
    assert sum(score.repeat_score.requested_call_count for score in sheet.scores) < 0.9 * sum(
        score.requested_call_count for score in sheet.scores
    )


async def test_the_baseline_loop_does_not_recover_from_misbehaviour():
    assert (await build_score_sheet(SUITE.scripted_models["bad"], "bare loop", twice=False)).summary()["success %"] < 5


async def test_each_guard_raises_the_success_rate():
    whole = (await build_score_sheet(SUITE.scripted_models["bad"], "all guards")).summary()
    for name in ("block repeats", "status notes", "replanning", "larger timeouts"):
        less = (await build_score_sheet(SUITE.scripted_models["bad"], f"without {name}")).summary()
        assert less["success %"] < whole["success %"], name


async def test_a_run_that_ends_with_an_error_of_the_model_is_no_success():
    error = ModelUnavailable("The server does not answer.")
    for variant in ("all guards", "bare loop"):
        sheet = await build_score_sheet(lambda *_: ScriptedModel(error), variant, twice=False)
        assert sheet.summary()["success %"] == 0
        assert {score.error for score in sheet.scores} == {error}


async def test_the_guards_do_not_disturb_a_faultless_model():
    guarded = await build_score_sheet(SUITE.scripted_models["good"], "all guards", twice=False)
    free = await build_score_sheet(SUITE.scripted_models["good"], "no guards", twice=False)
    assert guarded.summary()["success %"] == 100
    assert [score.requested_call_count for score in guarded.scores] == [
        score.requested_call_count for score in free.scores
    ]
    assert [score.executed_call_count for score in guarded.scores] == [
        score.executed_call_count for score in free.scores
    ]
