"""The answer to a perfect writer's SQL: the value as it is, one request, and no doubt without evidence."""

import datetime
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from opposable.ask.team.factory import open_team
from opposable.models.scripted import ScriptedModel
from opposable.sql.database import Database
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio

ANSWERS = [
    # a column that the SQL itself names x_growth has the unit that the SQL gives it
    (
        "Growth of revenue in percent",
        "SELECT 2024 AS year, 5.0 AS revenue, 4.0 AS revenue_previous, 25.0 AS revenue_growth",
        "year 2024, revenue 5, revenue previous 4, revenue growth 25.",
    ),
    ("销售额的增长率", "SELECT 5 AS revenue, '25%' AS revenue_growth", "revenue 5，revenue growth 25%。"),
    # numbers keep the digits that the SQL rounds to, and small ones are not 0
    ("Rate to four digits", "SELECT round(7.23456, 4)", "The answer is 7.2346."),
    ("Uptime in percent", "SELECT 99.999", "The answer is 99.999."),
    ("Share of refunds", "SELECT 0.0000234", "The answer is 2.34e-05."),
    ("Loss per unit", "SELECT -0.00001", "The answer is -1e-05."),
    ("Average", "SELECT 10.0 / 3", "The answer is 3.33."),
    # digits of keys and labels are not grouped
    ("Which order is the largest?", "SELECT id FROM orders ORDER BY amount DESC LIMIT 1", "The answer is 1000040."),
    ("订单总数", "SELECT count(*) * 1000 FROM orders", "答案是 40,000。"),
    (
        "Orders by month as a number",
        "SELECT CAST(strftime('%Y%m', ordered) AS INTEGER) AS month, count(*) * 10000 AS n FROM orders GROUP BY 1 LIMIT 2",
        "2 rows (month: n): 202401 100000, 202402 90000.",
    ),
    # a day without rows is no misspelt text
    ("How many orders on 1 January 2024?", "SELECT count(*) FROM orders WHERE ordered = '2024-01-01'", "The answer is 0."),
    ("1月2日或3日有订单吗？", "SELECT id FROM orders WHERE ordered IN ('2024-01-02', '2024-01-03')", None),
    # more rows than any table, on purpose
    (
        "Orders of each day of 2024",
        "WITH RECURSIVE d(day) AS (SELECT '2024-01-01' UNION ALL SELECT date(day, '+1 day') FROM d WHERE day < '2024-12-31')"
        " SELECT d.day, count(o.id) FROM d LEFT JOIN orders o ON o.ordered = d.day GROUP BY d.day",
        None,
    ),
    ("Tags of the orders", "SELECT o.id, t.value FROM orders o JOIN json_each(o.tags) t", None),
    ("Pairs of orders of one customer", "SELECT a.id, b.id FROM orders a JOIN orders b ON a.note = b.note AND a.id < b.id", None),
    (
        "All orders, then those with a customer",
        "SELECT id FROM orders UNION ALL SELECT o.id FROM orders o JOIN customers c ON c.id = o.customer_id",
        None,
    ),
    (
        "Which customer and day have orders?",
        "SELECT DISTINCT c.id, o.ordered FROM customers c JOIN orders o ON o.note = 'x'",
        None,
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def shop_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "shop.sqlite"
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=3 * n) for n in range(1, 41)]
    orders = [(1_000_000 + n, n % 10, days[n - 1].isoformat(), n, '["a", "b", "c"]', "x") for n in range(1, 41)]
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, city TEXT)")
        file.execute(
            "CREATE TABLE orders (id INTEGER, customer_id INTEGER, ordered DATE, amount REAL, tags, note TEXT)"
        )
        file.executemany("INSERT INTO customers VALUES (?, 'Bonn')", [(n,) for n in range(10)])
        file.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)", orders)
    file.close()
    return path


@pytest.fixture
async def shop(shop_path: Path) -> AsyncIterator[Database]:
    database = await open_database(str(shop_path))
    yield database
    await database.close()


@pytest.mark.parametrize(("question", "sql", "text"), ANSWERS)
async def test_the_answer_is_the_value_and_has_no_doubt(shop, question, sql, text):
    async with open_team(ScriptedModel(f"```sql\n{sql}\n```"), shop) as team:
        answer, end = await team.answer(question)
    assert (answer.sql, answer.warnings, answer.confidence, end.usage.requests) == (sql, (), None, 1)
    assert answer.text == text or text is None


async def test_rows_of_a_join_by_a_range_are_no_warning(shop):
    sql = "SELECT c.id, o.id FROM customers c JOIN orders o ON o.note BETWEEN 'a' AND 'z'"
    async with open_team(ScriptedModel(f"```sql\n{sql}\n```"), shop) as team:
        answer, _ = await team.answer("Orders of customers")
    assert (len(answer.rows) > 40, answer.warnings) == (True, ())


async def test_rows_that_a_join_multiplies_are_a_warning(shop):
    sql = "SELECT c.id, o.id FROM customers c JOIN orders o ON o.note = 'x'"
    async with open_team(ScriptedModel(f"```sql\n{sql}\n```"), shop) as team:
        answer, _ = await team.answer("Orders of customers")
    assert answer.warnings == ("the result has 400 rows, more than any table (40): a join may multiply rows",)
