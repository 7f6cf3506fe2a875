"""A check that work grows linearly with its size, independent of the speed of the machine."""

import gc
import time
from collections.abc import Callable

GROWTH = 8
MAX_RATIO = GROWTH * 3
ATTEMPTS = 4
MIN_SECONDS = 0.01


def assert_linear(work: Callable[[int], None], size: int) -> None:
    """Assert that `work` on a size eight times as large takes at most 24 times the CPU time.

    Linear work takes 8 times as long, quadratic work 64 times. Times vary on a busy machine, so that one good attempt
    is enough.
    """
    ratios = []
    for _ in range(ATTEMPTS):
        small = max(_measure_cpu_seconds(work, size), MIN_SECONDS)
        ratios.append(_measure_cpu_seconds(work, size * GROWTH) / small)
        if ratios[-1] <= MAX_RATIO:
            return
    raise AssertionError(f"{GROWTH} times the size takes {min(ratios):.1f} times as long.")


def _measure_cpu_seconds(work: Callable[[int], None], size: int) -> float:
    gc.disable()  # a collection takes time in proportion to all objects of the test process
    try:
        started = time.process_time()
        work(size)
        return time.process_time() - started
    finally:
        gc.enable()
