"""How answers about data are printed."""

import io
from decimal import Decimal

import pytest
from rich.console import Console

from opposable.cli.data_answers import format_csv, format_sql, print_answer, round_number
from opposable.domain.answers import DataAnswer

LONG = (
    "SELECT c.name, LEFT(c.city, 3), (SELECT MAX(x) FROM t) FROM customer AS c LEFT OUTER JOIN orders o ON o.c = c.id "
    "WHERE c.name <> 'from where' GROUP BY c.name HAVING COUNT(*) > 1 ORDER BY 2 DESC LIMIT 5"
)
BROKEN = [
    "SELECT c.name, LEFT(c.city, 3), (SELECT MAX(x) FROM t)",
    "FROM customer AS c",
    "LEFT OUTER JOIN orders o ON o.c = c.id",
    "WHERE c.name <> 'from where'",
    "GROUP BY c.name",
    "HAVING COUNT(*) > 1",
    "ORDER BY 2 DESC",
    "LIMIT 5",
]


def test_a_long_query_is_broken_before_its_clauses_and_not_changed() -> None:
    assert format_sql(LONG).split("\n") == BROKEN
    assert format_sql(LONG).replace("\n", " ") == LONG


@pytest.mark.parametrize("name", ["`Join Date`", "[Join Date]", '"Join Date"', "$$it's FROM$$"])
def test_a_query_is_not_broken_within_a_name_or_text(name: str) -> None:
    sql = f"SELECT city, {name} AS joined, count(*) AS customers FROM customers GROUP BY city, {name} LIMIT 5"
    broken = [f"SELECT city, {name} AS joined, count(*) AS customers", "FROM customers", f"GROUP BY city, {name}"]
    assert format_sql(sql).split("\n") == [*broken, "LIMIT 5"]


@pytest.mark.parametrize(
    "sql",
    [
        r"SELECT 'it\'s', ' FROM x', '" + "x" * 80 + "'",
        "SELECT 1",
        "SELECT a\nFROM t" + " " * 90,
        "SELECT '" + "x" * 100,
    ],
)
def test_other_queries_stay_as_they_are(sql: str) -> None:
    assert format_sql(sql) == sql


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1234.5678, "1,234.57"),
        (Decimal("10.50"), "10.5"),
        (3.0, "3"),
        (0.000123456, "0.0001235"),
        (-0.25, "-0.25"),
        (2024, 2024),
        (True, True),
        (None, None),
        ("1.23456", "1.23456"),
    ],
)
def test_fractions_are_rounded_for_people(value: object, shown: object) -> None:
    assert round_number(value) == shown


def test_csv_has_exact_values_and_null_is_empty() -> None:
    answer = DataAnswer("x", columns=("a", "b,c"), rows=((1.23456, None), ("x,y", 2)))
    assert format_csv(answer) == 'a,"b,c"\n1.23456,\n"x,y",2\n'
    assert format_csv(answer, 1) == 'a,"b,c"\n1.23456,\n'


def test_the_chart_shows_a_decimal_that_is_text() -> None:
    chart = {"type": "bar", "x": "status", "y": ["avg"]}
    rows = (("paid", "25.9733333333333333"), ("open", None))
    out = io.StringIO()
    print_answer(Console(file=out, width=80), DataAnswer("x", "SELECT 1", ("status", "avg"), rows, chart=chart), "en")
    assert "█ 25.9733\n" in out.getvalue()
    assert "25.9733333333333333" in out.getvalue()


def test_csv_and_table_have_json_for_lists_objects_and_booleans() -> None:
    answer = DataAnswer("x", "SELECT 1", ("l", "o", "ok"), (([1, None], {"a": "李"}, True),))
    assert format_csv(answer) == 'l,o,ok\n"[1,null]","{""a"":""李""}",true\n'
    out = io.StringIO()
    print_answer(Console(file=out, width=80), answer, "en")
    assert '[1,null] │ {"a":"李"} │ true' in out.getvalue()
