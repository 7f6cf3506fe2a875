"""SQL that cannot be read, put right."""

import pytest

from opposable.ask.sql_repair.syntax import repair_syntax


@pytest.mark.parametrize(
    ("sql", "mended"),
    [
        ("SELECT a * 2 AS price (USD), b FROM t", 'SELECT a * 2 AS "price (USD)", b FROM t'),
        ("SELECT a AS 金额(元) FROM t", 'SELECT a AS "金额(元)" FROM t'),
        ("SELECT a，b FROM t WHERE c ＝ '，'", "SELECT a,b FROM t WHERE c = '，'"),
        ("SELECT CAST(a AS DECIMAL(10, 2)) FROM t", None),
        ("SELECT FROM WHERE (", None),
    ],
)
def test_what_cannot_be_read_is_put_as_sql_has_it(sql, mended):
    made, told = repair_syntax(sql, "duckdb")
    assert (made, bool(told)) == (mended or sql, mended is not None)
