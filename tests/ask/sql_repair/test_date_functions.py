"""Unneeded date functions are removed."""

import pytest

from opposable.ask.sql_repair.date_functions import remove_unneeded_date_functions
from opposable.sql.schema import Column, DatabaseSchema, Table

SCHEMA = DatabaseSchema((Table("t", (Column("d", "TEXT"), Column("year", "INTEGER"), Column("id", "INT"))),))


@pytest.mark.parametrize(
    ("dialect", "question", "sql", "repaired"),
    [
        ("sqlite", "7 号文档的邮寄日期是什么？", "SELECT strftime('%Y', d) FROM t", "SELECT d FROM t"),
        ("sqlite", "What is the mailing date?", "SELECT strftime('%Y', d) FROM t", "SELECT d FROM t"),
        ("sqlite", "是哪一年？", "SELECT strftime('%Y', d) FROM t", None),
        ("sqlite", "In which year?", "SELECT strftime('%Y', d) FROM t", None),
        (
            "sqlite",
            "2014 年的",
            "SELECT id FROM t WHERE strftime('%Y', year) = '2014'",
            "SELECT id FROM t WHERE year = '2014'",
        ),
        ("duckdb", "最新的日期", "SELECT year(d), strftime(d, '%Y') FROM t", "SELECT d, d FROM t"),
        ("postgres", "年龄", "SELECT extract(year FROM d) FROM t", "SELECT d FROM t"),
        ("duckdb", "按月份", "SELECT date_trunc('month', d) FROM t", None),
        ("sqlite", "date", "SELECT strftime('%Y', 'now') FROM t", None),
        ("sqlite", "date", "SELECT FROM WHERE", None),
    ],
)
def test_date_functions_stay_only_if_the_question_mentions_time(dialect, question, sql, repaired):
    result, corrections = remove_unneeded_date_functions(sql, question, dialect, SCHEMA)
    assert (result, bool(corrections)) == (repaired or sql, repaired is not None)
