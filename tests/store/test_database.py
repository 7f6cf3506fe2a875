"""Inline reads see committed rows, wait for no writer, and start no thread on SQLite."""

import asyncio
import os
import signal
import sqlite3
import threading
import time
from contextlib import closing

import pytest
from sqlalchemy import column, select, table, text
from tests.waiting import wait_until

from opposable.domain.errors import StoreUnavailable
from opposable.domain.records import Conversation, ConversationTurn
from opposable.store import open_store
from opposable.store.database import StoreDatabase
from opposable.store.database_urls import parse_database_url
from opposable.store.migration_runner import migrate_schema

pytestmark = pytest.mark.anyio

NUMBERS = select(table("t", column("n")))


def _make_turn(conversation_id: str) -> ConversationTurn:
    return ConversationTurn(conversation_id, Conversation(conversation_id, "me", "a"), ())


async def test_inline_read_during_a_write_sees_the_committed_rows(store, url):
    await store.conversations.append_turns([ConversationTurn("t", Conversation("v", "me", "a", "before"), ())])
    database = StoreDatabase(parse_database_url(url))
    await migrate_schema(database)
    async with database.begin_write() as connection:
        await connection.execute(text("UPDATE conversations SET title = 'after'"))
        assert (await store.conversations.get("v")).title == "before"
    await database.close()
    assert (await store.conversations.get("v")).title == "after"


async def test_inline_read_of_sqlite_starts_no_thread(tmp_path):
    async with open_store(f"sqlite:///{tmp_path}/s.db") as store:
        thread_count = threading.active_count()
        for number in range(20):
            assert await store.conversations.get(f"v{number}") is None
        assert threading.active_count() == thread_count


async def test_inline_read_of_a_locked_file_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("opposable.store.database.INLINE_READ_TIMEOUT_SECONDS", 0.05)
    path = tmp_path / "s.db"
    database = StoreDatabase(parse_database_url(f"sqlite:///{path}"))
    with closing(sqlite3.connect(path, isolation_level=None)) as other, other:
        other.execute("CREATE TABLE t (n)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreUnavailable, match="locked"):
            await database.fetch_inline(NUMBERS)
        other.execute("ROLLBACK")
    other.close()
    assert await database.fetch_inline(NUMBERS) == [[]]
    await database.close()


async def test_several_inline_reads_return_their_rows_in_order(store, url):
    database = StoreDatabase(parse_database_url(url))
    assert await database.fetch_inline(select(text("1")), select(text("2"))) == [[(1,)], [(2,)]]
    await database.close()


async def test_inline_connection_of_sqlite_is_read_only(tmp_path):
    database = StoreDatabase(parse_database_url(f"sqlite:///{tmp_path}/s.db"))
    with pytest.raises(StoreUnavailable, match="readonly"):
        await database.fetch_inline(text("CREATE TABLE t (n)"))
    await database.close()


async def test_cancelled_opening_of_sqlite_leaves_no_thread(tmp_path, monkeypatch):
    errors = []
    monkeypatch.setattr(threading, "excepthook", lambda args: errors.append(args.exc_value))
    connect = sqlite3.connect

    def connect_slowly(*args, **options):
        time.sleep(0.05)
        return connect(*args, **options)

    monkeypatch.setattr(sqlite3, "connect", connect_slowly)

    async def ping():
        database = StoreDatabase(parse_database_url(f"sqlite:///{tmp_path}/s.db"))
        try:
            await database.ping()
        finally:
            await database.close()

    async def cancel_ping():
        task = asyncio.create_task(ping())
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.wait([task])

    thread_count = threading.active_count()
    await asyncio.to_thread(asyncio.run, cancel_ping())
    await wait_until(lambda: threading.active_count() <= thread_count + 1)  # the thread of `to_thread` remains
    assert errors == []


async def test_failed_opening_of_sqlite_leaves_no_thread(tmp_path):
    (tmp_path / "s.db").mkdir()
    database = StoreDatabase(parse_database_url(f"sqlite:///{tmp_path}/s.db"))
    thread_count = threading.active_count()
    with pytest.raises(StoreUnavailable, match=r"unable to open database file\. Make sure that it is a file"):
        await database.ping()
    assert threading.active_count() == thread_count
    await database.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # its loop is closed by then
def test_two_cancellations_end_a_write_that_waits_for_a_lock(tmp_path, monkeypatch):
    monkeypatch.setattr("opposable.store.database.CONNECT_TIMEOUT_SECONDS", 1)
    path, threads = tmp_path / "s.db", set(threading.enumerate())

    async def write():
        database = StoreDatabase(parse_database_url(f"sqlite:///{path}"))
        try:
            async with database.begin_write():
                pass
        finally:
            await database.close()

    async def cancel_write():
        task = asyncio.create_task(write())
        await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.sleep(0.2)  # then `asyncio.run` cancels every task, as after a second Ctrl-C

    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        thread = threading.Thread(target=asyncio.run, args=[cancel_write()], daemon=True)
        thread.start()
        thread.join(5)
        assert not thread.is_alive()
    for other_thread in set(threading.enumerate()) - threads:
        other_thread.join()


@pytest.mark.parametrize("engine", ["postgresql"])
async def test_open_connection_to_a_server_that_hangs_is_reported(store, monkeypatch):
    monkeypatch.setattr("opposable.store.database.CONNECT_TIMEOUT_SECONDS", 0.2)
    database = store.agents._database
    async with database.begin_read() as connection:
        process_id = (await connection.execute(text("SELECT pg_backend_pid()"))).scalar_one()
    os.kill(process_id, signal.SIGSTOP)
    try:
        async with asyncio.timeout(30):
            with pytest.raises(StoreUnavailable, match=r"does not answer: no answer within 0.2 s"):
                await store.agents.list()
            assert (await store.agents.list()).items == ()  # with another connection
    finally:
        os.kill(process_id, signal.SIGCONT)


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_deleted_file_is_reported_until_it_is_restored(store, tmp_path):
    await store.conversations.append_turns([_make_turn("a")])
    copy = tmp_path / "copy"
    copy.mkdir()
    files = list(tmp_path.glob("store.db*"))
    for file in files:
        file.rename(copy / file.name)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=r"store\.db\) cannot be used: the file was deleted\. Restore it"):
            await store.conversations.append_turns([_make_turn("b")])
        with pytest.raises(StoreUnavailable, match="the file was deleted"):
            await store.conversations.get("a")
    assert not (tmp_path / "store.db").exists()
    for file in files:
        (copy / file.name).rename(file)
    await store.conversations.append_turns([_make_turn("b")])
    assert (await store.conversations.get("a"), await store.conversations.get("b")) != (None, None)


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_file_that_replaces_the_open_one_is_used(store, tmp_path, url):
    file, backup = tmp_path / "store.db", tmp_path / "backup.db"
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(backup)) as target:
        source.backup(target)
    await store.conversations.append_turns([_make_turn("a")])
    for name in ("store.db", "store.db-wal", "store.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    backup.rename(file)
    await store.conversations.append_turns([_make_turn("b")])
    async with open_store(url) as other:
        conversations = await other.conversations.list()
    assert [conversation.conversation_id for conversation in conversations.items] == ["b"]


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_damaged_file_is_reported_with_advice(tmp_path, url):
    async with open_store(url):
        pass
    file = tmp_path / "store.db"
    file.write_bytes(file.read_bytes()[:20_000])
    with pytest.raises(StoreUnavailable, match=r"malformed\. Restore it from a backup, or move it away"):
        async with open_store(url):
            pytest.fail("opened")
    file.write_bytes(b"<html>" * 1000)
    with pytest.raises(StoreUnavailable, match=r"file is not a database\. Restore it from a backup, or move it away"):
        async with open_store(url):
            pytest.fail("opened")
