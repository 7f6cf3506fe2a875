"""A store is opened by its URL, brought up to date by one process at a time, and closed."""

import asyncio
import subprocess
import sys

import pytest
from sqlalchemy import text
from tests.store.records import START, make_execution

from opposable.domain.errors import BadInput, StoreError, StoreUnavailable
from opposable.domain.records import Failure, Run
from opposable.store import open_store

pytestmark = pytest.mark.anyio


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
    with pytest.raises(BadInput, match=r"is not valid: .*schema"):
        async with open_store(f"{url}&schema=public"):
            pytest.fail("opened")


async def test_what_the_database_refuses_is_told(store):
    async with store.runs._database.begin_write() as connection:
        await connection.execute(text("DROP TABLE runs"))
    with pytest.raises(StoreError, match=r"rejected a statement|no such table"):
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
