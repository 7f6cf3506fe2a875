"""What every test may use."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The loop asynchronous tests run on."""
    return "asyncio"
