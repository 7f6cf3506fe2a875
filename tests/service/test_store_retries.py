"""Retries of store operations."""

import pytest

from opposable.domain.errors import StoreUnavailable
from opposable.service import store_retries
from opposable.service.store_retries import retry_while_unavailable

pytestmark = pytest.mark.anyio


async def test_an_operation_that_waits_for_the_store_is_logged_once(monkeypatch, caplog):
    monkeypatch.setattr(store_retries, "FIRST_WAIT_SECONDS", 0.001)
    errors = [StoreUnavailable("The Valkey server does not answer: ConnectionError") for _ in range(3)]

    async def read():
        if errors:
            raise errors.pop()
        return "value"

    assert await retry_while_unavailable(read) == "value"
    assert [record.getMessage() for record in caplog.records] == [
        "An operation waits for the store: The Valkey server does not answer: ConnectionError"
    ]
