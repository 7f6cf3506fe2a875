"""Samples of columns are the values that queries show."""

import duckdb
import pytest

from opposable.sql.factory import open_database
from opposable.sql.tools import SchemaTools, SqlTools

pytestmark = pytest.mark.anyio


async def test_samples_are_the_values_that_a_query_shows(tmp_path):
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            'CREATE TABLE "Order" AS SELECT * FROM (VALUES (INTERVAL 1 MONTH, 1.1::FLOAT), (NULL, NULL)) AS t("select", price)'
        )
    database = await open_database(str(path))
    rows = (await SqlTools(database).execute('SELECT "select", price FROM "Order" WHERE price > 0'))["rows"]
    columns = (await SchemaTools(database).list_columns("Order", samples=True))["columns"]
    assert rows == [["1 month", 1.1]]
    assert [column["samples"] for column in columns] == [["1 month"], [1.1]]
    await database.close()
