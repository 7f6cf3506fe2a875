"""The use of models adds up by key and day."""

from datetime import date

import pytest

from opposable.domain.usage import Usage
from opposable.store.model_usage import ModelUsage

pytestmark = pytest.mark.anyio


async def test_tokens_add_up_by_key_model_and_day(store):
    first, second = date(2026, 1, 1), date(2026, 1, 2)
    await store.model_usage.add([], first)
    await store.model_usage.add([ModelUsage("k", "a", Usage(1, 2, 1)), ModelUsage("", "a", Usage(5, 5, 1))], first)
    await store.model_usage.add([ModelUsage("k", "a", Usage(10, 20, 1, 4))], first)
    await store.model_usage.add([ModelUsage("k", "a", Usage(100, 200, 2, 40))], second)
    whole, anonymous = ModelUsage("k", "a", Usage(111, 222, 4, 44)), ModelUsage("", "a", Usage(5, 5, 1))
    assert await store.model_usage.list() == (whole, anonymous)
    assert await store.model_usage.list(second) == (ModelUsage("k", "a", Usage(100, 200, 2, 40)),)
    assert await store.model_usage.list(None, first) == (ModelUsage("k", "a", Usage(11, 22, 2, 4)), anonymous)
    by_day = ((first, "a", Usage(16, 27, 3, 4)), (second, "a", Usage(100, 200, 2, 40)))
    assert await store.model_usage.list_by_day() == by_day
    assert await store.model_usage.list_by_day(second) == by_day[1:]
