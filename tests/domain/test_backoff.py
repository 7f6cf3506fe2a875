from opposable.domain.backoff import get_backoff_seconds


def test_the_wait_doubles_up_to_its_maximum_less_a_random_part():
    for failed_attempts, longest in ((1, 0.5), (2, 1.0), (3, 2.0), (5, 8.0), (6, 10.0), (5000, 10.0)):
        waits = [get_backoff_seconds(failed_attempts, 0.5, 10.0) for _ in range(50)]
        assert longest / 2 <= min(waits) < max(waits) <= longest


def test_no_first_wait_is_no_wait():
    assert get_backoff_seconds(3, 0.0, 10.0) == 0.0
