"""A store is opened by its URL, brought up to date by one process at a time, and closed."""

import asyncio
import subprocess
import sys

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text
from tests.store.records import START, make_execution

from opposable.domain.errors import BadInput, StoreError, StoreTooNew, StoreUnavailable
from opposable.domain.records import Failure, Run
from opposable.store import open_store
from opposable.store.database import StoreDatabase
from opposable.store.database_urls import describe_database, parse_database_url
from opposable.store.schema_migration import migrate_schema
from opposable.store.tables import metadata

pytestmark = pytest.mark.anyio

URLS = {
    "sqlite:///a/b.db": ("sqlite+aiosqlite:///a/b.db", "SQLite file a/b.db"),
    "sqlite:////a/b.db": ("sqlite+aiosqlite:////a/b.db", "SQLite file /a/b.db"),
    "sqlite+pysqlite:///b.db": ("sqlite+aiosqlite:///b.db", "SQLite file b.db"),
    "postgres://u:p%40@h/d": ("postgresql+psycopg://u:p%40@h/d", "PostgreSQL at h/d"),
    " postgresql://u:p@h:5433/d\n": ("postgresql+psycopg://u:p@h:5433/d", "PostgreSQL at h:5433/d"),
    "postgresql+asyncpg://u@h/d?sslmode=require": (
        "postgresql+psycopg://u@h/d?sslmode=require",
        "PostgreSQL at h/d",
    ),
    "postgresql:///d?host=/run": ("postgresql+psycopg:///d?host=%2Frun", "PostgreSQL at the local socket/d"),
}


@pytest.mark.parametrize(("given", "made"), URLS.items())
def test_urls_are_taken_in_the_shapes_people_write(given, made):
    url = parse_database_url(given)
    assert (url.render_as_string(hide_password=False), describe_database(url)) == made


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "This is no database URL"),
        ("store.db", "This is no database URL"),
        ("mysql://u:secret@h/d", "'mysql' cannot be the store"),
        ("sqlite://", "One in memory would be lost"),
        ("sqlite:///:memory:", "One in memory would be lost"),
        ("sqlite://store.db", "needs a third slash"),
        ("postgresql://u:secret@h:port/d", "This is no database URL"),
    ],
)
def test_a_wrong_url_is_told_without_its_password(given, said):
    with pytest.raises(BadInput, match=said) as caught:
        parse_database_url(given)
    assert "secret" not in str(caught.value)


async def test_the_tables_are_those_the_code_knows(empty_url):
    database = StoreDatabase(parse_database_url(empty_url))
    await migrate_schema(database)

    def differences(connection):
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": False})
        return compare_metadata(context, metadata)

    async with database.begin_read() as connection:
        assert await connection.run_sync(differences) == []
    await database.close()


async def test_a_newer_database_is_refused(url):
    async with open_store(url) as store, store.runs._database.begin_write() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreTooNew, match="has schema 9999, which this version of Opposable does not know") as caught:
        async with open_store(url):
            pytest.fail("opened")
    assert "update Opposable, or name another database" in str(caught.value)


async def test_opening_again_changes_nothing(url):
    for _ in range(2):
        async with open_store(url) as store:
            await store.runs.save(Run("r", START))
            assert await store.check_health() == {"database": ""}


OPEN_STORE_CODE = """
import asyncio, sys
from opposable.store import open_store
from opposable.domain.records import Run, get_utc_now
async def main():
    async with open_store(sys.argv[1]) as store:
        await store.runs.save(Run(sys.argv[2], get_utc_now()))
asyncio.run(main())
"""


async def test_an_empty_database_is_opened_by_several_processes_at_once(empty_url):
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-W",
            "error",
            "-c",
            OPEN_STORE_CODE,
            empty_url,
            f"r{number}",
            stderr=asyncio.subprocess.PIPE,
        )
        for number in range(3)
    ]
    told = [await process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], told
    async with open_store(empty_url) as store:
        assert {run.run_id for run in (await store.runs.list()).items} == {"r0", "r1", "r2"}


async def test_two_stores_write_to_one_database_at_once(url):
    async with open_store(url) as one, open_store(url) as two:

        async def work(store, name):
            for number in range(20):
                await store.executions.add([make_execution(number, execution_id=f"{name}{number}")])
                await store.failures.add([Failure("tool", "act", "failed", "same")])
                await store.failures.get_failures_for_call("tool", "act", "same")

        names = [(one, "a"), (two, "b"), (one, "c"), (two, "d")]
        await asyncio.gather(*(work(store, name) for store, name in names))
        assert len([each async for each in two.executions.export()]) == 80
        [failure] = await one.failures.get_failures_for_call("tool", "act", "same")
        assert failure.count == 80


async def test_a_database_that_is_not_there_is_told_without_its_password():
    with pytest.raises(StoreUnavailable, match=r"PostgreSQL at 127\.0\.0\.1:9/d") as caught:
        async with open_store("postgresql://user:hunter2@127.0.0.1:9/d"):
            pytest.fail("opened")
    assert "hunter2" not in str(caught.value)


async def test_a_file_that_is_no_database_is_told(tmp_path):
    (tmp_path / "store.db").write_text("no database" * 200)
    with pytest.raises(StoreUnavailable, match="file is not a database"):
        async with open_store(f"sqlite:///{tmp_path}/store.db"):
            pytest.fail("opened")


async def test_a_database_that_goes_away_is_told_and_comes_back(postgresql, template):
    url = postgresql.new_database(template)
    async with open_store(url) as store:
        assert await store.check_health() == {"database": ""}
        postgresql.block_connections(url)
        wrong = (await store.check_health())["database"]
        assert "PostgreSQL at" in wrong
        with pytest.raises(StoreUnavailable):
            await store.runs.get("r")
        postgresql.allow_connections(url)
        assert await store.check_health() == {"database": ""}
        assert await store.runs.get("r") is None
    postgresql.drop_database(url)


async def test_an_unknown_option_of_a_url_is_told(postgresql):
    url = postgresql.get_database_url("postgres")
    with pytest.raises(BadInput, match=r"is wrong: .*schema"):
        async with open_store(f"{url}&schema=public"):
            pytest.fail("opened")


async def test_what_the_database_refuses_is_told(store):
    async with store.runs._database.begin_write() as connection:
        await connection.execute(text("DROP TABLE runs"))
    with pytest.raises(StoreError, match=r"refused|no such table"):
        await store.runs.get("r")


@pytest.mark.parametrize(
    ("module", "url", "valkey", "extra"),
    [
        ("aiosqlite", "sqlite:///a.db", None, "store"),
        ("psycopg", "postgres://h/d", None, "postgres"),
        ("valkey", "sqlite:///a.db", "valkey://h", "valkey"),
    ],
)
async def test_a_missing_extra_is_told(monkeypatch, module, url, valkey, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BadInput, match=rf'needs the extra "{extra}" \({module} is missing\): pip install'):
        async with open_store(url, valkey_url=valkey):
            pytest.fail("opened")


def test_nothing_heavy_is_loaded_before_a_store_is_opened():
    code = "import sys, opposable.store; sys.exit(any(name in sys.modules for name in ('sqlalchemy', 'alembic', 'limits')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_a_new_file_is_for_its_owner_alone_and_its_folder_is_made(tmp_path):
    async with open_store(f"sqlite:///{tmp_path}/new/folder/店.db") as store:
        await store.runs.save(Run("r", START))
        made = sorted((tmp_path / "new" / "folder").iterdir())
        assert made[0].name == "店.db"
        assert {path.stat().st_mode & 0o777 for path in made} == {0o600}


async def test_a_place_where_no_file_can_be_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"The store cannot create `.*file/store\.db`"):
        async with open_store(f"sqlite:///{tmp_path}/file/store.db"):
            pytest.fail("opened")
