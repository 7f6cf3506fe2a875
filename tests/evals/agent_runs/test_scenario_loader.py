"""Scenarios are loaded from a folder, once, or refused with advice."""

from pathlib import Path

import pytest

from opposable.domain.errors import BadInput
from opposable.evals.agent_runs.scenario_loader import load_scenarios

SCENARIO_FOLDER = Path(__file__).parents[3] / "evals" / "agent_runs"


def test_the_suite_of_the_repository_is_loaded_once():
    suite = load_scenarios(SCENARIO_FOLDER)
    assert load_scenarios(SCENARIO_FOLDER) is suite
    assert set(suite.scripted_models) == {"bad", "bad-text", "good"}


def test_a_folder_without_scenarios_is_refused_with_advice(tmp_path):
    with pytest.raises(BadInput, match=r"contains no scenarios \(no __init__.py\). Run the command in a checkout"):
        load_scenarios(tmp_path)


def test_a_package_without_a_suite_is_refused(tmp_path):
    (tmp_path / "__init__.py").write_text("SUITE = 1\n")
    with pytest.raises(BadInput, match="defines no `SUITE`"):
        load_scenarios(tmp_path)
