"""A browser for the tests of the console, which are skipped where there is no Chromium."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser
from tests.web.console.serving import EXECUTABLE, launch_browser


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """The loop that the tests of a module share with their browser."""
    return "asyncio"


@pytest.fixture(scope="module")
async def browser(anyio_backend) -> AsyncIterator[Browser]:
    """A browser for a module; each test opens pages in contexts of its own."""
    if EXECUTABLE is None:
        pytest.skip("Chromium is not installed; `make browser` installs it")
    async with launch_browser() as browser:
        yield browser
