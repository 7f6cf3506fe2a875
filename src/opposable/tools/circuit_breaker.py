"""Takes a tool that does not answer out of service for a while."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

CircuitState = Literal["closed", "open", "half_open"]
"""Closed: calls go through. Open: none does. Half open: one is tried."""


@dataclass(frozen=True, slots=True)
class CircuitBreakerOptions:
    """When a tool is out of service.

    It is taken out when at least `least` calls of the last `window` seconds ended and a share of `rate` of them found
    it unavailable or out of time. After `rest` seconds one call is let through: it ends the rest or begins another.
    """

    failure_rate: float = 0.5
    min_calls: int = 5
    window_seconds: float = 60.0
    open_seconds: float = 30.0


class CircuitBreaker:
    """The circuit of one tool. `clock` gives seconds that only grow."""

    def __init__(self, options: CircuitBreakerOptions, clock: Callable[[], float]) -> None:
        self._options = options
        self._clock = clock
        self._recent_calls: deque[tuple[float, bool]] = deque(maxlen=1000)
        self._opened_at: float | None = None
        self._is_probing = False

    @property
    def state(self) -> CircuitState:
        """How the circuit stands now."""
        if self._opened_at is None:
            return "closed"
        return "half_open" if self._clock() - self._opened_at >= self._options.open_seconds else "open"

    def get_wait_seconds(self) -> float:
        """Seconds until a call may be tried; 0.0 when one may be now."""
        if self._opened_at is None:
            return 0.0
        left = self._opened_at + self._options.open_seconds - self._clock()
        if left > 0:
            return left
        return 1.0 if self._is_probing else 0.0

    def try_begin(self) -> bool:
        """Whether a call may be made now; of several that ask while half open, one may. End it with `ended`."""
        if self.get_wait_seconds() > 0:
            return False
        self._is_probing = self._opened_at is not None
        return True

    def record_end(self, answered: bool | None) -> None:
        """How a call ended: answered or not; None when it says nothing of the tool (a wrong argument, cancelled)."""
        trial, self._is_probing = self._is_probing, False
        if answered is None:
            return
        now = self._clock()
        if self._opened_at is not None:
            if trial:
                self._recent_calls.clear()
                self._opened_at = None if answered else now
            return
        self._recent_calls.append((now, answered))
        while self._recent_calls[0][0] <= now - self._options.window_seconds:
            self._recent_calls.popleft()
        bad = sum(not fine for _, fine in self._recent_calls)
        if (
            not answered
            and len(self._recent_calls) >= self._options.min_calls
            and bad >= self._options.failure_rate * len(self._recent_calls)
        ):
            self._opened_at = now
