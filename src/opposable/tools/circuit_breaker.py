"""A circuit breaker: takes a tool that does not answer out of service for a while."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

CircuitState = Literal["closed", "open", "half_open"]
"""Closed: calls are made. Open: none is. Half open: one trial call is made."""

MAX_RECORDED_CALLS = 1000


@dataclass(frozen=True, slots=True)
class CircuitBreakerOptions:
    """When a tool is taken out of service.

    The circuit opens if at least `min_calls` calls ended within `window_seconds`, and at least the share
    `failure_rate` of them got no answer. After `open_seconds` one trial call is made. Its result closes the circuit
    or opens it again.
    """

    failure_rate: float = 0.5
    min_calls: int = 5
    window_seconds: float = 60.0
    open_seconds: float = 30.0


class CircuitBreaker:
    """The circuit of one tool. `clock` is a monotonic clock in seconds."""

    def __init__(self, options: CircuitBreakerOptions, clock: Callable[[], float]) -> None:
        self._options = options
        self._clock = clock
        self._recent_calls: deque[tuple[float, bool]] = deque(maxlen=MAX_RECORDED_CALLS)
        self._opened_at: float | None = None
        self._is_probing = False

    @property
    def state(self) -> CircuitState:
        """The current state of the circuit."""
        if self._opened_at is None:
            return "closed"
        return "half_open" if self._clock() - self._opened_at >= self._options.open_seconds else "open"

    def get_wait_seconds(self) -> float:
        """Return the seconds until a call may be tried; 0.0 if one may be now."""
        if self._opened_at is None:
            return 0.0
        remaining = self._opened_at + self._options.open_seconds - self._clock()
        if remaining > 0:
            return remaining
        return 1.0 if self._is_probing else 0.0

    def record_start(self) -> bool:
        """Record the start of a call, and return whether it is the trial. Report its end with `record_end`."""
        is_trial = self._opened_at is not None and self.get_wait_seconds() <= 0
        self._is_probing |= is_trial
        return is_trial

    def record_end(self, answered: bool | None, *, is_trial: bool = False) -> None:
        """Record the end of a call.

        Args:
            answered: Whether the tool answered; None if the call does not show it (invalid arguments, cancelled).
            is_trial: What `record_start` returned.
        """
        if is_trial:
            self._is_probing = False
        if answered is None:
            return
        now = self._clock()
        if self._opened_at is not None:
            if is_trial:
                self._recent_calls.clear()
                self._opened_at = None if answered else now
            return
        calls, options = self._recent_calls, self._options
        calls.append((now, answered))
        while calls[0][0] <= now - options.window_seconds:
            calls.popleft()
        if not answered and len(calls) >= options.min_calls:
            failures = sum(not was_answered for _, was_answered in calls)
            if failures >= options.failure_rate * len(calls):
                self._opened_at = now
