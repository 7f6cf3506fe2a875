"""Invalid joins are rebuilt on the schema of a small school, valid ones are unchanged."""

import pytest

from opposable.ask.assistance.foreign_key_joins import rebuild_joins
from opposable.sql.schema import Column, DatabaseSchema, Table


def make_key_column(name: str, references: str) -> Column:
    return Column(name, "INT", references=references)


SCHEMA = DatabaseSchema(
    (
        Table("班级", (Column("班级编号", "INT", primary_key=True), Column("班名", "TEXT"))),
        Table(
            "pupil",
            (
                Column("id", "INT", primary_key=True),
                Column("name", "TEXT"),
                make_key_column("class_id", "班级.班级编号"),
            ),
        ),
        Table("course", (Column("id", "INT", primary_key=True), Column("title", "TEXT"))),
        Table(
            "mark",
            (
                make_key_column("pupil_id", "pupil.id"),
                make_key_column("course_id", "course.id"),
                Column("points", "INT"),
            ),
        ),
        Table("swap", (make_key_column("first", "pupil.id"), make_key_column("second", "pupil.id"))),
        Table("weather", (Column("day", "TEXT"), Column("rain", "REAL"))),
    )
)


@pytest.mark.parametrize(
    ("sql", "repaired"),
    [
        (
            "SELECT p.name, c.title FROM pupil p JOIN course c ON p.id = c.pupil_id",
            "SELECT p.name, c.title FROM pupil AS p JOIN mark AS k1 ON p.id = k1.pupil_id JOIN course AS c ON k1.course_id = c.id",
        ),
        (
            "SELECT p.name FROM pupil p, 班级 b WHERE b.班名 = 'x'",
            "SELECT p.name FROM pupil AS p JOIN 班级 AS b ON p.class_id = b.班级编号 WHERE b.班名 = 'x'",
        ),
        (
            "SELECT m.points FROM mark m JOIN pupil p ON m.id = p.id WHERE p.name = 'x'",
            "SELECT m.points FROM mark AS m JOIN pupil AS p ON m.pupil_id = p.id WHERE p.name = 'x'",
        ),
        (
            "SELECT p.name, m.points FROM pupil p JOIN course c ON p.course_id = c.id JOIN mark m ON c.id = m.course_id",
            "SELECT p.name, m.points FROM pupil AS p JOIN mark AS m ON p.id = m.pupil_id",
        ),
        ("SELECT p.name FROM pupil p JOIN mark m ON p.id = m.pupil_id", None),
        ("SELECT p.name FROM pupil p, mark m WHERE p.id = m.pupil_id", None),
        ("SELECT p.name FROM pupil p JOIN swap s ON p.swap = s.id", None),
        ("SELECT p.name FROM pupil p JOIN weather w ON p.day = w.id", None),
        ("SELECT a.name FROM pupil a JOIN pupil b ON a.id < b.id", None),
        ("SELECT p.name FROM pupil p LEFT JOIN course c ON p.id = c.pupil_id", None),
        ("SELECT name FROM (SELECT 1 AS name) AS p JOIN mark m ON p.a = m.b", None),
        ("SELECT FROM WHERE", None),
    ],
)
def test_invalid_joins_are_rebuilt_from_foreign_keys(sql, repaired):
    result, corrections = rebuild_joins(sql, "sqlite", SCHEMA)
    assert (result, bool(corrections)) == (repaired or sql, repaired is not None)
