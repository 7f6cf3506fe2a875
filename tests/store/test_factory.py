"""A store is opened by its URL, reports errors and is closed."""

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


async def test_two_stores_write_to_one_database_concurrently(url):
    async with open_store(url) as first_store, open_store(url) as second_store:

        async def work(store, name):
            for number in range(20):
                await store.executions.add([make_execution(number, execution_id=f"{name}{number}")])
                await store.failures.add([Failure("tool", "act", "failed", "same")])
                await store.failures.get_failures_by_tool(["tool"])

        names = [(first_store, "a"), (second_store, "b"), (first_store, "c"), (second_store, "d")]
        await asyncio.gather(*(work(store, name) for store, name in names))
        assert len([execution async for execution in second_store.executions.export()]) == 80
        [failure] = (await first_store.failures.get_failures_by_tool(["tool"]))["tool"]
        assert failure.count == 80


async def test_missing_database_server_is_reported_without_the_password():
    with pytest.raises(StoreUnavailable, match=r"PostgreSQL at 127\.0\.0\.1:9/d") as caught:
        async with open_store("postgresql://user:hunter2@127.0.0.1:9/d"):
            pytest.fail("opened")
    assert "hunter2" not in str(caught.value)


async def test_file_that_is_not_a_database_is_reported(tmp_path):
    (tmp_path / "store.db").write_text("no database" * 200)
    with pytest.raises(StoreUnavailable, match="file is not a database"):
        async with open_store(f"sqlite:///{tmp_path}/store.db"):
            pytest.fail("opened")


async def test_unavailable_database_is_reported_and_recovers(postgresql, template):
    url = postgresql.new_database(template)
    async with open_store(url) as store:
        assert await store.check_health() == {"database": ""}
        postgresql.block_connections(url)
        health_error = (await store.check_health())["database"]
        assert "PostgreSQL at" in health_error
        with pytest.raises(StoreUnavailable):
            await store.runs.get("r")
        postgresql.allow_connections(url)
        assert await store.check_health() == {"database": ""}
        assert await store.runs.get("r") is None
    postgresql.drop_database(url)


async def test_unknown_url_option_is_reported(postgresql):
    url = postgresql.get_database_url("postgres")
    with pytest.raises(BadInput, match=r"is not valid: .*schema"):
        async with open_store(f"{url}&schema=public"):
            pytest.fail("opened")


async def test_rejected_statement_is_reported(store):
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
async def test_missing_extra_is_reported(monkeypatch, module, url, valkey, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BadInput, match=rf'needs the extra "{extra}" \({module} is missing\)\. Run: pip install'):
        async with open_store(url, valkey_url=valkey):
            pytest.fail("opened")


def test_importing_the_store_loads_no_heavy_package():
    code = "import sys, opposable.store; sys.exit(any(name in sys.modules for name in ('sqlalchemy', 'alembic', 'limits')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_new_file_is_private_and_its_folder_is_created(tmp_path):
    async with open_store(f"sqlite:///{tmp_path}/new/folder/店.db") as store:
        await store.runs.save(Run("r", START))
        files = sorted((tmp_path / "new" / "folder").iterdir())
        assert files[0].name == "店.db"
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


async def test_path_that_cannot_be_created_is_reported(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"The store cannot create `.*file/store\.db`: .*Set OPPOSABLE_HOME or "):
        async with open_store(f"sqlite:///{tmp_path}/file/store.db"):
            pytest.fail("opened")
