"""Rate limits: how many calls a key may still make."""

import math
import time
from dataclasses import dataclass
from typing import Protocol

from limits import RateLimitItem, RateLimitItemPerSecond
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter

from opposable.domain.specs import RateLimit


@dataclass(frozen=True, slots=True)
class RateLimitResult:
    """Whether a call may be made, how many more may follow at once, and the seconds until one may when none may."""

    allowed: bool
    remaining: int
    retry_after: float


class RateLimitBackend(Protocol):
    """Counts calls in a moving window: at most `limit.calls` in any `limit.seconds`."""

    async def hit(self, key: str, limit: RateLimit, cost: int = 1) -> RateLimitResult:
        """Count a call that costs `cost`, unless that goes over the limit. Raises: `StoreUnavailable`."""
        ...


class InProcessRateLimiter:
    """A limiter for one process."""

    def __init__(self) -> None:
        self._window = MovingWindowRateLimiter(MemoryStorage())

    async def hit(self, key: str, limit: RateLimit, cost: int = 1) -> RateLimitResult:
        """Count a call, unless that goes over the limit."""
        return await count_hit(self._window, key, limit, cost)


async def count_hit(window: MovingWindowRateLimiter, key: str, limit: RateLimit, cost: int) -> RateLimitResult:
    """One hit on a moving window, wherever it is kept."""
    item = _to_rate_limit_item(limit)
    allowed = await window.hit(item, key, cost=cost)
    reset, remaining = await window.get_window_stats(item, key)
    return RateLimitResult(allowed, max(0, remaining), 0.0 if allowed else max(0.0, reset - time.time()))


def _to_rate_limit_item(limit: RateLimit) -> RateLimitItem:
    """The limit in whole seconds; one of a broken number of seconds is stretched at the same rate, rounded down."""
    seconds = math.ceil(limit.seconds)
    return RateLimitItemPerSecond(max(1, math.floor(limit.calls * seconds / limit.seconds)), seconds)
