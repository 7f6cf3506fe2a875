"""Changed definitions of MCP tools wait for acceptance."""

from dataclasses import replace

import pytest
from tests.store.records import START

from opposable.domain.records import (
    ToolPin,
)

pytestmark = pytest.mark.anyio


async def test_pending_pin_waits_for_acceptance(store):
    pin = ToolPin("server", "read", "a" * 64, {"name": "read"}, START, "b" * 64, {"name": "read", "x": "变"})
    await store.pins.put(pin)
    assert await store.pins.list_for_server("server") == (pin,)
    assert not await store.pins.accept("server", "read", "c" * 64)
    assert not await store.pins.accept("server", "read", "")
    assert await store.pins.accept("server", "read", "b" * 64)
    [accepted] = await store.pins.list_for_server("server")
    assert replace(accepted, pinned_at=START) == ToolPin("server", "read", "b" * 64, pin.pending, START)
