"""Approvals are decided once."""

from dataclasses import replace

import pytest
from tests.store.records import START

from opposable.domain.errors import BadInput
from opposable.domain.records import (
    Approval,
    canonical_sha256,
)

pytestmark = pytest.mark.anyio


async def test_approval_is_decided_once_and_bound_to_its_arguments(store):
    arguments = {"path": "/x", "内容": [1, 2.5, None]}
    approval = Approval("p1", "r", "c", "write", arguments, canonical_sha256(arguments), START, owner="k")
    await store.approvals.add(approval)
    with pytest.raises(BadInput, match="already"):
        await store.approvals.add(approval)
    assert (await store.approvals.list(status="pending", owner="k")).items == (approval,)
    decided = await store.approvals.decide("p1", "approved", decided_by="ann", reason="好")
    assert replace(decided, decided_at=None) == replace(approval, status="approved", decided_by="ann", reason="好")
    assert await store.approvals.decide("p1", "denied", decided_by="bob") is None
    assert await store.approvals.get("p1") == decided
