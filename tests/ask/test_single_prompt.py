"""SQL is extracted from the reply to a single prompt."""

import pytest
from tests.parsers.linear_time import assert_linear

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
        ("```python\nfrom x import y\n```\n```duckdb\nFROM t\n```", "FROM t"),
        ("```sql\nSELECT 1\n```\nAgain:\n```sql\nSELECT 1;\n```\n```text\nno select\n```", "SELECT 1"),
        ("First:\n```sql\nSELECT 1;\n```\nCorrected:\n```sql\nSELECT 2\n```", "SELECT 1;\nSELECT 2"),
        ("```sql\nSELECT 1; SELECT 2;\n```", "SELECT 1; SELECT 2"),
        ("```sql\nUNPIVOT t ON a INTO NAME n VALUE v\n```", "UNPIVOT t ON a INTO NAME n VALUE v"),
        ("```sql\n-- all rows\n/* of t */ FROM t\n```", "-- all rows\n/* of t */ FROM t"),
        ('{"sql": "SELECT 1", "explanation": "one"}', "SELECT 1"),
        ('{"response": "SELECT 1"}', "SELECT 1"),
        ('```json\n{"sql": "SELECT 1"}\n```', "SELECT 1"),
        ('Only these:\n```json\n["id", "status"]\n```\nWhich?', ""),
        ("```sqlite3\nSELECT 1\n```", "SELECT 1"),
        ("```mariadb\nSELECT 1\n```", "SELECT 1"),
        ("```sql title=q.sql\nSELECT 1\n```", "SELECT 1"),
        ("``` sql\nSELECT 1\n```", "SELECT 1"),
        ("```sql SELECT 1```", "SELECT 1"),
        ("~~~sql\nSELECT 1\n~~~\nDone", "SELECT 1"),
        ("no idea", ""),
        ("<think>\nSELECT 1\n\nNo.\n</think>\n\nSELECT 2", "SELECT 2"),
        ("<think>```sql\nSELECT 1\n```</think>\n```sql\nSELECT 2\n```", "SELECT 2"),
        ("Perhaps\n```sql\nSELECT 1\n```\n</think>\n```sql\nSELECT 2\n```", "SELECT 2"),
        ("```sql\nSELECT '<think>', '</think>'\n```", "SELECT '<think>', '</think>'"),
    ],
)
def test_sql_is_extracted_from_a_reply(text, sql):
    assert extract_sql(text, "duckdb") == sql


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("mysql", "SELECT 1 # it's one; the first"),
        ("mysql", "SELECT 'it\\'s; so'"),
        ("mysql", 'SELECT "it\\"s; so"'),
        ("mysql", "SELECT `a;'b` FROM t"),
        ("postgres", "SELECT $$it's; so$$"),
        ("postgres", "SELECT E'it\\'s; so'"),
        ("clickhouse", "SELECT 'it\\'s; so'"),
    ],
)
def test_sql_is_read_in_the_dialect_of_the_database(dialect, sql):
    assert extract_sql(f"{sql}\n; Done", dialect) == sql
    assert extract_sql(f"```sql\n{sql}\n```\nIt's `done`.", dialect) == sql


QUERY = "SELECT sum(pay)\nFROM s\nWHERE note = 'a;\n\nb'"


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        (QUERY, QUERY),
        (f"{QUERY};\n", QUERY),
        (f"Here is the query:\n{QUERY}", QUERY),
        ("Here is it:\n\nSELECT 1 AS a\nFROM s\n\nIt shows the pay. Select another?", "SELECT 1 AS a\nFROM s"),
        ("查询如下：\nWITH a AS (SELECT 1) SELECT * FROM a", "WITH a AS (SELECT 1) SELECT * FROM a"),
        ("(SELECT 1) UNION (SELECT 2)", "(SELECT 1) UNION (SELECT 2)"),
        ("SELECT 1 FROM s;\nIt shows one.", "SELECT 1 FROM s"),
        ("SELECT 1 FROM s; -- one row", "SELECT 1 FROM s"),
        ("SELECT 1 FROM s; -- a SELECT\nIt shows one.", "SELECT 1 FROM s"),
        ("SELECT 1 FROM s; SELECT 2 FROM s", ""),
        ("```sql\nSELECT 1\n```\nOr select another.", "SELECT 1"),
        ("The database does not store profit. If you mean pay, I would select sum(pay) from s", ""),
        ("I could run `SELECT sum(pay) FROM s` for the pay: shall I?", ""),
        ("Please select one: revenue or basket.", ""),
        ("Select one: revenue or basket.", ""),
        ("With this data, select the sum of pay from s.", ""),
        ("没有利润数据。请 select 其他指标", ""),
        ("SELECT sum(pay) FROM s\nis what I would run: shall I?", ""),
    ],
)
def test_sql_without_a_block_is_a_statement_of_its_own_lines(text, sql):
    assert extract_sql(text, "sqlite", reads_prose=False) == sql


@pytest.mark.parametrize("reads_prose", [True, False])
@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("```sql\nDELETE FROM o;\n```", "DELETE FROM o"),
        ("First:\n```sql\nDROP VIEW v\n```\nThen:\n```sql\nSELECT 1\n```", "SELECT 1"),
        ("```\nno query\n```", ""),
        ("```sql\n```", ""),
    ],
)
def test_a_block_marked_as_sql_is_sql_if_there_is_no_query(text, sql, reads_prose):
    assert extract_sql(text, "sqlite", reads_prose=reads_prose) == sql


@pytest.mark.parametrize(
    "pattern",
    ["~", "WITH ", " ", "SELECT (\n", "SELECT 1;--;--"],
    ids=["tildes", "with", "spaces", "selects", "comments"],
)
def test_a_reply_that_repeats_itself_takes_linear_time(pattern):
    def extract(size):
        extract_sql("```" + pattern * (size // len(pattern)), "sqlite", reads_prose=False)
        extract_sql("```" + pattern * (size // len(pattern)), "sqlite")

    assert_linear(extract, 8_000)
