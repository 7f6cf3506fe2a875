"""Rate limits: the protocol of a limiter, its result, and the limiter of one process."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # pydantic is loaded only where specs are used
    from opposable.domain.specs import RateLimit


@dataclass(frozen=True, slots=True)
class RateLimitResult:
    """The result of counting one call.

    `allowed` says whether the call was counted and may be made. `retry_after` is the number of seconds until a refused
    call may be made, 0.0 for an allowed one.
    """

    allowed: bool
    retry_after: float = 0.0


class RateLimiter(Protocol):
    """Counts calls in a moving window: at most `limit.calls` in any `limit.seconds`."""

    async def hit(self, key: str, limit: "RateLimit", cost: int = 1) -> RateLimitResult:
        """Count `cost` calls of `key`, such as a tool id or an API key, unless they exceed the limit.

        Raises:
            OpposableError: The counter cannot be reached. The caller must not make the call.
        """
        ...


class InProcessRateLimiter:
    """A rate limiter for one process. It is exact, because it stores the time of each counted call."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._call_times: dict[str, deque[float]] = {}

    async def hit(self, key: str, limit: "RateLimit", cost: int = 1) -> RateLimitResult:
        """Count a call as `RateLimiter.hit` does. Never raises."""
        now = self._clock()
        times = self._call_times.get(key)
        if times is None or times.maxlen != limit.calls:
            times = self._call_times[key] = deque(times or (), maxlen=limit.calls)
        while times and times[0] + limit.seconds <= now:
            times.popleft()
        remaining = limit.calls - len(times)
        if cost <= remaining:
            times.extend([now] * cost)
            return RateLimitResult(allowed=True)
        # A cost above the whole limit is never allowed; report one full window.
        retry_after = times[cost - remaining - 1] + limit.seconds - now if cost <= limit.calls else limit.seconds
        return RateLimitResult(allowed=False, retry_after=retry_after)
