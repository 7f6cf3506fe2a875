"""Skips the tests of the console where there is no Chromium."""

import pytest
from tests.web.console.serving import EXECUTABLE


@pytest.fixture(autouse=True)
def _require_chromium():
    if EXECUTABLE is None:
        pytest.skip("Chromium is not installed; `make browser` installs it")
