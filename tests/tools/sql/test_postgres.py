"""What only PostgreSQL has: roles, letters' case, schemas, estimates; and the tools' newer skills on every engine."""

import pytest

from opposable.domain.errors import BadInput
from opposable.tools.build import sql_tools
from opposable.tools.library import ToolLibrary
from opposable.tools.sql.database import Limits, open_database
from opposable.tools.sql.postgres_server import PostgresServer
from opposable.tools.sql.tools import ALIASES, SchemaTools, SqlTools

pytestmark = pytest.mark.anyio


async def test_a_reading_role_is_kept_and_a_writing_one_steps_down(postgres_url, postgres_owner):
    reader, owner = await open_database(postgres_url), await open_database(postgres_owner)
    assert isinstance(reader, PostgresServer)
    assert isinstance(owner, PostgresServer)
    assert (reader.access.become, reader.access.can_write) == ("", False)
    assert (owner.access.become, owner.access.can_write) == ("pg_read_all_data", False)
    assert (await owner.run("SELECT count(*) FROM hidden")).rows == ((1,),)
    assert (await reader.schema()).find_table("hidden") is None
    assert "word" not in reader.identity
    await reader.close()
    await owner.close()


async def test_tables_of_all_schemas_are_listed_with_comments_and_keys(postgres_shop):
    listed = {told["name"]: told for told in await SchemaTools(postgres_shop).list_tables()}
    assert listed["customers"] == {"name": "customers", "kind": "table", "columns": 4, "rows": 3, "comment": "who buys"}
    assert listed["hr.people"] == {"name": "hr.people", "kind": "table", "columns": 3, "rows": 1}
    assert 'CREATE TABLE "Staff" (' in (await postgres_shop.schema()).text()


async def test_names_get_the_quotes_that_keep_their_case(postgres_shop):
    found = await SqlTools(postgres_shop).execute("SELECT s.FullName FROM staff s WHERE s.id = 1")
    assert (found["rows"], found["sql"]) == ([["Eve"]], 'SELECT s."FullName" FROM "Staff" s WHERE s."Id" = 1')


@pytest.mark.parametrize("bad", ["reader:wrong%20secret%25", "no:wrong%20secret%25"])
async def test_a_password_is_in_no_sentence(postgres_url, bad):
    url = f"postgresql://{bad}@127.0.0.1:1/shop"
    for wrong in (url, url.replace("%25", "%zz")):
        with pytest.raises(BadInput) as raised:
            await open_database(wrong)
        assert "secret" not in str(raised.value)


async def test_a_slow_query_is_a_time_out_for_the_library(shop):
    slow = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT count(*) FROM r"
    library = ToolLibrary(sql_tools(shop))
    with pytest.raises(TimeoutError):
        await SqlTools(shop, Limits(seconds=0.2)).execute(slow)
    assert {library.find(tool_id).tool_id for tool_id in ALIASES.values()} == set(ALIASES.values())


async def test_top_becomes_limit(shop):
    found = await SqlTools(shop).execute(
        "SELECT TOP 2 name FROM (SELECT TOP (3) * FROM customers ORDER BY id) t ORDER BY id"
    )
    assert found["rows"] == [["Ann"], ["Bob"]]
    assert found["corrections"] == ["TOP 2 → LIMIT 2", "TOP 3 → LIMIT 3"]


async def test_refine_mends_what_another_dialect_wrote(shop, engine):
    tools = SqlTools(shop)
    assert await tools.refine("SELECT nmae FROM customers") == {
        "sql": "SELECT name FROM customers",
        "valid": True,
        "corrections": ["column nmae → name"],
        "problem": None,
    }
    foreign = await tools.refine("SELECT IFNULL(`note`, 'none'), CAST(`amount` AS CHAR) FROM `orders`")
    assert foreign["valid"], foreign
    refused = await tools.refine("DELETE FROM orders")
    assert (refused["valid"], refused["problem"][:21]) == (False, "DELETE is not allowed")
