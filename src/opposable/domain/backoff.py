"""Exponential backoff with jitter, for every retry loop."""

import random

_MAX_DOUBLINGS = 60
"""Doublings after which the wait stops growing, so that it never overflows a float."""

_GENERATOR = random.Random()  # noqa: S311 - not a secret
"""A generator of its own: retries in a thread must not change the global state that a program may have seeded."""


def get_backoff_seconds(failed_attempts: int, first_seconds: float, max_seconds: float) -> float:
    """Return the seconds to wait before the next attempt.

    The wait doubles with each failed attempt. Up to half of it is left out at random, so that many callers do not
    retry at the same moment.

    Args:
        failed_attempts: Attempts that have failed so far, at least 1.
        first_seconds: The longest wait after the first failed attempt.
        max_seconds: The longest wait after any attempt.
    """
    longest = min(max_seconds, first_seconds * 2.0 ** min(failed_attempts - 1, _MAX_DOUBLINGS))
    return longest * _GENERATOR.uniform(0.5, 1.0)
