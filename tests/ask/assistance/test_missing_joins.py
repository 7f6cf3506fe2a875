"""A table that rejected SQL lacks is joined; other SQL is unchanged."""

import pytest

from opposable.ask.assistance.missing_joins import add_missing_joins
from opposable.sql.schema import Column, DatabaseSchema, Table

SCHEMA = DatabaseSchema(
    (
        Table("city", (Column("id", "INT", primary_key=True), Column("country", "TEXT"))),
        Table(
            "shop",
            (
                Column("id", "INT", primary_key=True),
                Column("name", "TEXT"),
                Column("city_id", "INT", references="city.id"),
            ),
        ),
    ),
    dialect="sqlite",
)


def test_the_table_of_a_column_is_joined():
    result, corrections = add_missing_joins("SELECT name FROM shop WHERE country = 'France'", "sqlite", SCHEMA)
    joined = "SELECT name FROM shop JOIN city AS t2 ON shop.city_id = t2.id WHERE t2.country = 'France'"
    assert (result, corrections) == (joined, ("city joined for country",))


@pytest.mark.parametrize(
    "sql", ["SELECT name FROM shop", "SELECT zzzzz FROM shop", "SELECT name FROM", "DELETE FROM shop"]
)
def test_other_sql_is_unchanged(sql):
    assert add_missing_joins(sql, "sqlite", SCHEMA) == (sql, ())
