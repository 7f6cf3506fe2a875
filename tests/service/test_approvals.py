"""Requests for approval do not outlive their runs."""

import asyncio

import pytest

from opposable.domain.call_context import ApprovalRequest, CallContext
from opposable.domain.specs import FunctionToolSpec
from opposable.service.approvals import Approver
from opposable.store.factory import open_store

pytestmark = pytest.mark.anyio


async def test_a_run_that_is_cancelled_while_its_request_is_stored_leaves_none_pending(tmp_path, monkeypatch):
    async with open_store(f"sqlite:///{tmp_path}/store.sqlite") as store:
        add, is_stored = store.approvals.add, asyncio.Event()

        async def add_slowly(approval) -> None:
            await add(approval)
            is_stored.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(store.approvals, "add", add_slowly)
        spec = FunctionToolSpec(tool_id="shop", module_path="shop:refund")
        approver = Approver(store.approvals, lambda kind, data: None, "", 60.0)
        request = ApprovalRequest(spec, "shop", "shop", {"amount": 5}, CallContext(call_id="c", run_id="r"))
        waiting = asyncio.create_task(approver(request))
        await is_stored.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        [stored] = (await store.approvals.list()).items
    assert (stored.status, stored.reason) == ("expired", "the run ended")
