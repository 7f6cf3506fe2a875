"""Inline reads see committed rows, wait for no writer, and start no thread on SQLite."""

import sqlite3
import threading
from contextlib import closing

import pytest
from sqlalchemy import column, select, table, text

from opposable.domain.errors import StoreUnavailable
from opposable.domain.records import Conversation, ConversationTurn
from opposable.store import open_store
from opposable.store.database import StoreDatabase
from opposable.store.database_urls import parse_database_url
from opposable.store.migration_runner import migrate_schema

pytestmark = pytest.mark.anyio

NUMBERS = select(table("t", column("n")))


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
