"""The shape of results is compared with the question."""

import pytest

from opposable.ask.sql_repair.result_shape import find_shape_mismatch, repair_result_shape


@pytest.mark.parametrize(
    ("question", "sql", "shaped"),
    [
        ("Which different cities are there?", "SELECT city FROM t", "SELECT DISTINCT city FROM t"),
        ("有哪些不同的城市？", "SELECT city FROM t", "SELECT DISTINCT city FROM t"),
        ("How many different cities?", "SELECT count(city) FROM t", "SELECT COUNT(DISTINCT city) FROM t"),
        ("How many different cities?", "SELECT count(*) FROM t", "SELECT count(*) FROM t"),
        ("Different cities by country", "SELECT city FROM t GROUP BY city", "SELECT city FROM t GROUP BY city"),
        ("Which cities are there?", "SELECT city FROM t", "SELECT city FROM t"),
        (
            "Which city has the most people?",
            "SELECT city, count(*) AS n FROM t GROUP BY city ORDER BY n DESC LIMIT 1",
            "SELECT city FROM t GROUP BY city ORDER BY COUNT(*) DESC LIMIT 1",
        ),
        (
            "哪个城市的人最多？",
            "SELECT city, count(*) FROM t GROUP BY city ORDER BY count(*) DESC LIMIT 1",
            "SELECT city FROM t GROUP BY city ORDER BY COUNT(*) DESC LIMIT 1",
        ),
        (
            "总金额最高的城市是哪个？",
            "SELECT city, sum(paid) AS n FROM t GROUP BY city ORDER BY n DESC LIMIT 1",
            "SELECT city FROM t GROUP BY city ORDER BY SUM(paid) DESC LIMIT 1",
        ),
        (
            "Which city has the highest average?",
            "SELECT city, avg(paid) AS n FROM t GROUP BY city ORDER BY n DESC LIMIT 1",
            "SELECT city FROM t GROUP BY city ORDER BY AVG(paid) DESC LIMIT 1",
        ),
        (
            "投诉次数最多的是哪个城市，共多少次？",
            "SELECT city, count(*) FROM t GROUP BY city ORDER BY count(*) DESC LIMIT 1",
            "SELECT city, count(*) FROM t GROUP BY city ORDER BY count(*) DESC LIMIT 1",
        ),
        (
            "哪个城市的人最多？有多少？",
            "SELECT city, count(*) FROM t GROUP BY city ORDER BY count(*) DESC LIMIT 1",
            "SELECT city, count(*) FROM t GROUP BY city ORDER BY count(*) DESC LIMIT 1",
        ),
        (
            "Who borrowed both A and B?",
            "SELECT name FROM t WHERE book = 'A' AND t.book = 'B' AND n > 1",
            "SELECT name FROM t WHERE book = 'A' AND n > 1 INTERSECT SELECT name FROM t WHERE t.book = 'B' AND n > 1",
        ),
        ("anything different", "SELECT FROM WHERE", "SELECT FROM WHERE"),
    ],
)
def test_sql_gets_the_shape_that_the_question_requires(question, sql, shaped):
    assert repair_result_shape(sql, question, "sqlite")[0] == shaped
    assert repair_result_shape(sql, question, "sqlite")[1] == () or shaped != sql


@pytest.mark.parametrize(
    ("question", "sql", "columns", "rows", "named", "doubted"),
    [
        ("How many people are there?", "SELECT count(*) FROM t", 1, 1, [], False),
        ("How many people are there?", "SELECT * FROM t", 3, 12, [], True),
        ("How many people are there in each city?", "SELECT city, count(*) FROM t", 2, 12, [], False),
        ("一共有多少人？", "SELECT * FROM t", 1, 12, [], True),
        ("每个城市有多少人？", "SELECT * FROM t", 2, 12, [], False),
        ("Who lives in Oslo?", "SELECT name FROM t", 1, 12, ["Oslo"], True),
        ("Who lives in Oslo?", "SELECT name FROM t WHERE city = 'Oslo'", 1, 12, ["Oslo"], False),
        ("行政管理部有谁？", "SELECT name FROM t", 1, 12, ["行政管理部"], True),
    ],
)
def test_a_result_that_cannot_answer_the_question_is_reported(question, sql, columns, rows, named, doubted):
    assert bool(find_shape_mismatch(question, sql, columns, rows, named)) is doubted
