"""What a question's words call for, seen or missed in SQL, in both languages."""

import pytest

from opposable.ask.team.expecting import unmet


@pytest.mark.parametrize(
    ("question", "sql", "said"),
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
        ("女员工", "SELECT id FROM t WHERE sex = 'F'", ""),
        ("女员工", "SELECT id FROM t WHERE sex = 'female'", ""),
        ("平均", "SELECT FROM WHERE", ""),
    ],
)
def test_what_a_question_calls_for_is_missed(question, sql, said):
    told = unmet(question, sql, "sqlite")
    assert (said in told, bool(told)) == (True, bool(said))
