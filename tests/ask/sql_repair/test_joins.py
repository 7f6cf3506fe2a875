"""Joins put right on a small shop's schema, and what is left alone."""

import pytest

from opposable.ask.sql_repair.joins import (
    add_needed_joins,
    convert_to_outer_joins,
    drop_emptied_joins,
    drop_key_only_joins,
    drop_self_joins,
    drop_sibling_joins,
    drop_unmentioned_joins,
    find_self_comparison,
)
from opposable.sql.schema import Column, DatabaseSchema, Table

SCHEMA = DatabaseSchema(
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
    made, told = add_needed_joins(sql, "sqlite", SCHEMA)
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
    made, told = drop_key_only_joins(sql, "sqlite", SCHEMA)
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
    made, told = convert_to_outer_joins(sql, "sqlite")
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
    made, told = drop_unmentioned_joins(sql, question, "sqlite", SCHEMA)
    assert (made, bool(told)) == (mended or sql, mended is not None)


@pytest.mark.parametrize(
    ("question", "sql", "also", "mended"),
    [
        (
            "Which customers live in Oslo?",
            "SELECT T1.name FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id WHERE T2.name = 'Oslo'",
            {("customer", "name", "Oslo")},
            "SELECT T1.name FROM customer AS T1 WHERE T1.name = 'Oslo'",
        ),
        (
            "Which customers live in Oslo?",
            "SELECT T1.name FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id WHERE T2.name = 'Oslo'",
            set(),
            None,
        ),
        (
            "Which customers live in the city Oslo?",
            "SELECT T1.name FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id WHERE T2.name = 'Oslo'",
            {("customer", "name", "Oslo")},
            None,
        ),
        (
            "Who bought most?",
            "SELECT T1.name FROM customer AS T1 JOIN sale AS T2 ON T1.id = T2.customer_id GROUP BY T1.id ORDER BY COUNT(*)",
            set(),
            None,
        ),
    ],
)
def test_a_table_nobody_speaks_of_goes_where_its_value_stands_elsewhere(question, sql, also, mended):
    made, told = drop_unmentioned_joins(sql, question, "sqlite", SCHEMA, also)
    assert (made, bool(told)) == (mended or sql, mended is not None)


@pytest.mark.parametrize(
    ("sql", "mended"),
    [
        (
            "SELECT T2.name FROM customer AS T1 JOIN customer AS T2 ON T1.id = T2.id WHERE T1.city_id = 1",
            "SELECT T1.name FROM customer AS T1 WHERE T1.city_id = 1",
        ),
        ("SELECT T2.name FROM customer AS T1 JOIN customer AS T2 ON T1.city_id = T2.city_id", None),
        ("SELECT T2.title FROM customer AS T1 JOIN city AS T2 ON T1.id = T2.id", None),
        ("not sql at all (", None),
    ],
)
def test_a_row_is_not_joined_to_itself(sql, mended):
    made, told = drop_self_joins(sql, "sqlite", SCHEMA)
    assert (made, bool(told)) == (mended or sql, mended is not None)


@pytest.mark.parametrize(
    ("sql", "mended"),
    [
        (
            "SELECT T1.客户, T2.paid FROM 客户标签 AS T1 JOIN sale AS T2 ON T1.客户 = T2.customer_id",
            None,
        ),
        (
            "SELECT T1.paid, T2.paid FROM sale AS T1 JOIN sale AS T2 ON T1.customer_id = T2.customer_id",
            "SELECT T1.paid, T1.paid FROM sale AS T1",
        ),
        ("SELECT T1.name FROM customer AS T1 JOIN sale AS T2 ON T1.id = T2.customer_id", None),
        ("not sql at all (", None),
    ],
)
def test_a_join_by_what_both_have_of_a_third_goes_where_one_has_it_all(sql, mended):
    made, told = drop_sibling_joins(sql, "sqlite", SCHEMA)
    assert (made, bool(told)) == (mended or sql, mended is not None)


@pytest.mark.parametrize(
    ("before", "sql", "mended"),
    [
        (
            "SELECT T2.name FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id",
            "SELECT T1.name FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id",
            "SELECT T1.name FROM customer AS T1",
        ),
        (
            "SELECT T2.name FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id WHERE T2.id = 7",
            "SELECT T1.name FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id WHERE T2.id = 7",
            "SELECT T1.name FROM customer AS T1 WHERE T1.city_id = 7",
        ),
        (
            "SELECT T2.name FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id WHERE T2.title = 'x'",
            "SELECT T1.name FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id WHERE T2.title = 'x'",
            None,
        ),
        (
            "SELECT T1.name FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id",
            "SELECT T1.name FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id",
            None,
        ),
        (
            "SELECT T2.name, COUNT(*) FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id GROUP BY T2.name",
            "SELECT T1.name, COUNT(*) FROM customer AS T1 JOIN city AS T2 ON T1.city_id = T2.id GROUP BY T1.name",
            None,
        ),
    ],
)
def test_a_table_whose_columns_were_anothers_goes(before, sql, mended):
    made, told = drop_emptied_joins(sql, before, "sqlite", SCHEMA)
    assert (made, bool(told)) == (mended or sql, mended is not None)


def test_an_outer_join_keeps_the_table_that_is_selected():
    sql = "SELECT T2.name FROM sale AS T1 INNER JOIN customer AS T2 ON T1.customer_id = T2.id WHERE T1.paid IS NULL"
    assert convert_to_outer_joins(sql, "sqlite") == (
        "SELECT T2.name FROM customer AS T2 LEFT JOIN sale AS T1 ON T1.customer_id = T2.id WHERE T1.paid IS NULL",
        ("LEFT JOIN sale",),
    )


def test_sql_without_a_table_is_left_alone():
    assert convert_to_outer_joins("SELECT city, JOIN FROM country", "sqlite") == ("SELECT city, JOIN FROM country", ())


def test_a_join_of_a_column_with_itself_is_seen():
    assert find_self_comparison("SELECT 1 FROM customer AS a JOIN city AS b ON b.id = b.id", "sqlite") == "b.id = b.id"
    assert find_self_comparison("SELECT 1 FROM customer AS a JOIN city AS b ON a.city_id = b.id", "sqlite") == ""
