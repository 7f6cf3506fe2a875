"""Retries of store operations while the database is unavailable."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

from opposable.domain.backoff import get_backoff_seconds
from opposable.domain.errors import StoreUnavailable

FIRST_WAIT_SECONDS = 0.2
MAX_WAIT_SECONDS = 5.0

T = TypeVar("T")

log = logging.getLogger("opposable.store")


async def retry_while_unavailable(operation: Callable[[], Awaitable[T]], max_seconds: float = math.inf) -> T:
    """Return the result of an operation, repeated until the database answers.

    A durable run outlives an outage of its database, so by default there is no time-out.

    Raises:
        StoreUnavailable: The database did not answer for `max_seconds`.
    """
    deadline = asyncio.get_running_loop().time() + max_seconds
    failed_attempts = 0
    while True:
        try:
            return await operation()
        except StoreUnavailable as error:
            if asyncio.get_running_loop().time() > deadline:
                raise
            failed_attempts += 1
            if failed_attempts == 1:
                log.warning("An operation waits for the store: %s", error)
            await asyncio.sleep(get_backoff_seconds(failed_attempts, FIRST_WAIT_SECONDS, MAX_WAIT_SECONDS))
