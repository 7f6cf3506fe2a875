import email.utils
from datetime import timedelta

import pytest

from opposable.domain.backoff import get_backoff_seconds, parse_retry_after
from opposable.domain.records import get_utc_now


def test_the_wait_doubles_up_to_its_maximum_less_a_random_part():
    for failed_attempts, longest in ((1, 0.5), (2, 1.0), (3, 2.0), (5, 8.0), (6, 10.0), (5000, 10.0)):
        waits = [get_backoff_seconds(failed_attempts, 0.5, 10.0) for _ in range(50)]
        assert longest / 2 <= min(waits) < max(waits) <= longest


def test_no_first_wait_is_no_wait():
    assert get_backoff_seconds(3, 0.0, 10.0) == 0.0


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("-1", 0.0), ("soon", None), ("", None)])
def test_the_wait_a_server_asks_for_is_a_number_of_seconds(header, seconds):
    assert parse_retry_after(header) == seconds


def test_the_wait_a_server_asks_for_may_be_a_date():
    assert parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    in_a_minute = email.utils.format_datetime(get_utc_now() + timedelta(minutes=1), usegmt=True)
    assert 55 < parse_retry_after(in_a_minute) <= 60
