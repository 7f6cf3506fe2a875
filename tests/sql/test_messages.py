"""Messages keep their Chinese translation inside exceptions."""

import pytest

from opposable.domain.errors import InvalidArguments, ToolError
from opposable.domain.localized_text import localize
from opposable.sql.errors import QueryTimedOut, translate_engine_error
from opposable.sql.messages import get_error_message
from opposable.sql.name_checker import check_names
from opposable.sql.name_repair import repair_names
from opposable.sql.schema import Column, DatabaseSchema, Table
from opposable.sql.statement_guard import build_invalid_sql_error, parse_safe_query

SCHEMA = DatabaseSchema((Table("orders", (Column("id", "INT"), Column("note", "TEXT"))), Table("people", ())))


@pytest.mark.parametrize(
    ("sql", "english", "chinese"),
    [
        ("DROP TABLE orders", "DROP is not allowed: only one reading", "只能执行读取数据的语句，不允许 DROP"),
        ("EXPLAIN DROP TABLE orders", "DROP is not allowed: only one reading", "只能执行读取数据的语句，不允许 DROP"),
        (
            "SHOW TABLES",
            "SHOW is not allowed: only one reading statement (SELECT, WITH … SELECT, VALUES) may run here."
            " Call schema.list_tables or schema.list_columns instead.",
            "只能执行读取数据的语句，不允许 SHOW；请改用 schema.list_tables 或 schema.list_columns",
        ),
        (
            "SELECT * FROM information_schema.tables",
            "The system table tables may not be read: use the tables of this database."
            " Call schema.list_tables or schema.list_columns instead.",
            "不能读取系统表 tables；请改用 schema.list_tables 或 schema.list_columns",
        ),
        ("SELECT 1; SELECT 2", "The SQL holds 2 statements: only one", "只能执行一条语句，而这里有 2 条"),
        ("SELECT load_extension('x')", "The function load_extension is not", "不能使用函数 load_extension"),
        ("SELECT * FROM sqlite_master", "The system table sqlite_master may", "不能读取系统表 sqlite_master"),
        (
            "SELECT (1",
            "sql: The safety check cannot read the SQL near '1'",
            "安全检查无法解析 SQL 中 '1' 附近的内容，请改正或换一种写法",
        ),
        ("SELECT 'a", "sql: A string that begins at character 8", "sql: A string that begins at character 8"),
    ],
)
def test_refused_statements_are_reported_in_both_languages(sql, english, chinese):
    with pytest.raises(ToolError) as raised:
        parse_safe_query(sql, "sqlite", SCHEMA)
    message = get_error_message(raised.value)
    assert str(raised.value).startswith(english)
    assert localize(message, "en") == str(raised.value)
    assert localize(message, "zh").startswith(chinese)


@pytest.mark.parametrize(
    ("sql", "english", "chinese"),
    [
        (
            "SELECT a FROM payroll",
            "sql: There is no table payroll. Tables: orders, people.",
            "没有表 payroll；现有的是 orders、people",
        ),
        (
            "SELECT o.zzz FROM orders o",
            "sql: orders (alias o) has no column zzz. Its columns: id, note.",
            "orders (alias o) 没有列 zzz；现有的是 id、note",
        ),
        (
            "SELECT x.id FROM orders o",
            "sql: x in x.id is not a table or alias of this FROM, which has o. id is a column of o.",
            "x.id 中的 x 不是 FROM 中的表或别名，其中有 o；id 是 o 的列",
        ),
    ],
)
def test_wrong_names_are_reported_in_both_languages(sql, english, chinese):
    query = parse_safe_query(sql, "sqlite", SCHEMA)
    problem = next(problem for problem in check_names(query, SCHEMA) if problem.name != "a")
    error = build_invalid_sql_error(problem.message, sql)
    assert isinstance(error, InvalidArguments)
    assert str(error) == english
    assert localize(get_error_message(error), "zh") == chinese


def test_corrections_are_described_in_both_languages():
    (correction,) = repair_names("SELECT ｎote FROM orders", "sqlite", SCHEMA).corrections
    assert (str(correction), localize(correction, "zh")) == ("column ｎote → note", "列 ｎote → note")


def test_engine_errors_have_a_hint_in_english_only():
    error = translate_engine_error(ValueError("ambiguous column: Ambiguous"), None)
    assert str(error).startswith("The database says: ambiguous column")
    assert "Hint: " in str(error)
    assert localize(get_error_message(error), "zh") == "数据库报错：ambiguous column: Ambiguous."
    assert localize(get_error_message(QueryTimedOut(2.0)), "zh") == "查询超过 2 秒，已停止"
