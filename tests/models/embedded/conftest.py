"""pip reads the index of the test only."""

import os

import pytest
from tests.models.package_server import PIP_SETTINGS


@pytest.fixture
def pip_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the settings of pip and uv by those of tests."""
    for name in os.environ:
        if name.startswith(("PIP_", "UV_")):
            monkeypatch.delenv(name)
    for name, value in {**PIP_SETTINGS, "PIP_INDEX_URL": ""}.items():
        monkeypatch.setenv(name, value)
