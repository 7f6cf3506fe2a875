"""Aggregates are repaired for each engine."""

import pytest

from opposable.ask.sql_repair.aggregates import repair_aggregates

EACH, ONE, FIRST = "每个类别有多少种？", "一共有多少人？", "最贵的是哪个？"


@pytest.mark.parametrize(
    ("dialect", "question", "sql", "repaired"),
    [
        ("sqlite", EACH, "SELECT a, COUNT(*) FROM t", "SELECT a, COUNT(*) FROM t GROUP BY a"),
        ("sqlite", "How many of each?", "SELECT a, SUM(b) FROM t", "SELECT a, SUM(b) FROM t GROUP BY a"),
        ("sqlite", ONE, "SELECT a, COUNT(*) FROM t WHERE a = 'x'", "SELECT COUNT(*) FROM t WHERE a = 'x'"),
        (
            "sqlite",
            "How many are x?",
            "SELECT a, COUNT(*) FROM t WHERE a = 'x'",
            "SELECT COUNT(*) FROM t WHERE a = 'x'",
        ),
        ("sqlite", FIRST, "SELECT a, MAX(p) FROM t", None),
        ("duckdb", FIRST, "SELECT a, MAX(p) FROM t", "SELECT a, p FROM t ORDER BY p DESC LIMIT 1"),
        ("postgres", FIRST, "SELECT a, MAX(p) FROM t", "SELECT a, p FROM t ORDER BY p DESC NULLS LAST LIMIT 1"),
        ("duckdb", "每个最贵的", "SELECT a, MAX(p) FROM t", "SELECT a, MAX(p) FROM t GROUP BY a"),
        ("duckdb", FIRST, "SELECT a FROM t ORDER BY MAX(p) DESC LIMIT 1", "SELECT a FROM t ORDER BY p DESC LIMIT 1"),
        ("sqlite", FIRST, "SELECT a, max(b, c) FROM t", None),
        ("duckdb", "", "SELECT a FROM t WHERE p > AVG(p)", "SELECT a FROM t WHERE p > (SELECT AVG(p) FROM t)"),
        (
            "duckdb",
            "",
            "SELECT a FROM t WHERE COUNT(*) > 8 AND a <> 'x' GROUP BY a",
            "SELECT a FROM t WHERE a <> 'x' GROUP BY a HAVING COUNT(*) > 8",
        ),
        (
            "sqlite",
            "",
            "SELECT a FROM t WHERE p > 9 AND b = 1 GROUP BY a HAVING AVG(p) > 9",
            "SELECT a FROM t WHERE b = 1 GROUP BY a HAVING AVG(p) > 9",
        ),
        ("sqlite", "", "SELECT a FROM t WHERE p > 8 GROUP BY a HAVING AVG(p) > 9", None),
        ("sqlite", "", "SELECT a FROM t HAVING COUNT(*) > 8", "SELECT a FROM t GROUP BY a HAVING COUNT(*) > 8"),
        ("duckdb", "", "SELECT a, b, COUNT(*) FROM t GROUP BY a", "SELECT a, b, COUNT(*) FROM t GROUP BY a, b"),
        ("sqlite", "", "SELECT a, b, COUNT(*) FROM t GROUP BY a", None),
        ("duckdb", "", "SELECT year(d) AS y, COUNT(*) FROM t GROUP BY y", None),
        ("duckdb", "", "SELECT year(d), COUNT(*) FROM t GROUP BY 1", None),
        ("sqlite", "", "SELECT a, SUM(x) OVER (PARTITION BY a) FROM t", None),
        ("sqlite", "", "SELECT a, (SELECT COUNT(*) FROM u WHERE u.i = t.i) FROM t", None),
        (
            "sqlite",
            "",
            "SELECT a FROM (SELECT a, COUNT(*) AS n FROM t) WHERE n > 2",
            "SELECT a FROM (SELECT a, COUNT(*) AS n FROM t GROUP BY a) WHERE n > 2",
        ),
        (
            "sqlite",
            "男女各有多少人？",
            "SELECT COUNT(i) AS f FROM t WHERE g = '女' UNION SELECT COUNT(i) AS m FROM t WHERE g = '男'",
            "SELECT g, COUNT(i) AS f FROM t WHERE g IN ('女', '男') GROUP BY g",
        ),
        ("sqlite", "", "SELECT COUNT(*) FROM t WHERE g = 1 UNION SELECT COUNT(*) FROM u WHERE g = 2", None),
        ("sqlite", "", "SELECT FROM WHERE", None),
    ],
)
def test_aggregates_are_repaired_only_where_necessary(dialect, question, sql, repaired):
    result, corrections = repair_aggregates(sql, question, dialect)
    assert (result, bool(corrections)) == (repaired or sql, repaired is not None)
