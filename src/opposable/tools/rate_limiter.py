"""How often a tool may be called."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # see tools/base.py
    from opposable.domain.specs import RateLimit


class CallAllowance(Protocol):
    """Whether a call may be made, and the seconds until one may when none may now."""

    @property
    def allowed(self) -> bool:
        """Whether it was counted and may be made."""
        ...

    @property
    def retry_after(self) -> float:
        """Seconds until one may be made; 0.0 where it is allowed."""
        ...


class ToolRateLimiter(Protocol):
    """Counts calls against limits: in this process, or for several processes on a server they share."""

    async def hit(self, key: str, limit: "RateLimit") -> CallAllowance:
        """Count a call of `key`, unless that goes over the limit.

        Raises: a kind of `OpposableError` when the count cannot be reached; the call is not made then.
        """
        ...


@dataclass(frozen=True, slots=True)
class LocalCallAllowance:
    """An `Allowance`."""

    allowed: bool
    retry_after: float = 0.0


class LocalRateLimiter:
    """Limits of this process: exact, since the times of the last calls are kept. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._call_times: dict[str, deque[float]] = {}

    async def hit(self, key: str, limit: "RateLimit") -> LocalCallAllowance:
        """As `Limiter.hit`; never raises."""
        now = self._clock()
        taken = self._call_times.get(key)
        if taken is None or taken.maxlen != limit.calls:
            taken = self._call_times[key] = deque(taken or (), maxlen=limit.calls)
        if len(taken) == limit.calls and (left := taken[0] + limit.seconds - now) > 0:
            return LocalCallAllowance(allowed=False, retry_after=left)
        taken.append(now)
        return LocalCallAllowance(allowed=True)
