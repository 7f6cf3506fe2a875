"""SQL is extracted from the reply to a single prompt."""

import pytest

from opposable.ask.single_prompt import extract_sql


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("```sql\nSELECT 1;\n```\nDone; see?", "SELECT 1"),
        ("```\nWITH a AS (SELECT 1) SELECT * FROM a", "WITH a AS (SELECT 1) SELECT * FROM a"),
        ("Here: SELECT ';' AS a; SELECT 2", "SELECT ';' AS a"),
        ("```python\nprint(1)\n```\n```sql\nSELECT 2\n```", "SELECT 2"),
        ("```sql\nSELECT `a``````b` FROM t\n```\nDone", "SELECT `a``````b` FROM t"),
        ("```sql\nSELECT 1```\nDone", "SELECT 1"),
        ("no idea", ""),
    ],
)
def test_sql_is_extracted_from_a_reply(text, sql):
    assert extract_sql(text) == sql
