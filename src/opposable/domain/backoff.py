"""How long to wait before a request is sent again: exponential backoff with jitter, or what the server asks for."""

import email.utils
import random
import time

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


def parse_retry_after(header: str) -> float | None:
    """Return the seconds of a `Retry-After` header, a number or an HTTP date; None if it is neither."""
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
