"""Commands create a store only in a database that is Opposable's own, and `store init` elsewhere."""

import sqlite3
from contextlib import closing

import psycopg
import pytest
from tests.cli.program import assert_one_sentence, run_program
from tests.servers import postgresql  # noqa: F401 - a fixture

pytestmark = pytest.mark.anyio


@pytest.fixture
def shop_url(postgresql):  # noqa: F811
    """The URL of a PostgreSQL database with a table of another program."""
    url = postgresql.new_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    yield url
    postgresql.drop_database(url)


def list_schemas(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {schema for (schema,) in connection.execute("SELECT DISTINCT schemaname FROM pg_tables")} - {
            "pg_catalog",
            "information_schema",
        }


@pytest.mark.parametrize("command", [("tools", "list"), ("keys", "list"), ("failures", "list"), ("tools", "export")])
async def test_reading_command_leaves_the_database_of_a_web_project_alone(workspace, command):
    database = workspace / "web.sqlite"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.close()
    before = database.read_bytes()
    (workspace / ".env").write_text(f"DATABASE_URL=sqlite:///{database}\n")
    listed = await run_program(workspace, *command, env={"DATABASE_URL": f"sqlite:///{database}"})
    assert (listed.code, listed.err) == (0, "")
    assert database.read_bytes() == before
    assert not (workspace / "cache").exists()


async def test_store_is_created_in_a_shared_database_only_by_store_init(workspace, shop_url):
    env = {"OPPOSABLE_DATABASE_URL": shop_url}
    assert (await run_program(workspace, "keys", "list", "--json", env=env)).json == {"keys": []}
    sentence = (
        "holds 1 tables of other programs, and no store. Set OPPOSABLE_DATABASE_URL to another database, or create"
    )
    await assert_one_sentence(workspace, ("keys", "create", "k"), 1, sentence, env=env)
    assert list_schemas(shop_url) == {"public"}
    created = await run_program(workspace, "store", "init", env=env)
    assert (created.code, created.err) == (0, "The store is ready.\n")
    assert (await run_program(workspace, "keys", "create", "k", env=env)).code == 0
    assert list_schemas(shop_url) == {"public", "opposable"}
