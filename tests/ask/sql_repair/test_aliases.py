"""Aliases are repaired on a small schema."""

import pytest

from opposable.ask.sql_repair.aliases import repair_aliases
from opposable.sql.schema import Column, DatabaseSchema, Table

SCHEMA = DatabaseSchema(
    (
        Table("product", (Column("id", "INT", primary_key=True), Column("title", "TEXT"))),
        Table("problem", (Column("id", "INT", primary_key=True), Column("product_id", "INT"), Column("day", "TEXT"))),
    )
)


@pytest.mark.parametrize(
    ("sql", "repaired"),
    [
        (
            "SELECT p.title, p.day FROM product p JOIN problem p ON p.id = p.product_id",
            "SELECT p.title, p2.day FROM product AS p JOIN problem AS p2 ON p.id = p2.product_id",
        ),
        (
            "SELECT p.title FROM product AS p JOIN problem AS p ON p.id = p.id",
            "SELECT p.title FROM product AS p JOIN problem AS p2 ON p.id = p2.id",
        ),
        (
            "SELECT count(prodct.id) FROM product JOIN problem ON product.id = problem.product_id",
            "SELECT COUNT(product.id) FROM product JOIN problem ON product.id = problem.product_id",
        ),
        ("SELECT x.id FROM product JOIN problem ON product.id = problem.product_id", None),
        ("SELECT a.id FROM product a JOIN product b ON a.id = b.id", None),
        ("SELECT a.id FROM (SELECT 1 AS id) a JOIN product a ON a.id = a.id", None),
        ("SELECT FROM", None),
    ],
)
def test_every_table_gets_its_own_alias(sql, repaired):
    result, corrections = repair_aliases(sql, "sqlite", SCHEMA)
    assert (result, bool(corrections)) == (repaired or sql, repaired is not None)
