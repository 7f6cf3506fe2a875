"""The recorder writes each record once, in the background, and loses none on a clean end."""

import asyncio
import logging
import signal
import sys
from dataclasses import replace

import pytest
from tests.store.records import START, make_execution, seconds_after_start
from tests.waiting import wait_until

from opposable.domain.errors import StoreUnavailable
from opposable.domain.records import RunEvent
from opposable.store import open_store
from opposable.store.recorder import MAX_BATCH_RECORDS, Recorder, RecorderStatus

pytestmark = pytest.mark.anyio


async def list_stored_executions(store):
    return [execution async for execution in store.executions.export()]


async def test_all_records_are_written_on_a_clean_end(store):
    calls = [make_execution(number) for number in range(1234)]
    events = [RunEvent("r", number, "text", {"content": "好"}, START) for number in range(1, 800)]
    async with Recorder(store.executions, store.runs, flush_interval_seconds=60) as recorder:
        for record in (*calls, *events):
            recorder.record(record)
    assert await list_stored_executions(store) == calls[::-1]
    assert await store.runs.list_events("r") == tuple(events)
    assert recorder.status == RecorderStatus(waiting=0, written=2033, lost=0, refused=0, error="")


async def test_records_are_written_while_the_recorder_runs(store):
    async with Recorder(store.executions, store.runs) as recorder:
        recorder.record(make_execution(1))
        await wait_until(lambda: recorder.status.written == 1)
        assert await list_stored_executions(store) == [make_execution(1)]
        for number in range(2, 3 + MAX_BATCH_RECORDS):
            recorder.record(make_execution(number))
        await wait_until(lambda: recorder.status.written == MAX_BATCH_RECORDS + 2)


async def test_duplicate_record_is_written_once(store):
    async with Recorder(store.executions, store.runs) as recorder:
        for _ in range(2):
            recorder.record(make_execution(1))
            recorder.record(RunEvent("r", 1, "text", {}, START))
    assert await list_stored_executions(store) == [make_execution(1)]
    assert len(await store.runs.list_events("r")) == 1


async def test_secrets_never_reach_the_store(store):
    arguments = {"url": "https://x/?q=s3cr3t-value", "headers": {"Authorization": "Bearer abc"}, "密码": "一二三"}
    hidden = {"url": "https://x/?q=[redacted]", "headers": {"Authorization": "[redacted]"}, "密码": "[redacted]"}
    async with Recorder(store.executions, store.runs, secrets=["s3cr3t-value"]) as recorder:
        recorder.record(make_execution(1, arguments=arguments, result="it says s3cr3t-value"))
        recorder.record(RunEvent("r", 1, "tool_started", {"arguments": '{"password": "hunter2"}'}, START))
    assert await list_stored_executions(store) == [make_execution(1, arguments=hidden, result="it says [redacted]")]
    [event] = await store.runs.list_events("r")
    assert event.data == {"arguments": '{"password": "[redacted]"}'}


async def test_rejected_record_does_not_block_others(store, caplog):
    bad = replace(make_execution(2, arguments={"password": "hunter2"}), at=START.replace(tzinfo=None))
    async with Recorder(store.executions, store.runs) as recorder:
        for record in (make_execution(1), bad, make_execution(3)):
            recorder.record(record)
    assert await list_stored_executions(store) == [make_execution(3), make_execution(1)]
    assert (recorder.status.written, recorder.status.refused) == (2, 1)
    assert "rejected a record" in caplog.text
    assert "hunter2" not in caplog.text


class UnavailableSink:
    """A sink that is unavailable, but may have written the first record."""

    def __init__(self, store) -> None:
        self.store = store
        self.is_away = True
        self.attempts = 0

    async def add(self, batch) -> None:
        self.attempts += 1
        if self.is_away:
            await self.store.executions.add(batch[:1])
            raise StoreUnavailable("The database is away.")
        await self.store.executions.add(batch)


async def test_records_are_queued_while_the_database_is_unavailable(store, caplog):
    caplog.set_level(logging.WARNING)
    sink = UnavailableSink(store)
    async with Recorder(sink, store.runs, flush_interval_seconds=0.01) as recorder:
        for number in range(5):
            recorder.record(make_execution(number))
        await wait_until(lambda: sink.attempts > 2)
        assert recorder.status == RecorderStatus(5, 0, 0, 0, "The database is away.")
        assert not recorder.status.is_writing
        sink.is_away = False
        await wait_until(lambda: recorder.status.written == 5)
        assert recorder.status.is_writing
    assert await list_stored_executions(store) == [make_execution(number) for number in (4, 3, 2, 1, 0)]
    assert caplog.text.count("records are queued: The database is away.") == 1


async def test_unavailable_database_is_not_retried_for_every_record(store):
    sink = UnavailableSink(store)
    async with Recorder(sink, store.runs, flush_interval_seconds=60, close_timeout_seconds=0.1) as recorder:
        for number in range(MAX_BATCH_RECORDS):
            recorder.record(make_execution(number))
        await wait_until(lambda: recorder.status.error)
        for number in range(MAX_BATCH_RECORDS, MAX_BATCH_RECORDS + 50):
            recorder.record(make_execution(number))
            await asyncio.sleep(0)
        assert sink.attempts == 1


async def test_queue_is_bounded_by_characters(store, monkeypatch):
    monkeypatch.setattr("opposable.store.recorder.MAX_QUEUED_CHARACTERS", 10_000)
    sink = UnavailableSink(store)
    async with Recorder(sink, store.runs, flush_interval_seconds=60, close_timeout_seconds=0.1) as recorder:
        for number in range(10):
            recorder.record(make_execution(number, arguments={"content": "x" * 4000, "n": 2**70}))
        assert recorder.status.waiting == 3
        sink.is_away = False
    assert (recorder.status.written, recorder.status.lost) == (3, 7)


async def test_queue_is_bounded_and_lost_records_are_counted(store, caplog):
    sink = UnavailableSink(store)
    async with Recorder(
        sink, store.runs, flush_interval_seconds=0.01, max_queued_records=3, close_timeout_seconds=0.1
    ) as recorder:
        for number in range(10):
            recorder.record(make_execution(number))
        assert (recorder.status.waiting, recorder.status.lost) == (3, 7)
    assert recorder.status.lost == 10
    assert "losing records" in caplog.text


async def test_recorder_resumes_after_an_outage_of_postgresql(postgresql, template):
    url = postgresql.new_database(template)
    async with open_store(url) as store:
        async with Recorder(store.executions, store.runs, flush_interval_seconds=0.05) as recorder:
            recorder.record(make_execution(1))
            await wait_until(lambda: recorder.status.written == 1)
            postgresql.block_connections(url)
            recorder.record(make_execution(2))
            await wait_until(lambda: recorder.status.error)
            postgresql.allow_connections(url)
            await wait_until(lambda: recorder.status.is_writing)
        assert await list_stored_executions(store) == [make_execution(2), make_execution(1)]
    postgresql.drop_database(url)


RECORDING = """
import asyncio, sys, time
from opposable.domain.records import Execution, get_utc_now
from opposable.store import open_store
from opposable.store.recorder import Recorder
async def main():
    async with open_store(sys.argv[1]) as store, Recorder(store.executions, store.runs) as recorder:
        for number in range(1, 100_000):
            recorder.record(Execution(f"e{number:06}", "r", "c", "t", "t", {}, "", get_utc_now(), 0.0))
            print(number, time.time(), flush=True)
            await asyncio.sleep(0.01)
asyncio.run(main())
"""


async def test_killed_process_loses_at_most_the_last_second(url):
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", RECORDING, url, stdout=asyncio.subprocess.PIPE)
    try:
        taken = []
        while len(taken) < 250:
            number, timestamp = (await process.stdout.readline()).split()
            taken.append((int(number), float(timestamp)))
    finally:
        process.send_signal(signal.SIGKILL)
        rest = await process.stdout.read()
        await process.wait()
    taken += [(int(line.split()[0]), float(line.split()[1])) for line in rest.splitlines() if len(line.split()) == 2]
    async with open_store(url) as store:
        stored_ids = {execution.execution_id for execution in await list_stored_executions(store)}
    last = taken[-1][1]
    lost = [last - timestamp for number, timestamp in taken if f"e{number:06}" not in stored_ids]
    assert stored_ids
    assert max(lost, default=0) <= 1.0


async def test_several_batches_keep_their_order(store):
    async with Recorder(store.executions, store.runs) as recorder:
        for number in range(3 * MAX_BATCH_RECORDS):
            recorder.record(make_execution(number, at=seconds_after_start(number)))
            if number % 100 == 0:
                await asyncio.sleep(0)
    assert [execution.execution_id for execution in await list_stored_executions(store)] == [
        f"e{n:06}" for n in range(3 * MAX_BATCH_RECORDS)
    ][::-1]
