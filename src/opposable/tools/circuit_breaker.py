"""Takes a tool that does not answer out of service for a while."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Circuit = Literal["closed", "open", "half_open"]
"""Closed: calls go through. Open: none does. Half open: one is tried."""


@dataclass(frozen=True, slots=True)
class Breaking:
    """When a tool is out of service.

    It is taken out when at least `least` calls of the last `window` seconds ended and a share of `rate` of them found
    it unavailable or out of time. After `rest` seconds one call is let through: it ends the rest or begins another.
    """

    rate: float = 0.5
    least: int = 5
    window: float = 60.0
    rest: float = 30.0


class Breaker:
    """The circuit of one tool. `clock` gives seconds that only grow."""

    def __init__(self, rules: Breaking, clock: Callable[[], float]) -> None:
        self._rules = rules
        self._clock = clock
        self._ends: deque[tuple[float, bool]] = deque(maxlen=1000)
        self._opened: float | None = None
        self._trying = False

    @property
    def state(self) -> Circuit:
        """How the circuit stands now."""
        if self._opened is None:
            return "closed"
        return "half_open" if self._clock() - self._opened >= self._rules.rest else "open"

    def wait(self) -> float:
        """Seconds until a call may be tried; 0.0 when one may be now."""
        if self._opened is None:
            return 0.0
        left = self._opened + self._rules.rest - self._clock()
        if left > 0:
            return left
        return 1.0 if self._trying else 0.0

    def begin(self) -> bool:
        """Whether a call may be made now; of several that ask while half open, one may. End it with `ended`."""
        if self.wait() > 0:
            return False
        self._trying = self._opened is not None
        return True

    def ended(self, answered: bool | None) -> None:
        """How a call ended: answered or not; None when it says nothing of the tool (a wrong argument, cancelled)."""
        trial, self._trying = self._trying, False
        if answered is None:
            return
        now = self._clock()
        if self._opened is not None:
            if trial:
                self._ends.clear()
                self._opened = None if answered else now
            return
        self._ends.append((now, answered))
        while self._ends[0][0] <= now - self._rules.window:
            self._ends.popleft()
        bad = sum(not fine for _, fine in self._ends)
        if not answered and len(self._ends) >= self._rules.least and bad >= self._rules.rate * len(self._ends):
            self._opened = now
