"""Short looks see what is committed, wait for no writer, and on SQLite need no thread."""

import sqlite3
import threading

import pytest
from sqlalchemy import text

from opposable.domain.errors import StoreUnavailable
from opposable.domain.records import Conversation
from opposable.store import open_store
from opposable.store.database import StoreDatabase
from opposable.store.database_urls import parse_database_url

pytestmark = pytest.mark.anyio


async def test_a_look_beside_a_writer_sees_what_was_committed(store, url):
    await store.conversations.add(Conversation("v", "me", "a", "before"))
    database = StoreDatabase(parse_database_url(url))
    async with database.begin_write() as connection:
        await connection.execute(text("UPDATE conversations SET title = 'after'"))
        assert (await store.conversations.get("v")).title == "before"
    await database.close()
    assert (await store.conversations.get("v")).title == "after"


async def test_a_look_at_sqlite_begins_no_thread(tmp_path):
    async with open_store(f"sqlite:///{tmp_path}/s.db") as store:
        before = threading.active_count()
        for n in range(20):
            assert await store.conversations.get(f"v{n}") is None
        assert threading.active_count() == before


async def test_a_file_that_is_locked_for_readers_is_told_of(tmp_path, monkeypatch):
    monkeypatch.setattr("opposable.store.database.INLINE_READ_TIMEOUT_SECONDS", 0.05)
    path = tmp_path / "s.db"
    database = StoreDatabase(parse_database_url(f"sqlite:///{path}"))
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("CREATE TABLE t (n)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreUnavailable, match="locked"):
            async with database.begin_inline_read() as connection:
                await connection.execute(text("SELECT * FROM t"))
        other.execute("ROLLBACK")
    other.close()
    async with database.begin_inline_read() as connection:
        assert (await connection.execute(text("SELECT * FROM t"))).all() == []
    await database.close()
