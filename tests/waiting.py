"""Waiting for what happens in another task or process."""

import asyncio
from collections.abc import Callable


async def wait_until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Return as soon as the condition holds; raise TimeoutError if it does not in time."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)
