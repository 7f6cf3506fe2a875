"""What every test may use."""

import signal

import pytest
from hypothesis import settings

settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

# A shell starts background jobs with SIGINT ignored, and programs inherit that: the tests that stop programs need it back.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    """The loop asynchronous tests run on."""
    return "asyncio"
