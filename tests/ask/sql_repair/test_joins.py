"""Joins are repaired on the schema of a small shop, valid ones are unchanged."""

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
    ("sql", "repaired"),
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
def test_the_table_of_a_column_is_joined(sql, repaired):
    result, corrections = add_needed_joins(sql, "sqlite", SCHEMA)
    assert (result, bool(corrections)) == (repaired or sql, repaired is not None)


@pytest.mark.parametrize(
    ("sql", "repaired"),
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
def test_a_join_that_only_uses_the_key_is_dropped(sql, repaired):
    result, corrections = drop_key_only_joins(sql, "sqlite", SCHEMA)
    assert (result, bool(corrections)) == (repaired or sql, repaired is not None)


@pytest.mark.parametrize(
    ("sql", "repaired"),
    [
        (
            "SELECT T1.name FROM customer AS T1 JOIN sale AS T2 ON T1.id = T2.customer_id WHERE T2.paid IS NULL",
            "SELECT T1.name FROM customer AS T1 LEFT JOIN sale AS T2 ON T1.id = T2.customer_id WHERE T2.paid IS NULL",
        ),
        ("SELECT T1.name FROM customer AS T1 JOIN sale AS T2 ON T1.id = T2.customer_id WHERE T1.name IS NULL", None),
    ],
)
def test_a_search_for_rows_without_a_match_uses_an_outer_join(sql, repaired):
    result, corrections = convert_to_outer_joins(sql, "sqlite")
    assert (result, bool(corrections)) == (repaired or sql, repaired is not None)


JOINED = "SELECT T1.name FROM customer AS T1 JOIN sale AS T2 ON T1.id = T2.customer_id"


@pytest.mark.parametrize(
    ("question", "sql", "repaired"),
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
def test_a_join_that_the_question_does_not_mention_is_dropped(question, sql, repaired):
    result, corrections = drop_unmentioned_joins(sql, question, "sqlite", SCHEMA)
    assert (result, bool(corrections)) == (repaired or sql, repaired is not None)


@pytest.mark.parametrize(
    ("question", "sql", "located_values", "repaired"),
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
def test_a_condition_moves_to_a_source_that_contains_the_value(question, sql, located_values, repaired):
    result, corrections = drop_unmentioned_joins(sql, question, "sqlite", SCHEMA, located_values)
    assert (result, bool(corrections)) == (repaired or sql, repaired is not None)


@pytest.mark.parametrize(
    ("sql", "repaired"),
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
def test_a_join_of_a_row_with_itself_is_dropped(sql, repaired):
    result, corrections = drop_self_joins(sql, "sqlite", SCHEMA)
    assert (result, bool(corrections)) == (repaired or sql, repaired is not None)


@pytest.mark.parametrize(
    ("sql", "repaired"),
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
def test_a_join_by_a_shared_foreign_key_is_dropped_if_one_table_has_all_columns(sql, repaired):
    result, corrections = drop_sibling_joins(sql, "sqlite", SCHEMA)
    assert (result, bool(corrections)) == (repaired or sql, repaired is not None)


@pytest.mark.parametrize(
    ("original_sql", "sql", "repaired"),
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
def test_a_join_whose_columns_were_corrected_to_another_table_is_dropped(original_sql, sql, repaired):
    result, corrections = drop_emptied_joins(sql, original_sql, "sqlite", SCHEMA)
    assert (result, bool(corrections)) == (repaired or sql, repaired is not None)


def test_an_outer_join_starts_with_the_selected_table():
    sql = "SELECT T2.name FROM sale AS T1 INNER JOIN customer AS T2 ON T1.customer_id = T2.id WHERE T1.paid IS NULL"
    assert convert_to_outer_joins(sql, "sqlite") == (
        "SELECT T2.name FROM customer AS T2 LEFT JOIN sale AS T1 ON T1.customer_id = T2.id WHERE T1.paid IS NULL",
        ("LEFT JOIN sale",),
    )


def test_sql_without_a_table_is_unchanged():
    assert convert_to_outer_joins("SELECT city, JOIN FROM country", "sqlite") == ("SELECT city, JOIN FROM country", ())


def test_a_join_of_a_column_with_itself_is_found():
    assert find_self_comparison("SELECT 1 FROM customer AS a JOIN city AS b ON b.id = b.id", "sqlite") == "b.id = b.id"
    assert find_self_comparison("SELECT 1 FROM customer AS a JOIN city AS b ON a.city_id = b.id", "sqlite") == ""
