"""The requirements of a question are checked in English and Chinese."""

import pytest

from opposable.ask.sql_repair.question_requirements import find_outer_column, find_unmet_requirement
from opposable.sql.schema import Column, DatabaseSchema, Table


@pytest.mark.parametrize(
    ("question", "sql", "expected"),
    [
        ("自费患者的平均年龄是多少？", "SELECT SUM(age) FROM t", "AVG"),
        ("What is the average age?", "SELECT AVG(age) FROM t", ""),
        ("有多少名学生？", "SELECT name FROM t", "counts"),
        ("How many are there?", "SELECT COUNT(*) FROM t", ""),
        ("价格是多少？", "SELECT price FROM t", ""),
        ("每个城市有多少人？", "SELECT COUNT(*) FROM t", "groups"),
        ("How many in each city?", "SELECT city, COUNT(*) FROM t GROUP BY city", ""),
        ("每个人的姓名", "SELECT name FROM t", ""),
        ("销售总额是多少？", "SELECT price FROM t", "SUM"),
        ("总运费是多少？", "SELECT 运费 FROM t", "SUM"),
        ("公司总部在哪里？", "SELECT city FROM t", ""),
        ("年龄最大的是谁？", "SELECT name FROM t", "order"),
        ("Who is the oldest?", "SELECT name FROM t ORDER BY age DESC LIMIT 1", ""),
        ("Who is the oldest?", "SELECT name FROM t WHERE age = (SELECT MAX(age) FROM t)", ""),
        ("Who is the oldest?", "SELECT name FROM t JOIN (SELECT id, MAX(age) FROM t GROUP BY id) AS s", "order"),
        ("Who bought at least two?", "SELECT name FROM t WHERE n >= 2", ""),
        ("前三名是谁？", "SELECT name FROM t", "order"),
        ("从未下过订单的顾客", "SELECT name FROM t", "excludes"),
        ("Who never ordered?", "SELECT name FROM t WHERE id NOT IN (SELECT c FROM o)", ""),
        ("有哪些不同的城市？", "SELECT DISTINCT city FROM t", ""),
        ("超过60岁的人", "SELECT name FROM t", "bound"),
        ("people older than 60", "SELECT name FROM t WHERE age > 60", ""),
        ("赵明的电话", "SELECT name FROM t WHERE name = '赵明'", "already"),
        ("赵明的电话", "SELECT phone FROM t WHERE name = '赵明'", ""),
        ("今年的订单", "SELECT id FROM t WHERE note = '完'", "does not say"),
        ("已完成的订单", "SELECT id FROM t WHERE note = '完成'", ""),
        ("orders of this year", "SELECT id FROM t WHERE note = 'finished'", "does not say"),
        ("orders by status", "SELECT id FROM t WHERE status = 'finished'", ""),
        ("who lives in praque", "SELECT id FROM t WHERE city = 'Prague'", ""),
        ("女员工", "SELECT id FROM t WHERE sex = 'F'", ""),
        ("女员工", "SELECT id FROM t WHERE sex = 'female'", ""),
        ("平均", "SELECT FROM WHERE", ""),
    ],
)
def test_an_unmet_requirement_is_reported(question, sql, expected):
    message = find_unmet_requirement(question, sql, "sqlite")
    assert (expected in message, bool(message)) == (True, bool(expected))


def test_a_value_that_the_question_spells_differently_is_accepted():
    sql = "SELECT id FROM t WHERE city = 'Los Angeles'"
    assert find_unmet_requirement("flights from LA", sql, "sqlite") == "the question does not say city = 'Los Angeles'"
    assert find_unmet_requirement("flights from LA", sql, "sqlite", ["Los Angeles"]) == ""


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT name FROM a WHERE name IN (SELECT name FROM b WHERE kind = 1)", "b has no column name"),
        ("SELECT name FROM a WHERE id IN (SELECT a_id FROM b)", ""),
        ("SELECT name FROM a WHERE EXISTS (SELECT a.name FROM b WHERE b.a_id = a.id)", ""),
        ("SELECT name FROM a", ""),
        ("SELECT FROM WHERE", ""),
    ],
)
def test_a_subquery_that_selects_a_column_of_the_outer_query_is_reported(sql, expected):
    schema = DatabaseSchema(
        (
            Table("a", (Column("id", "INT"), Column("name", "TEXT"))),
            Table("b", (Column("a_id", "INT"), Column("kind", "INT"))),
        )
    )
    assert find_outer_column(sql, schema) == expected
