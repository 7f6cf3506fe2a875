"""Calls in threads end at their time limit, also where nothing interrupts them."""

import asyncio
import gc
import threading
import time

import duckdb
import pytest

from opposable.sql import interruptible_threads
from opposable.sql.database import QueryLimits
from opposable.sql.duckdb.engine import open_duckdb
from opposable.sql.errors import QueryTimedOut
from opposable.sql.interruptible_threads import InterruptibleThreads

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def short_grace(monkeypatch):
    monkeypatch.setattr(interruptible_threads, "_GRACE_SECONDS", 0.1)


async def test_calls_that_run_on_are_replaced_up_to_a_limit_and_not_awaited_by_close(monkeypatch):
    monkeypatch.setattr(interruptible_threads, "_MAX_ABANDONED", 4)
    threads, event = InterruptibleThreads("test"), threading.Event()
    for batch in range(2):
        runs = [threads.run(event.wait, lambda: None, 0.1) for _ in range(4)]
        assert [type(error) for error in await asyncio.gather(*runs, return_exceptions=True)] == [TimeoutError] * 4
        if batch == 0:
            assert await threads.run(lambda: 1, lambda: None, 5) == 1
    with pytest.raises(TimeoutError):
        await threads.run(lambda: 1, lambda: None, 0.1)
    await asyncio.wait_for(threads.close(), 5)
    event.set()
    assert await threads.run(lambda: 2, lambda: None, 5) == 2


async def test_at_most_four_calls_run_at_a_time_and_close_awaits_them():
    threads, event, started = InterruptibleThreads("test"), threading.Event(), []
    runs = [
        asyncio.ensure_future(threads.run(lambda: (started.append(1), event.wait()), event.set, 20)) for _ in "123456"
    ]
    await asyncio.sleep(0.1)
    assert len(started) == 4
    closing = asyncio.ensure_future(threads.close())
    await asyncio.sleep(0.1)
    assert not closing.done()
    event.set()
    await closing
    outcomes = await asyncio.gather(*runs, return_exceptions=True)
    assert len([outcome for outcome in outcomes if isinstance(outcome, tuple)]) == 4


async def test_a_thread_that_cannot_be_started_fails_its_call_alone(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    threads = InterruptibleThreads("test")
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            await threads.run(lambda: 1, lambda: None, 5)
    assert await threads.run(lambda: 2, lambda: None, 5) == 2
    await threads.close()


async def test_a_duckdb_function_that_cannot_be_interrupted_does_not_delay_other_queries(tmp_path):
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT repeat('ab', 10000) AS a, repeat('ba', 10000) AS b FROM range(3)")
    database = await open_duckdb(tmp_path / "a.duckdb")
    sql, limits = "SELECT max(levenshtein(a, b)) FROM t", QueryLimits(timeout_seconds=0.2)
    errors = await asyncio.gather(*(database.run(sql, limits=limits) for _ in range(4)), return_exceptions=True)
    assert [type(error) for error in errors] == [QueryTimedOut] * 4
    started = time.perf_counter()
    assert (await database.run("SELECT 1")).rows == ((1,),)
    await database.close()
    assert time.perf_counter() - started < 2
    while any(thread.name == "duckdb" for thread in threading.enumerate()):  # noqa: ASYNC110 - threads set no event
        await asyncio.sleep(0.05)


async def test_an_error_of_a_call_whose_end_is_no_longer_awaited_is_not_logged():
    """As after two Ctrl-C: the second one cancels the task that interrupts the call."""
    logged, started, event, interrupted = [], threading.Event(), threading.Event(), asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: logged.append(context["message"]))

    def work():
        started.set()
        event.wait()
        raise ValueError("interrupted")

    threads = InterruptibleThreads("test")
    run = asyncio.ensure_future(threads.run(work, interrupted.set, 20))
    await asyncio.to_thread(started.wait)
    others = asyncio.all_tasks()
    run.cancel()
    await interrupted.wait()
    for task in asyncio.all_tasks() - others:
        task.cancel()
    await asyncio.wait({run})
    event.set()
    await threads.close()
    await asyncio.sleep(0)  # the future gets the error
    del run, task, others
    gc.collect()
    assert logged == []
