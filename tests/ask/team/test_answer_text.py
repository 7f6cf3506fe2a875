"""The sentence of an answer names columns as people do and states numbers as they are."""

import pytest

from opposable.ask.team.answer_text import build_chart, format_answer_sentence


@pytest.mark.parametrize(
    ("columns", "row", "english", "chinese"),
    [
        (["avg(price)"], [1234.5678912], "The answer is 1,234.57.", "答案是 1,234.57。"),
        (["share"], [0.12345678], "The answer is 0.1235.", "答案是 0.1235。"),
        (["count(*)"], [12345], "The answer is 12,345.", "答案是 12,345。"),
        (["zip"], [12345], "The answer is 12345.", "答案是 12345。"),
        (
            ["count(*)", "SUM(o.net_amount)", "AVG(price)"],
            [3, 20.0, 6.66666667],
            "count 3, total net amount 20, average price 6.67.",
            "数量 3，net amount 合计 20，平均 price 6.67。",
        ),
        ([""], [""], "The answer is an empty text.", "答案是 空文本。"),
        (["0.5", "o.1.25", "s.pay"], [1, 2, 3], "0.5 1, o.1.25 2, pay 3.", "0.5 1，o.1.25 2，pay 3。"),
        (
            ["first_name", "MAX(DISTINCT age)", "a + b"],
            ["Ann", 4, None],
            "first name Ann, highest age 4, a + b nothing.",
            "first name Ann，最高 age 4，a + b 空。",
        ),
    ],
)
def test_columns_are_named_as_people_do_and_numbers_are_rounded(columns, row, english, chinese):
    assert format_answer_sentence(columns, [row], False, "en") == english
    assert format_answer_sentence(columns, [row], False, "zh") == chinese


COUNTRIES = [("USA", 13), ("Canada", 8), ("France", 5), ("Brazil", 5), ("Germany", 4), ("Chile", 1), ("India", 1)]


@pytest.mark.parametrize(
    ("columns", "rows", "truncated", "english", "chinese"),
    [
        (
            ["c.Country", "COUNT(*)"],
            COUNTRIES[:3],
            False,
            "3 rows (Country: count): USA 13, Canada 8, France 5.",
            "共 3 行（Country：数量）：USA 13，Canada 8，France 5。",
        ),
        (
            ["Country", "n"],
            COUNTRIES,
            False,
            "7 rows (Country: n): USA 13, Canada 8, France 5, Brazil 5, Germany 4 and 2 more.",
            "共 7 行（Country：n）：USA 13，Canada 8，France 5，Brazil 5，Germany 4，另有 2 行。",
        ),
        (
            ["Country"],
            [row[:1] for row in COUNTRIES],
            True,
            "The first 7 rows (Country): USA, Canada, France, Brazil, Germany and more.",
            "前 7 行（Country）：USA，Canada，France，Brazil，Germany，等等。",
        ),
        (
            ["name", "city", "total", "day", "note"],
            [("Ann", "Bonn", 2.5, "2024-01-01", "x"), ("Bo", None, 10000, "2024-01-02", "y")],
            False,
            "2 rows (name: city, total, day, …): Ann: Bonn, 2.5, 2024-01-01, …; Bo: nothing, 10000, 2024-01-02, ….",
            "共 2 行（name：city、total、day、…）：Ann：Bonn、2.5、2024-01-01、…；Bo：空、10000、2024-01-02、…。",
        ),
    ],
)
def test_several_rows_are_listed_with_the_names_of_their_columns(columns, rows, truncated, english, chinese):
    assert format_answer_sentence(columns, rows, truncated, "en") == english
    assert format_answer_sentence(columns, rows, truncated, "zh") == chinese


@pytest.mark.parametrize(
    ("columns", "rows", "text"),
    [
        (["count(*)", "status"], [(1234567, "a"), (20000, "b")], "2 rows (count: status): 1,234,567 a, 20,000 b."),
        (["SUM(x)", "COUNT(*)"], [(12345, 1), (20000, 2)], "2 rows (total x: count): 12,345 1, 20,000 2."),
        (["max(order_no)", "n"], [(12345, 1), (20000, 2)], "2 rows (highest order no: n): 12345 1, 20000 2."),
        (["count_star()", "status"], [(1234567, "a"), (1, "b")], "2 rows (count: status): 1,234,567 a, 1 b."),
        (["zip", "count(*)"], [(10115, 1), (10117, 20000)], "2 rows (zip: count): 10115 1, 10117 20,000."),
    ],
)
def test_the_digits_of_amounts_are_grouped_and_those_of_codes_are_not(columns, rows, text):
    assert format_answer_sentence(columns, rows, False, "en") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (99.99567, "99.99567"),
        (0.99996, "0.99996"),
        (1.08765, "1.08765"),
        (121.473701, "121.473701"),
        (0.1 + 0.2, "0.3"),
        (100 / 3, "33.33"),
        (299.9999 / 3, "99.999967"),
        (0.99999949, "0.999999"),
        (1e-7, "1e-07"),
        (1234567.0, "1,234,567"),
        (2e15, "2,000,000,000,000,000"),
        (float("inf"), "inf"),
        ("25.9733333333333333", "25.97"),
        ("-0.66666666666666666667", "-0.6667"),
        ("3.33333333333333333E-7", "3.333e-07"),
        ("12345678901234567890.123456789", "12345678901234567890.123456789"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_a_number_is_rounded_only_if_it_is_long_and_never_to_an_integer(value, text):
    assert format_answer_sentence(["x"], [[value]], False, "en") == f"The answer is {text}."


@pytest.mark.parametrize("rows", [[], [[None]]])
def test_an_empty_answer_states_its_reason(rows):
    assert format_answer_sentence(["a"], rows, False, "en", "no row satisfies a > 3") == (
        "No rows match: no row satisfies a > 3."
    )


def test_the_growth_that_was_asked_for_is_in_the_sentence_and_the_current_period_in_the_chart():
    columns = ("city", "revenue", "revenue_previous", "revenue_growth")
    rows = [("Berlin", 100.0, 80.0, 0.25), ("Bonn", 5.0, None, None)]
    assert format_answer_sentence(columns, rows, False, "en", is_compiled=True) == (
        "2 rows (city: revenue, revenue growth): Berlin: 100, +25.0%; Bonn: 5, nothing."
    )
    text = format_answer_sentence(columns, rows[:1], False, "zh", is_compiled=True)
    assert text == "city Berlin，revenue 100，revenue growth +25.0%。"
    assert build_chart(columns, rows) == {"type": "bar", "x": "city", "y": ["revenue", "revenue_previous"]}


@pytest.mark.parametrize(
    ("columns", "rows", "chart"),
    [
        (("status", "sum", "sum"), [("paid", 1, 5), ("new", 2, 6)], {"type": "bar", "x": "status", "y": ["sum"]}),
        (("fee", "fee", "n"), [("$1.50", 1.5, 1), ("$3.00", 3, 2)], {"type": "bar", "x": "fee", "y": ["n"]}),
        (("fee", "fee"), [("$1.50", 1.5), ("$3.00", 3)], None),
        (("name", "name", "n"), [("Ann", "bolt", 1), ("Ann", "nut", 2)], None),
    ],
)
def test_of_columns_with_one_name_a_chart_has_the_first(columns, rows, chart):
    assert build_chart(columns, rows) == chart


def test_a_decimal_that_is_text_is_a_number_of_the_chart():
    rows = [("25.9733333333333333", "paid"), (3, "open")]
    assert build_chart(("avg", "status"), rows) == {"type": "bar", "x": "status", "y": ["avg"]}


@pytest.mark.parametrize(
    ("columns", "rows", "chart"),
    [
        (
            ("city", "orders", "share"),
            [("A", 1950, 0.4), ("B", 2010, 0.6)],
            {"type": "bar", "x": "city", "y": ["share"]},
        ),
        (("city", "since"), [("A", 1950), ("B", 2010)], None),
        (("year", "orders"), [(2023, 1950), (2024, 2010)], {"type": "line", "x": "year", "y": ["orders"]}),
        (("city", "year", "n"), [("A", 2023, 5), ("A", 2024, 6)], {"type": "line", "x": "year", "y": ["n"]}),
        (("n", "day"), [(5, "2024-01-01"), (6, "2024-01-02")], {"type": "line", "x": "day", "y": ["n"]}),
    ],
)
def test_numbers_that_may_be_years_are_not_the_axis_where_a_text_is(columns, rows, chart):
    assert build_chart(columns, rows) == chart


def test_lists_objects_and_booleans_are_json_in_the_sentence():
    row = [True, [1, None], {"a": "李"}]
    assert format_answer_sentence(["ok", "l", "o"], [row], False, "en") == 'ok true, l [1,null], o {"a":"李"}.'
