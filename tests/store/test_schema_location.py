"""A store is created only where it disturbs no other program, and found where earlier versions created it."""

import sqlite3
from contextlib import closing

import psycopg
import pytest
from alembic import command
from tests.store.records import START

from opposable.domain.errors import BadInput, StoreMissing
from opposable.domain.records import Run
from opposable.store import open_store
from opposable.store.database import StoreDatabase
from opposable.store.database_urls import parse_database_url
from opposable.store.migration_runner import _build_alembic_config

pytestmark = pytest.mark.anyio


@pytest.fixture
def shop(engine, empty_url, tmp_path):
    """The URL of a database with a table of another program."""
    statements = (
        "CREATE TABLE tools (id INTEGER)",
        "CREATE TABLE alembic_version (version_num VARCHAR(32))",
        "INSERT INTO alembic_version VALUES ('77aa')",
    )
    if engine == "sqlite":
        with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
            connection.executescript(";".join(statements))
        connection.close()
    else:
        with psycopg.connect(empty_url) as connection:
            for statement in statements:
                connection.execute(statement)
    return empty_url


def list_tables(url: str) -> set[tuple[str, str]]:
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        return set(found.fetchall())


async def test_database_of_another_program_is_not_changed(engine, shop, tmp_path):
    before = (tmp_path / "store.db").read_bytes() if engine == "sqlite" else list_tables(shop)
    for create in ("never", "if_empty"):
        with pytest.raises((StoreMissing, BadInput), match="holds"):
            async with open_store(shop, create=create):
                pytest.fail("opened")
    assert before == ((tmp_path / "store.db").read_bytes() if engine == "sqlite" else list_tables(shop))


@pytest.mark.parametrize("engine", ["postgresql"])
async def test_store_is_created_next_to_other_tables_on_request_in_its_own_schema(shop):
    async with open_store(shop, create="always") as store:
        await store.runs.save(Run("r", START))
    schemas = {schema for schema, name in list_tables(shop) if name not in ("tools", "alembic_version")}
    assert schemas == {"opposable"}
    async with open_store(shop, create="never") as store:
        assert (await store.runs.get("r")).run_id == "r"


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_sqlite_file_of_another_program_is_never_shared(shop):
    with pytest.raises(BadInput, match="holds 2 tables of other programs, and no store"):
        async with open_store(shop, create="always"):
            pytest.fail("opened")


async def test_reading_creates_nothing(engine, empty_url, tmp_path):
    with pytest.raises(StoreMissing, match="holds no store"):
        async with open_store(empty_url, create="never"):
            pytest.fail("opened")
    assert list(tmp_path.iterdir()) == [] if engine == "sqlite" else list_tables(empty_url) == set()


@pytest.mark.parametrize("engine", ["postgresql"])
async def test_store_of_an_earlier_version_stays_in_the_public_schema(empty_url):
    database = StoreDatabase(parse_database_url(empty_url))
    async with database.begin_write() as connection:
        await connection.run_sync(lambda sync: command.upgrade(_build_alembic_config(sync), "0001"))
    await database.close()
    for create in ("never", "if_empty"):
        async with open_store(empty_url, create=create) as store:
            await store.runs.save(Run("r", START))
    assert {schema for schema, _ in list_tables(empty_url)} == {"public"}
