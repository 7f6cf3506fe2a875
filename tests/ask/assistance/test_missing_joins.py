"""Rejected SQL is repaired by the rules, each of which leaves other SQL unchanged."""

import pytest

from opposable.ask.assistance import RULES, repair_rejected_sql
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


@pytest.mark.parametrize(
    ("sql", "repaired"),
    [
        ("SELECT nmae FROM shop", "SELECT name FROM shop"),
        (
            "SELECT name FROM shop WHERE country = 'France'",
            "SELECT name FROM shop JOIN city AS t2 ON shop.city_id = t2.id WHERE t2.country = 'France'",
        ),
    ],
)
def test_rules_repair_what_the_engine_rejects(sql, repaired):
    result, corrections = repair_rejected_sql(sql, "sqlite", SCHEMA)
    assert (result, len(corrections)) == (repaired, 1)


@pytest.mark.parametrize(
    "sql", ["SELECT name FROM shop", "SELECT zzzzz FROM shop", "SELECT name FROM", "DELETE FROM shop"]
)
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_leaves_other_sql_unchanged(rule, sql):
    assert rule(sql, "sqlite", SCHEMA) == (sql, ())
