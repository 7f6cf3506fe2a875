import pytest

from opposable.domain.rate_limits import InProcessRateLimiter, RateLimitResult
from opposable.domain.specs import RateLimit

pytestmark = pytest.mark.anyio


class ManualClock:
    """A clock that moves only when the test sets `now`."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_calls_within_the_limit_are_allowed():
    limiter = InProcessRateLimiter(ManualClock())
    results = [await limiter.hit("key", RateLimit(calls=2, seconds=10)) for _ in range(3)]
    assert [result.allowed for result in results] == [True, True, False]


async def test_a_refused_call_reports_when_the_oldest_call_leaves_the_window():
    clock = ManualClock()
    limiter, limit = InProcessRateLimiter(clock), RateLimit(calls=2, seconds=10)
    await limiter.hit("key", limit)
    clock.now += 4
    await limiter.hit("key", limit)
    clock.now += 1
    assert await limiter.hit("key", limit) == RateLimitResult(allowed=False, retry_after=5.0)
    clock.now += 5
    assert await limiter.hit("key", limit) == RateLimitResult(allowed=True)


async def test_a_cost_counts_as_several_calls():
    clock = ManualClock()
    limiter, limit = InProcessRateLimiter(clock), RateLimit(calls=3, seconds=10)
    assert await limiter.hit("key", limit, cost=2) == RateLimitResult(allowed=True)
    clock.now += 3
    assert await limiter.hit("key", limit, cost=2) == RateLimitResult(allowed=False, retry_after=7.0)
    assert await limiter.hit("key", limit, cost=4) == RateLimitResult(allowed=False, retry_after=10)


async def test_keys_are_counted_apart_and_a_fraction_of_a_second_is_exact():
    limiter, limit = InProcessRateLimiter(ManualClock()), RateLimit(calls=2, seconds=0.5)
    assert [(await limiter.hit("a", limit)).allowed for _ in range(3)] == [True, True, False]
    assert (await limiter.hit("b", limit)).allowed


async def test_a_changed_limit_applies_to_the_calls_already_counted():
    limiter = InProcessRateLimiter(ManualClock())
    for _ in range(3):
        await limiter.hit("key", RateLimit(calls=5, seconds=10))
    assert not (await limiter.hit("key", RateLimit(calls=2, seconds=10))).allowed
    assert (await limiter.hit("key", RateLimit(calls=3, seconds=10))).retry_after == 0.0
