"""Loads the scenarios of agent runs from a folder; the repository has them in evals/agent_runs."""

import hashlib
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opposable.domain.errors import BadInput
from opposable.evals.agent_runs.harness import ScenarioModelFactory
from opposable.evals.agent_runs.scenario import Scenario

DEFAULT_SCENARIO_FOLDER = Path("evals", "agent_runs")


@dataclass(frozen=True, slots=True)
class ScenarioSuite:
    """The scenarios for development, those held out, and the scripted models by name."""

    scenarios: tuple[Scenario, ...]
    held_out_scenarios: tuple[Scenario, ...]
    scripted_models: Mapping[str, ScenarioModelFactory]


def load_scenarios(folder: Path = DEFAULT_SCENARIO_FOLDER) -> ScenarioSuite:
    """Import the package in `folder` and return its `SUITE`.

    Raises:
        BadInput: The folder has no `__init__.py`, or that defines no `SUITE`.
    """
    source = folder.resolve() / "__init__.py"
    advice = "Run the command in a checkout of the repository, or pass the folder of the scenarios with --scenarios."
    if not source.is_file():
        raise BadInput(f"`{folder}` contains no scenarios (no __init__.py). {advice}")
    name = f"opposable_scenarios_{hashlib.sha256(bytes(source.parent)).hexdigest()[:12]}"
    module = sys.modules.get(name)
    if module is None:
        spec = importlib.util.spec_from_file_location(name, source, submodule_search_locations=[str(source.parent)])
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    suite = getattr(module, "SUITE", None)
    if not isinstance(suite, ScenarioSuite):
        raise BadInput(f"`{source}` defines no `SUITE` of type ScenarioSuite. {advice}")
    return suite
