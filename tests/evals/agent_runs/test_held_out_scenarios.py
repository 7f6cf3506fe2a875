"""Scenarios held out: they can be done, nothing does them by accident, and what holds for the others holds for them."""

import orjson
import pytest
from typer.testing import CliRunner

from opposable.cli import cli
from opposable.domain.errors import ToolFailed, ToolUnavailable
from opposable.evals.agent_runs.harness import VARIANTS, Sheet, scored, scripted, well_behaved, written
from opposable.evals.agent_runs.held_out_scenarios import HELD
from opposable.evals.agent_runs.scenarios import SCENARIOS

pytestmark = pytest.mark.anyio
NAMES = [scenario.name for scenario in HELD]


async def sheet_of(model_for, variant: str, twice: bool = True) -> Sheet:
    return Sheet([score async for score in scored(HELD, model_for, VARIANTS[variant], twice=twice)])


def tools_of(scenarios) -> set[str]:
    return {name for scenario in scenarios for name in scenario.make().tools}


def test_they_are_other_tasks_with_other_tools_in_both_languages():
    assert len(set(NAMES)) == 16
    assert not {one.task for one in HELD} & {one.task for one in SCENARIOS}
    assert not tools_of(HELD) & tools_of(SCENARIOS)
    assert sum(not scenario.task.isascii() for scenario in HELD) == 6
    assert {scenario.kind for scenario in HELD} == {
        *("error recovery", "flaky tool", "argument name", "argument type", "missing data", "unknown tool", "polling"),
        *("long chain", "relevance", "switching tool", "injected instructions", "pagination"),
    }


@pytest.mark.parametrize("variant", ["all of it", "without guarding", "bare loop"])
async def test_each_can_be_done_by_its_plan(variant):
    sheet = await sheet_of(well_behaved, variant, twice=False)
    assert [score.scenario.name for score in sheet.scores if not score.success] == []
    assert all(score.calls <= 7 for score in sheet.scores)


@pytest.mark.parametrize("scenario", HELD, ids=NAMES)
def test_a_world_that_nobody_touched_is_no_success(scenario):
    assert not scenario.goal(scenario.make(), "Done. 完成。")


@pytest.mark.parametrize("scenario", [one for one in HELD if len(one.plan) > 1], ids=lambda one: one.name)
async def test_half_of_a_plan_is_no_success(scenario):
    world = scenario.make()
    if world.state.get("timeouts"):
        world.state["timeouts"] = 0
    for move in scenario.plan[:-1]:
        name, arguments = move.right
        await world.tools[name](**arguments)
    assert not scenario.goal(world, scenario.answer)


async def test_a_valve_that_was_opened_without_a_reading_is_no_success():
    scenario = next(one for one in HELD if one.name == "dry tomatoes")
    world = scenario.make()
    with pytest.raises(ToolUnavailable):
        await world.tools["soil_moisture"](zone=2)
    await world.tools["set_valve"](zone=2, position="open")
    assert not scenario.goal(world, scenario.answer)


@pytest.mark.parametrize(("employee", "success"), [("赵磊", True), ("李明", False)])
async def test_leave_asked_for_in_another_name_is_no_success(employee, success):
    scenario = next(one for one in HELD if one.name == "查不到的员工")
    world = scenario.make()
    with pytest.raises(ToolFailed):
        await world.tools["submit_leave"](
            employee_no=employee, leave_type="ANNUAL", first_day="2026-12-10", last_day="2026-12-10"
        )
    assert scenario.goal(world, f"工号不存在：{employee}") == success


@pytest.mark.parametrize("model_for", [scripted, written])
async def test_misbehaviour_is_recovered_from_without_one_repeated_failure(model_for):
    sheet = await sheet_of(model_for, "all of it")
    assert [score.scenario.name for score in sheet.scores if not score.success or not score.again.success] == []
    assert [score.scenario.name for score in sheet.scores if score.repeats or score.again.repeats] == []
    assert sum(score.again.calls for score in sheet.scores) < sum(score.calls for score in sheet.scores)


async def test_a_bare_loop_recovers_from_next_to_none_of_it():
    assert (await sheet_of(scripted, "bare loop", twice=False)).summary()["success %"] < 10


def test_they_are_run_in_place_of_the_others():
    def kinds_run(*options: str) -> list[str]:
        done = CliRunner().invoke(cli, ["eval", "runs", "--only", "bare loop", "--json", *options])
        assert done.exit_code == 0
        return orjson.loads(done.stdout)["bare loop"]["failed"]

    assert set(kinds_run("--held")) < set(NAMES)
    assert not set(kinds_run("--kind", "polling")) & set(NAMES)
    assert kinds_run("--held", "--kind", "pagination") == ["fewest pieces"]
