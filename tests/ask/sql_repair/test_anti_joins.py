"""Searches for rows without a match are repaired."""

import pytest

from opposable.ask.sql_repair.anti_joins import repair_anti_joins
from opposable.sql.schema import Column, DatabaseSchema, Table

SCHEMA = DatabaseSchema(
    (
        Table("a", (Column("id", "INT", primary_key=True), Column("name", "TEXT"))),
        Table("b", (Column("a_id", "INT", references="a.id"), Column("kind", "TEXT"))),
    )
)


@pytest.mark.parametrize(
    ("sql", "repaired"),
    [
        (
            "SELECT a.name FROM a JOIN b ON a.id = b.a_id WHERE b.name IS NULL",
            "SELECT a.name FROM a LEFT JOIN b ON a.id = b.a_id WHERE b.a_id IS NULL",
        ),
        ("SELECT a.name FROM a JOIN b ON a.id = b.a_id WHERE b.kind IS NULL", None),
        ("SELECT a.name FROM a LEFT JOIN b ON a.id = b.a_id WHERE b.a_id IS NULL", None),
        (
            "SELECT a.name FROM a JOIN b ON a.id = b.a_id WHERE b.kind = 'x' AND a.id > 1 GROUP BY a.name HAVING COUNT(b.a_id) = 0",
            "SELECT a.name FROM a WHERE a.id > 1 AND NOT EXISTS(SELECT 1 FROM b WHERE a.id = b.a_id AND b.kind = 'x')",
        ),
        ("SELECT b.kind FROM a JOIN b ON a.id = b.a_id GROUP BY b.kind HAVING COUNT(*) = 0", None),
        ("SELECT a.name FROM a JOIN b ON a.id = b.a_id GROUP BY a.name HAVING COUNT(*) = 2", None),
        ("SELECT FROM WHERE", None),
    ],
)
def test_rows_without_a_match_are_found(sql, repaired):
    result, corrections = repair_anti_joins(sql, "sqlite", SCHEMA)
    assert (result, bool(corrections)) == (repaired or sql, repaired is not None)
