"""Joins put right on a small shop's schema, and what is left alone."""

import pytest

from opposable.ask.team.joins import with_needed, with_outer, without_spare, without_unasked
from opposable.tools.sql.schema import Column, Schema, Table

SCHEMA = Schema(
    (
        Table("city", (Column("id", "INT", primary_key=True), Column("title", "TEXT"))),
        Table(
            "customer",
            (
                Column("id", "INT", primary_key=True),
                Column("name", "TEXT"),
                Column("city_id", "INT", references="city.id"),
            ),
        ),
        Table(
            "sale",
            (
                Column("customer_id", "INT", references="customer.id"),
                Column("paid", "REAL"),
            ),
        ),
        Table("客户标签", (Column("客户", "INT", references="customer.id"), Column("标签", "TEXT"))),
    )
)


@pytest.mark.parametrize(
    ("sql", "mended"),
    [
        (
            "SELECT T1.name, T1.title FROM customer AS T1",
            "SELECT T1.name, t2.title FROM customer AS T1 JOIN city AS t2 ON T1.city_id = t2.id",
        ),
        (
            "SELECT customer.name, customer.标签 FROM customer",
            "SELECT customer.name, t2.标签 FROM customer JOIN 客户标签 AS t2 ON customer.id = t2.客户",
        ),
        ("SELECT name, nothing FROM customer", None),
        ("SELECT paid FROM city", None),
        ("SELECT T1.name FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id WHERE T2.name = 'x'", None),
        ("SELECT name FROM (SELECT * FROM customer) AS c", None),
        ("not sql at all (", None),
    ],
)
def test_a_table_that_a_column_needs_is_joined(sql, mended):
    made, told = with_needed(sql, "sqlite", SCHEMA)
    assert (made, bool(told)) == (mended or sql, mended is not None)


@pytest.mark.parametrize(
    ("sql", "mended"),
    [
        (
            "SELECT count(*) FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id",
            "SELECT COUNT(*) FROM customer AS T1",
        ),
        (
            "SELECT T2.id, count(*) FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id GROUP BY T2.id",
            "SELECT T1.city_id, COUNT(*) FROM customer AS T1 GROUP BY T1.city_id",
        ),
        ("SELECT T2.title FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id", None),
        ("SELECT * FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id", None),
        ("SELECT count(*) FROM customer AS T1 JOIN sale AS T2 ON T1.id = T2.customer_id", None),
        ("SELECT count(*) FROM customer AS T1 LEFT JOIN city AS T2 ON T1.city_id = T2.id", None),
    ],
)
def test_a_table_that_adds_nothing_is_left_out(sql, mended):
    made, told = without_spare(sql, "sqlite", SCHEMA)
    assert (made, bool(told)) == (mended or sql, mended is not None)


@pytest.mark.parametrize(
    ("sql", "mended"),
    [
        (
            "SELECT T1.name FROM customer AS T1 JOIN sale AS T2 ON T1.id = T2.customer_id WHERE T2.paid IS NULL",
            "SELECT T1.name FROM customer AS T1 LEFT JOIN sale AS T2 ON T1.id = T2.customer_id WHERE T2.paid IS NULL",
        ),
        ("SELECT T1.name FROM customer AS T1 JOIN sale AS T2 ON T1.id = T2.customer_id WHERE T1.name IS NULL", None),
    ],
)
def test_what_has_none_is_looked_for_by_an_outer_join(sql, mended):
    made, told = with_outer(sql, "sqlite")
    assert (made, bool(told)) == (mended or sql, mended is not None)


JOINED = "SELECT T1.name FROM customer AS T1 JOIN sale AS T2 ON T1.id = T2.customer_id"


@pytest.mark.parametrize(
    ("question", "sql", "mended"),
    [
        ("Names of all customers?", JOINED, "SELECT T1.name FROM customer AS T1"),
        ("Which customers have sales?", JOINED, None),
        ("有销售记录的客户有哪些？", JOINED, None),
        ("Names of all customers?", f"{JOINED} WHERE T2.paid > 1", None),
        (
            "Names of all customers?",
            "SELECT T1.name FROM customer AS T1 LEFT JOIN sale AS T2 ON T1.id = T2.customer_id",
            None,
        ),
    ],
)
def test_a_joined_table_that_nobody_speaks_of_is_left_out(question, sql, mended):
    made, told = without_unasked(sql, question, "sqlite", SCHEMA)
    assert (made, bool(told)) == (mended or sql, mended is not None)
