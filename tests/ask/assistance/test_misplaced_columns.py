"""Columns of rejected SQL are read from the only table that can have them; other SQL is unchanged."""

import pytest

from opposable.ask.assistance.misplaced_columns import repair_misplaced_columns
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
CLINIC = DatabaseSchema(
    (
        Table("department", (Column("id", "INT", primary_key=True), Column("floor", "INT"))),
        Table(
            "doctor",
            (
                Column("id", "INT", primary_key=True),
                Column("name", "TEXT"),
                Column("department_id", "INT", references="department.id"),
            ),
        ),
        Table(
            "visit",
            (
                Column("id", "INT", primary_key=True),
                Column("doctor_id", "INT", references="doctor.id"),
                Column("substitute_id", "INT", references="person.id"),
                Column("nurse_id", "INT", references="person.id"),
            ),
        ),
        Table("person", (Column("id", "INT", primary_key=True), Column("phone", "TEXT"))),
        Table("rent", (Column("department_id", "INT", references="department.id"), Column("amount", "INT"))),
    ),
    dialect="sqlite",
)


def test_the_table_of_a_column_is_joined():
    result, corrections = repair_misplaced_columns("SELECT name FROM shop WHERE country = 'France'", "sqlite", SCHEMA)
    joined = "SELECT name FROM shop JOIN city AS t2 ON shop.city_id = t2.id WHERE t2.country = 'France'"
    assert (result, corrections) == (joined, ("city joined for country",))


@pytest.mark.parametrize(
    ("joins", "expected"),
    [
        ("department AS d JOIN visit AS v ON d.id = v.department_id",
         "department AS d JOIN doctor AS t3 ON d.id = t3.department_id JOIN visit AS v ON v.doctor_id = t3.id"),
        ("visit AS v LEFT JOIN department AS d ON v.department_id = d.id AND d.floor > 1",
         "visit AS v JOIN doctor AS t3 ON v.doctor_id = t3.id LEFT JOIN department AS d ON t3.department_id = d.id AND d.floor > 1"),
    ],
)  # fmt: skip
def test_the_table_is_joined_to_the_one_that_was_to_have_the_column_before_it_is_named(joins, expected):
    result, _ = repair_misplaced_columns(f"SELECT COUNT(*) FROM {joins} GROUP BY d.id", "postgres", CLINIC)
    assert result == f"SELECT COUNT(*) FROM {expected} GROUP BY d.id"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM department AS d JOIN visit AS v ON v.amount = d.id",
        "SELECT * FROM department AS d, visit AS v WHERE v.amount = d.floor",
        "SELECT v.phone FROM visit AS v",
    ],
)
def test_a_table_that_may_join_all_rows_or_in_two_ways_is_not_joined(sql):
    assert repair_misplaced_columns(sql, "sqlite", CLINIC) == (sql, ())


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT T1.country FROM shop AS T1 JOIN city AS T2 ON T1.city_id = T2.id WHERE T1.country = 'France'",
         "SELECT T2.country FROM shop AS T1 JOIN city AS T2 ON T1.city_id = T2.id WHERE T2.country = 'France'"),
        ("SELECT COUNT(*) FROM city JOIN shop ON shop.city_id = city.id GROUP BY city.name ORDER BY city.name",
         "SELECT COUNT(*) FROM city JOIN shop ON shop.city_id = city.id GROUP BY shop.name ORDER BY shop.name"),
        ("SELECT s.id FROM shop AS s WHERE s.city_id IN (SELECT c.id FROM city AS c JOIN shop AS x ON x.city_id = c.id WHERE c.name = 'A')",
         "SELECT s.id FROM shop AS s WHERE s.city_id IN (SELECT c.id FROM city AS c JOIN shop AS x ON x.city_id = c.id WHERE x.name = 'A')"),
    ],
)  # fmt: skip
def test_a_column_of_another_table_of_the_query_is_read_from_that_table(sql, expected):
    result, corrections = repair_misplaced_columns(sql, "sqlite", SCHEMA)
    assert result == expected
    assert len(corrections) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT T1.name FROM shop AS T1 JOIN city AS T2 ON T2.city_id = T2.id",
        "SELECT T1.name FROM shop AS T1, city AS T2 WHERE T2.city_id = T2.id",
        "SELECT T1.name FROM shop AS T1 JOIN city AS T2 ON T1.city_id = T2.id WHERE T2.name <> T1.name",
        "SELECT a.country FROM shop AS a, city AS b, city AS c",
    ],
)
def test_a_compared_column_and_one_of_several_tables_are_left_to_the_model(sql):
    assert repair_misplaced_columns(sql, "sqlite", SCHEMA) == (sql, ())


@pytest.mark.parametrize(
    "sql", ["SELECT name FROM shop", "SELECT zzzzz FROM shop", "SELECT name FROM", "DELETE FROM shop"]
)
def test_other_sql_is_unchanged(sql):
    assert repair_misplaced_columns(sql, "sqlite", SCHEMA) == (sql, ())
