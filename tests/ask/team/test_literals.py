"""A text is reported as missing only if it is why a result is empty."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.ask.team.shop import format_sql_reply

from opposable.ask.team.factory import open_team
from opposable.ask.team.literals import TextLiteral, find_missing_literals, find_near_values
from opposable.models.scripted import ScriptedModel
from opposable.sql.database import Database
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio

SCRIPT = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT, city TEXT, closed INT);
INSERT INTO orders VALUES (1, 'active', 'Berlin', 0), (2, 'unpaid', 'Paris', 1);
CREATE TABLE visits (who TEXT, n INT);
INSERT INTO visits VALUES ('a', 3);
CREATE VIRTUAL TABLE notes USING fts5(body);
INSERT INTO notes VALUES ('returned shoes');
"""


@pytest.fixture
async def orders(tmp_path: Path) -> AsyncIterator[Database]:
    with closing(sqlite3.connect(tmp_path / "orders.sqlite")) as connection, connection:
        connection.executescript(SCRIPT)
    connection.close()
    database = await open_database(str(tmp_path / "orders.sqlite"))
    yield database
    await database.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM orders WHERE city IN ('Berlin', 'Berlin City', 'BER') AND closed = 1",
        "SELECT id FROM orders WHERE (city = 'Berlin' OR city = 'berlin') AND closed = 1",
        "SELECT id FROM orders EXCEPT SELECT id FROM orders WHERE status IN ('activ', 'paid')",
        "SELECT id FROM orders WHERE id > 5 AND NOT status = 'paid'",
        "SELECT id FROM orders WHERE coalesce(status, '') NOT IN ('paid')",
        "SELECT id FROM orders WHERE (status = 'paid') = 0 AND id > 5",
        "SELECT id FROM orders WHERE (status = 'paid') IS FALSE AND id > 5",
        "SELECT id FROM orders WHERE CASE WHEN status = 'Active' THEN 0 ELSE 0 END = 1",
        "SELECT CASE WHEN (SELECT count(*) FROM orders WHERE status = 'paid') > 0 THEN 1 ELSE 0 END",
        "SELECT id FROM orders WHERE (SELECT count(*) FROM visits WHERE who = 'b') = 0 AND id > 5",
        "SELECT o.id FROM orders o LEFT JOIN visits v ON v.who = 'b' WHERE o.id > 5",
        "SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.who = 'b') AND id > 5",
        "WITH orders AS (SELECT who, CASE WHEN n > 5 THEN 'inactive' ELSE 'active' END AS status FROM visits)"
        " SELECT who FROM orders WHERE status = 'inactive'",
    ],
)
async def test_a_text_that_is_not_the_reason_is_not_reported(orders, sql):
    model = ScriptedModel(format_sql_reply(sql))
    async with open_team(model, orders) as team:
        answer, end = await team.answer("Which orders?")
    assert (answer.sql, answer.warnings, end.usage.requests) == (sql, (), 1)


@pytest.mark.parametrize(
    ("sql", "missing"),
    [
        ("SELECT id FROM orders WHERE city IN ('berlin', 'BER') AND closed = 1", ["berlin", "BER"]),
        ("SELECT id FROM orders WHERE 'Bonn' = city AND status = 'active'", ["Bonn"]),
        ("SELECT id FROM orders WHERE status = 'paid' EXCEPT SELECT id FROM orders WHERE city = 'Bonn'", ["paid"]),
        ("SELECT id FROM orders WHERE city = (SELECT city FROM orders WHERE status = 'paid')", ["paid"]),
        ("SELECT n FROM visits WHERE EXISTS (SELECT 1 FROM orders WHERE status = 'paid')", ["paid"]),
        ("SELECT n FROM visits WHERE n IN (SELECT id FROM orders WHERE status = 'paid')", ["paid"]),
        ("SELECT n FROM visits v JOIN orders o ON o.id = v.n AND o.status = 'paid'", ["paid"]),
        ("WITH late AS (SELECT id FROM orders WHERE status = 'late') SELECT id FROM late", ["late"]),
        ("WITH x AS (SELECT 1 AS one) SELECT id FROM x, orders WHERE status = 'it''s'", ["it's"]),
        ("SELECT count(*) > 0 FROM orders WHERE status = 'paid'", ["paid"]),
    ],
)
async def test_a_required_text_that_no_row_has_is_reported(orders, sql, missing):
    assert [literal.value for literal in await find_missing_literals(sql, orders)] == missing


async def test_hidden_columns_of_a_virtual_table_are_not_searched(orders):
    sql = "SELECT count(*) FROM orders WHERE status = 'xyzzy'"
    async with open_team(ScriptedModel(format_sql_reply(sql)), orders) as team:
        answer, end = await team.answer("How many orders are xyzzy?")
    assert (answer.warnings, end.usage.requests) == (("no row has status = 'xyzzy'",), 1)


async def test_a_condition_is_no_reason_if_the_tables_join_no_rows(orders):
    sql = "SELECT o.id FROM orders o JOIN visits v ON v.n = o.id WHERE o.city = 'Berlin'"
    async with open_team(ScriptedModel(format_sql_reply(sql)), orders) as team:
        answer, _ = await team.answer("Which visits?")
    assert (answer.text, answer.rows) == ("No rows match.", ())


@pytest.mark.parametrize(
    ("value", "near"), [("ORD-1005", []), ("ODR-1004", ["ORD-1004"]), ("2024-01-03", []), ("2024-1-2", ["2024-01-02"])]
)
async def test_a_text_with_other_numbers_is_not_near(tmp_path, value, near):
    with closing(sqlite3.connect(tmp_path / "o.sqlite")) as connection, connection:
        connection.executescript("CREATE TABLE o (v TEXT); INSERT INTO o VALUES ('ORD-1004'), ('2024-01-02');")
    connection.close()
    database = await open_database(str(tmp_path / "o.sqlite"))
    table = (await database.get_schema()).tables[0]
    assert await find_near_values(database, TextLiteral(table, "v", value)) == near
    await database.close()
