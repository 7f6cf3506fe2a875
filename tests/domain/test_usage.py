"""The cost of tokens."""

import pytest

from opposable.domain.usage import Price, Usage


@pytest.mark.parametrize(
    ("cached_input", "cost"), [(None, 5.0), (0.25, 4.4), (0.0, 4.2)], ids=["no price of its own", "cheaper", "free"]
)
def test_cached_input_tokens_cost_their_own_price(cached_input, cost):
    usage = Usage(1_000_000, 2_000_000, 1, cached_tokens=800_000)
    assert Price(1.0, 2.0, cached_input).compute_cost(usage) == pytest.approx(cost)


def test_more_cached_than_input_tokens_do_not_lower_the_cost():
    assert Price(1.0, 2.0, 0.5).compute_cost(Usage(1_000_000, 0, 1, cached_tokens=3_000_000)) == 0.5
