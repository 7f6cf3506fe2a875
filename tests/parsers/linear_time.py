"""A check that work grows linearly with its size, independent of the speed of the machine."""

import time
from collections.abc import Callable

GROWTH = 4
ATTEMPTS = 4
MIN_SECONDS = 0.01


def assert_linear(work: Callable[[int], None], size: int) -> None:
    """Assert that `work` on a size four times as large takes far less than sixteen times the CPU time.

    Linear work takes four times as long, quadratic work sixteen times. Times vary, so that one good attempt is enough.
    """
    ratios = []
    for _ in range(ATTEMPTS):
        small = max(_measure_cpu_seconds(work, size), MIN_SECONDS)
        ratios.append(_measure_cpu_seconds(work, size * GROWTH) / small)
        if ratios[-1] < GROWTH * 2.5:
            return
    raise AssertionError(
        f"The time grows faster than the size: {GROWTH} times the size takes {min(ratios):.1f} times as long."
    )


def _measure_cpu_seconds(work: Callable[[int], None], size: int) -> float:
    started = time.process_time()
    work(size)
    return time.process_time() - started
