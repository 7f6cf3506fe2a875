"""Scenarios in simulated worlds: the bars they are measured for hold on scripted models."""

import pytest

from opposable.evals.agent_runs.harness import VARIANTS, Sheet, scored, scripted, well_behaved, written
from opposable.evals.agent_runs.scenarios import SCENARIOS

pytestmark = pytest.mark.anyio


async def sheet_of(model_for, variant: str, twice: bool = True) -> Sheet:
    return Sheet([score async for score in scored(SCENARIOS, model_for, VARIANTS[variant], twice=twice)])


def test_there_are_scenarios_of_every_kind_in_both_languages():
    kinds = {scenario.kind for scenario in SCENARIOS}
    assert len(SCENARIOS) >= 30
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert kinds >= {
        *("error recovery", "flaky tool", "argument name", "missing data", "unknown tool", "polling", "long chain"),
        *("relevance", "switching tool", "injected instructions"),
    }
    assert {bool(scenario.task.isascii()) for scenario in SCENARIOS} == {True, False}


@pytest.mark.parametrize("model_for", [scripted, written])
async def test_misbehaviour_is_recovered_from_without_one_repeated_failure(model_for):
    sheet = await sheet_of(model_for, "all of it")
    assert [score.scenario.name for score in sheet.scores if not score.success or not score.again.success] == []
    assert [score.scenario.name for score in sheet.scores if score.repeats or score.again.repeats] == []
    assert sum(score.again.calls for score in sheet.scores) < 0.9 * sum(score.calls for score in sheet.scores)


async def test_a_bare_loop_recovers_from_none_of_it():
    assert (await sheet_of(scripted, "bare loop", twice=False)).summary()["success %"] < 5


async def test_each_part_is_worth_something():
    whole = (await sheet_of(scripted, "all of it")).summary()
    for name in ("refusing", "telling", "deciding", "learning"):
        less = (await sheet_of(scripted, f"without {name}")).summary()
        assert less["success %"] < whole["success %"], name


async def test_a_model_that_makes_no_mistake_is_left_alone():
    guarded = await sheet_of(well_behaved, "all of it", twice=False)
    free = await sheet_of(well_behaved, "without guarding", twice=False)
    assert guarded.summary()["success %"] == 100
    assert [score.calls for score in guarded.scores] == [score.calls for score in free.scores]
    assert [score.made for score in guarded.scores] == [score.made for score in free.scores]
