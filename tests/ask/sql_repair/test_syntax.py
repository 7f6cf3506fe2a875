"""SQL that cannot be parsed is repaired."""

import pytest

from opposable.ask.sql_repair.syntax import repair_syntax


@pytest.mark.parametrize(
    ("sql", "repaired"),
    [
        ("SELECT a * 2 AS price (USD), b FROM t", 'SELECT a * 2 AS "price (USD)", b FROM t'),
        ("SELECT a AS 金额(元) FROM t", 'SELECT a AS "金额(元)" FROM t'),
        ("SELECT a，b FROM t WHERE c ＝ '，'", "SELECT a,b FROM t WHERE c = '，'"),
        ("SELECT CAST(a AS DECIMAL(10, 2)) FROM t", None),
        ("SELECT FROM WHERE (", None),
    ],
)
def test_full_width_signs_and_unquoted_aliases_are_repaired(sql, repaired):
    result, corrections = repair_syntax(sql, "duckdb")
    assert (result, bool(corrections)) == (repaired or sql, repaired is not None)
