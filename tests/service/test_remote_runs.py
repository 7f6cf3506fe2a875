"""Runs of worker processes, seen from the process that queued them. No worker runs here: the tests end the runs."""

import asyncio
from dataclasses import replace

import psycopg
import pytest
from tests.servers import postgresql  # noqa: F401
from tests.service.processes import wait_for
from tests.waiting import wait_until
from tests.web.api.chat_serving import create_settings, serve_service

from opposable.domain.errors import StoreError
from opposable.domain.records import Run
from opposable.models.scripted import ScriptedModel
from opposable.service.remote_runs import RemoteRuns
from opposable.service.service import Service, open_service
from opposable.store.runs import RunRepository

pytestmark = pytest.mark.anyio


async def find_run(service: Service) -> Run:
    async def find() -> Run | None:
        return next(iter((await service.store.runs.list()).items), None)

    return await wait_for(find)


async def test_a_caller_waits_for_the_answer_through_an_outage_of_the_store(tmp_path, postgresql):  # noqa: F811
    url = postgresql.new_database()
    async with serve_service(tmp_path, ScriptedModel(), database_url=url) as (session, service):
        service.remote_runs = RemoteRuns(service.store, service.runner)
        asking = asyncio.create_task(session.post("/agent/chat", json={"message": "hi"}))
        run = await find_run(service)
        postgresql.block_connections(url)
        await asyncio.sleep(1)
        assert not asking.done()
        postgresql.allow_connections(url)
        await service.store.runs.save(replace(run, status="finished", text="好"))
        async with await asyncio.wait_for(asking, 30) as response:
            assert (response.status, (await response.json())["response"]) == (200, "好")


async def test_the_events_of_a_run_whose_client_has_gone_are_not_read(tmp_path, postgresql, monkeypatch):  # noqa: F811
    reads = 0
    list_events = RunRepository.list_events

    async def count_reads(self, *arguments, **options):
        nonlocal reads
        reads += 1
        return await list_events(self, *arguments, **options)

    monkeypatch.setattr(RunRepository, "list_events", count_reads)
    url = postgresql.new_database()
    async with serve_service(tmp_path, ScriptedModel(), database_url=url) as (session, service):
        service.remote_runs = RemoteRuns(service.store, service.runner)
        asking = asyncio.create_task(session.post("/api/agent", json={"message": "hi", "detach": True}))
        run = await find_run(service)
        await wait_until(lambda: reads)
        asking.cancel()
        await asyncio.sleep(1)
        reads_before = reads
        await asyncio.sleep(1)
        assert (reads, (await service.store.runs.get(run.run_id)).status) == (reads_before, "queued")


async def test_a_run_that_cannot_be_queued_is_not_stored(tmp_path, postgresql):  # noqa: F811
    url = postgresql.new_database()
    settings = create_settings(tmp_path, database_url=url)
    async with open_service(settings, {"m": ScriptedModel()}, is_durable=True) as service:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER TABLE opposable.queued_runs RENAME TO gone")
        agent = (await service.store.agents.get("default")).spec
        with pytest.raises(StoreError):
            await service.chat(agent, "hi")
        assert (await service.store.runs.list()).items == ()
