"""The scenarios of agent runs in simulated environments, run by `opposable eval runs`."""

from opposable.evals.agent_runs.scenario_loader import ScenarioSuite

from .held_out_scenarios import HELD_OUT_SCENARIOS
from .scenarios import SCENARIOS
from .scripted_models import make_faultless_model, make_scripted_model, make_text_calling_model

SUITE = ScenarioSuite(
    SCENARIOS,
    HELD_OUT_SCENARIOS,
    {"bad": make_scripted_model, "bad-text": make_text_calling_model, "good": make_faultless_model},
)
