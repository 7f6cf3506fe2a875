"""Messages are grouped by their masked form."""

import pytest

from opposable.builtin_tools.logs.summary import mask_message


@pytest.mark.parametrize(
    ("message", "mask"),
    [
        ("order 17 of 3,000.50", "order <n> of <n>"),
        ("id 7f3c2a91-55d0-4b6e-9a55-0d8d2f6b1e11 gone", "id <uuid> gone"),
        ("at 2026-11-02T09:00:00.123Z and 09:00:01", "at <time> and <time>"),
        ("10.0.0.12:5432 refused", "<ip> refused"),
        ("cannot read /var/lib/shop/x-1.db", "cannot read <path>"),
        ("GET https://example.com/a?b=1 failed", "GET <url> failed"),
        ("mail to a.b@example.com", "mail to <email>"),
        ("pointer 0xdeadBEEF, commit 3f2a9c81d", "pointer <hex>, commit <hex>"),
        ("数据库连接超时（3000毫秒）", "数据库连接超时（<n>毫秒）"),
        ("502 POST /api/pay/17", "502 POST <path>"),
        ("deadline exceeded", "deadline exceeded"),
    ],
)
def test_variable_parts_of_a_message_are_masked(message, mask):
    assert mask_message(message) == mask
