"""Tasks that run in the background of a block."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

log = logging.getLogger("opposable.service")


@asynccontextmanager
async def run_in_background(coroutine: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Run a coroutine while the block runs, and cancel it at the end. An error that ends it before is logged."""
    task = asyncio.create_task(coroutine, name=name)
    task.add_done_callback(_log_error)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


def _log_error(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("The background task %r failed.", task.get_name(), exc_info=error)
