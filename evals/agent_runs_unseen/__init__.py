"""Scenarios of agent runs that no rule was developed with: everyday tasks in domains of their own."""

from pathlib import Path

from opposable.evals.agent_runs.scenario_loader import ScenarioSuite, load_scenarios

from .scenarios import UNSEEN_SCENARIOS

SUITE = ScenarioSuite(
    scenarios=UNSEEN_SCENARIOS,
    held_out_scenarios=(),
    scripted_models=load_scenarios(Path(__file__).parents[1] / "agent_runs").scripted_models,
)
