"""The held-out and the unseen scenarios can be solved, not by accident; the held-out ones reach their target figures."""

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from opposable.cli import cli
from opposable.domain.errors import ToolFailed, ToolUnavailable
from opposable.evals.agent_runs.harness import (
    VARIANTS,
    ScenarioScoreSheet,
    score_scenarios,
)
from opposable.evals.agent_runs.scenario_loader import load_scenarios

pytestmark = pytest.mark.anyio
SCENARIO_FOLDER = Path(__file__).parents[3] / "evals" / "agent_runs"
SUITE = load_scenarios(SCENARIO_FOLDER)
UNSEEN_SCENARIOS = load_scenarios(SCENARIO_FOLDER.with_name("agent_runs_unseen")).scenarios
BOTH_SETS = [*SUITE.held_out_scenarios, *UNSEEN_SCENARIOS]
NAMES = [scenario.name for scenario in SUITE.held_out_scenarios]


async def build_score_sheet(
    model_for, variant: str, twice: bool = True, scenarios=SUITE.held_out_scenarios
) -> ScenarioScoreSheet:
    scores = score_scenarios(scenarios, model_for, VARIANTS[variant], run_twice=twice)
    return ScenarioScoreSheet([score async for score in scores])


def list_tool_names(scenarios) -> set[str]:
    return {name for scenario in scenarios for name in scenario.make_environment().tools}


def test_held_out_scenarios_have_other_tasks_and_tools_in_both_languages():
    assert len(set(NAMES)) == 16
    assert not {one.task for one in SUITE.held_out_scenarios} & {one.task for one in SUITE.scenarios}
    assert not list_tool_names(SUITE.held_out_scenarios) & list_tool_names(SUITE.scenarios)
    assert sum(not scenario.task.isascii() for scenario in SUITE.held_out_scenarios) == 6
    assert {scenario.kind for scenario in SUITE.held_out_scenarios} == {
        *("error recovery", "flaky tool", "argument name", "argument type", "missing data", "unknown tool", "polling"),
        *("long chain", "relevance", "switching tool", "injected instructions", "pagination"),
    }


def test_unseen_scenarios_have_other_tasks_and_tools():
    assert len({one.name for one in UNSEEN_SCENARIOS}) == len(UNSEEN_SCENARIOS) == 56
    assert not list_tool_names(UNSEEN_SCENARIOS) & list_tool_names([*SUITE.scenarios, *SUITE.held_out_scenarios])
    assert sum(not scenario.task.isascii() for scenario in UNSEEN_SCENARIOS) == 20


@pytest.mark.parametrize("variant", ["all guards", "no guards", "bare loop"])
async def test_each_plan_reaches_its_goal(variant):
    sheet = await build_score_sheet(SUITE.scripted_models["good"], variant, twice=False, scenarios=BOTH_SETS)
    assert [score.scenario.name for score in sheet.scores if not score.success] == []
    assert all(score.requested_call_count <= 7 for score in sheet.scores)


@pytest.mark.parametrize("scenario", BOTH_SETS, ids=lambda one: one.name)
def test_an_unchanged_environment_does_not_reach_the_goal(scenario):
    assert not scenario.is_goal_reached(scenario.make_environment(), "Done. 完成。")


@pytest.mark.parametrize(
    "scenario", [one for one in SUITE.held_out_scenarios if len(one.plan) > 1], ids=lambda one: one.name
)
async def test_an_incomplete_plan_does_not_reach_the_goal(scenario):
    environment = scenario.make_environment()
    if environment.state.get("timeouts"):
        environment.state["timeouts"] = 0
    for move in scenario.plan[:-1]:
        name, arguments = move.right_call
        await environment.tools[name](**arguments)
    assert not scenario.is_goal_reached(environment, scenario.answer)


async def test_opening_a_valve_without_a_reading_does_not_reach_the_goal():
    scenario = next(one for one in SUITE.held_out_scenarios if one.name == "dry tomatoes")
    environment = scenario.make_environment()
    with pytest.raises(ToolUnavailable):
        await environment.tools["soil_moisture"](zone=2)
    await environment.tools["set_valve"](zone=2, position="open")
    assert not scenario.is_goal_reached(environment, scenario.answer)


@pytest.mark.parametrize(("employee", "success"), [("赵磊", True), ("李明", False)])
async def test_a_request_for_another_employee_does_not_reach_the_goal(employee, success):
    scenario = next(one for one in SUITE.held_out_scenarios if one.name == "查不到的员工")
    environment = scenario.make_environment()
    with pytest.raises(ToolFailed):
        await environment.tools["submit_leave"](
            employee_no=employee, leave_type="ANNUAL", first_day="2026-12-10", last_day="2026-12-10"
        )
    assert scenario.is_goal_reached(environment, f"工号不存在：{employee}") == success


@pytest.mark.parametrize("model_for", [SUITE.scripted_models["bad"], SUITE.scripted_models["bad-text"]])
async def test_the_guards_recover_from_misbehaviour_without_a_repeated_failure(model_for):
    sheet = await build_score_sheet(model_for, "all guards")
    assert [score.scenario.name for score in sheet.scores if not score.success or not score.repeat_score.success] == []
    assert [
        score.scenario.name
        for score in sheet.scores
        if score.repeated_failure_count or score.repeat_score.repeated_failure_count
    ] == []
    assert sum(score.repeat_score.requested_call_count for score in sheet.scores) < sum(
        score.requested_call_count for score in sheet.scores
    )


async def test_the_baseline_loop_recovers_from_almost_no_misbehaviour():
    assert (await build_score_sheet(SUITE.scripted_models["bad"], "bare loop", twice=False)).summary()["success %"] < 10


def test_the_held_option_selects_the_held_out_scenarios():
    def run_scenarios(*options: str) -> list[str]:
        done = CliRunner().invoke(
            cli, ["eval", "runs", "--scenarios", str(SCENARIO_FOLDER), "--only", "bare loop", "--json", *options]
        )
        assert done.exit_code == 0
        return orjson.loads(done.stdout)["bare loop"]["failed"]

    assert set(run_scenarios("--held")) < set(NAMES)
    assert not set(run_scenarios("--kind", "polling")) & set(NAMES)
    assert run_scenarios("--held", "--kind", "pagination") == ["fewest pieces"]
