"""Runs of dead workers are marked as failed."""

from datetime import timedelta

import pytest

from opposable.domain.records import (
    Run,
    get_utc_now,
)
from opposable.store import open_store

pytestmark = pytest.mark.anyio


async def test_only_runs_of_dead_workers_are_failed(tmp_path):
    async with open_store(f"sqlite:///{tmp_path}/s.sqlite") as store:
        await store.workers.record_heartbeat("alive")
        runs = [
            Run("r1", get_utc_now(), worker="dead"),
            Run("r2", get_utc_now(), worker="alive"),
            Run("r3", get_utc_now(), "finished", worker="dead"),
        ]
        await store.runs.save(*runs)
        assert list(await store.workers.fail_lost_runs(timedelta(seconds=10))) == ["r1"]
        assert [(await store.runs.get(one)).status for one in ("r1", "r2", "r3")] == ["failed", "running", "finished"]
        [lost] = await store.runs.list_events("r1")
        assert (lost.data["kind"], "may have taken effect" in lost.data["message"]) == ("lost", True)
        assert not await store.workers.fail_lost_runs(timedelta(seconds=10))
