"""`{{name}}` becomes a bound parameter; values never enter the SQL text."""

import datetime

import pytest

from opposable.domain.errors import FieldProblem, InvalidArguments
from opposable.sql.placeholders import BoundSql, bind_placeholders
from opposable.sql.tools import SqlTools

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("sql", "parameters", "bound", "values"),
    [
        ("SELECT {{a}}", {"a": 1}, "SELECT $p1", {"p1": 1}),
        ("SELECT '{{ a }}'", {"a": "x'y"}, "SELECT $p1", {"p1": "x'y"}),
        ("SELECT '%{{a}}%'", {"a": "x"}, "SELECT ('%' || $p1 || '%')", {"p1": "x"}),
        ("SELECT 'it''s {{a}}'", {"a": "x"}, "SELECT ('it''s ' || $p1)", {"p1": "x"}),
        ("SELECT {{a}}, {{b}}, {{a}}", {"a": 1, "b": 1}, "SELECT $p1, $p2, $p1", {"p1": 1, "p2": 1}),
        ("x IN {{ids}}", {"ids": [1, 2]}, "x IN ($p1, $p2)", {"p1": 1, "p2": 2}),
        ("x IN ( {{ids}})", {"ids": [1, 2]}, "x IN ( $p1, $p2)", {"p1": 1, "p2": 2}),
        ("SELECT {{起始}}", {"起始": "甲"}, "SELECT $p1", {"p1": "甲"}),
        ("SELECT {{a}}", {"a": None}, "SELECT $p1", {"p1": None}),
        ("SELECT 1 -- {{a}}", {}, "SELECT 1 -- {{a}}", {}),
        ("SELECT {'a': {'b': 1}}", {}, "SELECT {'a': {'b': 1}}", {}),
    ],
)
def test_placeholders_are_bound(sql, parameters, bound, values):
    found = bind_placeholders(sql, "duckdb", parameters)
    assert (found.sql, found.values) == (bound, values)
    assert "{{" not in bound or found.restore_placeholders(found.sql) == bound


def test_the_bound_sql_can_be_shown_with_its_placeholders():
    found = bind_placeholders("SELECT {{a}} FROM t WHERE x = {{b}}", "sqlite", {"a": 1, "b": 2})
    assert found == BoundSql("SELECT :p1 FROM t WHERE x = :p2", {"p1": 1, "p2": 2}, {":p1": "{{a}}", ":p2": "{{b}}"})
    assert found.restore_placeholders("SELECT :p1 FROM tt WHERE x = :p2 AND y = ':p1'") == (
        "SELECT {{a}} FROM tt WHERE x = {{b}} AND y = ':p1'"
    )


@pytest.mark.parametrize(
    ("sql", "parameters", "problem"),
    [
        ("SELECT {{a}}", {}, FieldProblem("parameters.a", "a value for {{a}} is missing (given: none)")),
        ("SELECT {{a}}", {"b": 1}, FieldProblem("parameters.a", "a value for {{a}} is missing (given: b)")),
        (
            "SELECT {{a}}",
            {"a": {}},
            FieldProblem("parameters.a", "must be text, a number, true, false, null or a list of these, not dict"),
        ),
        ("SELECT '{{a}}'", {"a": [1]}, FieldProblem("parameters.a", "a list cannot stand inside quotes")),
        (
            'SELECT "{{a}}"',
            {"a": 1},
            FieldProblem("sql", "a placeholder replaces a value, not a name", '"{{a}}"'),
        ),
    ],
)
def test_values_that_cannot_be_bound_are_reported(sql, parameters, problem):
    with pytest.raises(InvalidArguments) as raised:
        bind_placeholders(sql, "duckdb", parameters)
    assert raised.value.problems == (problem,)


async def test_an_empty_list_selects_nothing_or_is_reported(shop, engine):
    execute = SqlTools(shop).execute("SELECT count(*) FROM orders WHERE id IN {{ids}}", {"ids": []})
    if engine not in ("postgres", "mysql"):
        assert (await execute)["rows"] == [[0]]
        return
    with pytest.raises(InvalidArguments) as raised:
        await execute
    assert [problem.field for problem in raised.value.problems] == ["parameters.ids"]
    assert "the list is empty" in raised.value.problems[0].problem


async def test_values_arrive_as_values_whatever_they_hold(shop):
    tools = SqlTools(shop)
    evil = "x'; DELETE FROM orders; --"
    found = await tools.execute("SELECT '{{a}}' AS a, {{b}} AS b, {{c}} + 1 AS c", {"a": evil, "b": True, "c": 41})
    assert found["rows"] == [[evil, found["rows"][0][1], 42]]
    assert found["sql"] == "SELECT {{a}} AS a, {{b}} AS b, {{c}} + 1 AS c"


async def test_dates_given_as_text_or_as_dates_select_by_date(shop):
    tools = SqlTools(shop)
    sql = "SELECT count(*) FROM orders WHERE ordered BETWEEN {{start_date}} AND '{{end_date}}'"
    as_text = await tools.execute(sql, {"start_date": "2024-02-01", "end_date": "2024-02-29"})
    as_dates = await tools.execute(
        sql, {"start_date": datetime.date(2024, 2, 1), "end_date": datetime.date(2024, 2, 29)}
    )
    assert as_text["rows"] == as_dates["rows"] == [[2]]


async def test_lists_select_by_membership(shop):
    found = await SqlTools(shop).execute("SELECT id FROM orders WHERE id IN ({{ids}}) ORDER BY id", {"ids": [1, 3]})
    assert found["rows"] == [[1], [3]]
    for sql in (found["sql"], "SELECT id FROM orders WHERE id IN {{ids}} ORDER BY ｉｄ"):
        again = await SqlTools(shop).execute(sql, {"ids": [1, 3]})
        assert (again["rows"], again["sql"]) == ([[1], [3]], "SELECT id FROM orders WHERE id IN ({{ids}}) ORDER BY id")


async def test_a_query_with_placeholders_can_be_checked_before_values_are_known(shop):
    tools = SqlTools(shop)
    assert (await tools.validate("SELECT id FROM orders WHERE ordered > {{d}}"))["valid"] is True
    fixed = await tools.auto_fix_columns("SELECT ｉｄ FROM orders WHERE ｏｒｄｅｒｅｄ > {{d}}")
    assert fixed["sql"] == "SELECT id FROM orders WHERE ordered > {{d}}"
