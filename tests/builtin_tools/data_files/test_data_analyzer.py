"""Data files are described, grouped, correlated and charted."""

import pytest
from tests.builtin_tools.rows import create_data_folder

from opposable.builtin_tools.data_files.data_analyzer import DataAnalyzer
from opposable.domain.errors import InvalidArguments, ToolFailed, ToolRefused
from opposable.tools.function import tools_from_object
from opposable.tools.library import ToolLibrary


@pytest.fixture
def analyzer(tmp_path):
    return DataAnalyzer([create_data_folder(tmp_path)])


@pytest.mark.parametrize("name", ["sales.csv", "gbk.csv"])
def test_describe_covers_every_column(analyzer, name):
    result = analyzer.describe(name)
    assert (result["rows"], result["columns"]) == (4, 4)
    assert result["names"] == ["column", "type", "nulls", "distinct", "min", "max", "mean", "q25", "median", "q75"]
    assert result["values"] == [
        ["城市", "VARCHAR", 1, 2, "上海", "北京", None, None, None, None],
        ["date", "DATE", 0, 4, "2024-01-01", "2024-01-04", None, None, None, None],
        ["amount", "DOUBLE", 1, 3, 10.5, 30.0, 20.166667, 15.25, 20.0, 25.0],
        ["units", "BIGINT", 0, 4, 1, 4, 2.5, 1.75, 2.5, 3.25],
    ]
    assert result["table"].splitlines()[2].startswith("城市   | VARCHAR |")


@pytest.mark.parametrize(
    ("arguments", "names", "values"),
    [
        ({"by": ["城市"]}, ["城市", "count"], [["上海", 2], ["北京", 1], [None, 1]]),
        (
            {"by": ["城市"], "column": "AMOUNT", "aggregate": "sum"},
            ["城市", "sum(amount)"],
            [["上海", 40.5], ["北京", 20.0], [None, None]],
        ),
        (
            {"by": ["城市"], "column": "units", "aggregate": "mean", "limit": 1},
            ["城市", "mean(units)"],
            [[None, 4.0]],
        ),
    ],
)
def test_rows_are_grouped(analyzer, arguments, names, values):
    result = analyzer.group("sales.csv", **arguments)
    assert (result["names"], result["values"]) == (names, values)


def test_numeric_columns_are_correlated(analyzer):
    assert analyzer.correlate("sales.csv")["values"] == [["amount", "units", 0.99989]]


def test_chart_contains_its_data(analyzer):
    assert analyzer.chart("sales.csv", "bar", "城市", "units")["chart"] == {
        "type": "bar",
        "x": {"field": "城市", "type": "nominal"},
        "y": {"field": "sum(units)", "type": "quantitative"},
        "data": [{"城市": "上海", "sum(units)": 4}, {"城市": "北京", "sum(units)": 2}, {"城市": None, "sum(units)": 4}],
    }
    line = analyzer.chart("sales.csv", "line", "date", "amount", series="城市")["chart"]
    assert (line["x"]["type"], line["series"]) == ("temporal", {"field": "城市", "type": "nominal"})
    points = analyzer.chart("sales.csv", "point", "units", "amount")["chart"]
    assert points["data"][0] == {"units": 1, "amount": 10.5}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: a.group("sales.csv", ["市"]), "Did you mean 城市"),
        (lambda a: a.group("sales.csv", ["date"], "amuont", "sum"), "Did you mean amount"),
        (lambda a: a.group("sales.csv", ["城市"], "date", "mean"), "mean needs a column of numbers"),
        (lambda a: a.group("sales.csv", []), "at least one column"),
        (lambda a: a.correlate("sales.csv", ["城市", "amount"]), "城市 hold no numbers"),
        (lambda a: a.correlate("people.json"), "two columns of numbers"),
        (lambda a: a.chart("sales.csv", "bar", 'x" FROM data; --'), "there is no such column"),
    ],
)
def test_unknown_column_is_reported_with_the_known_ones(analyzer, call, message):
    with pytest.raises(InvalidArguments, match=message):
        call(analyzer)


def test_column_name_with_sql_is_quoted(tmp_path):
    (tmp_path / "x.csv").write_text('"a"") FROM read_text(\'/etc/passwd\')--",b\n1,2\n3,5\n')
    analyzer = DataAnalyzer([tmp_path])
    assert analyzer.describe("x.csv")["values"][0][:2] == ["a\") FROM read_text('/etc/passwd')--", "BIGINT"]
    assert analyzer.correlate("x.csv")["values"][0][2] == 1.0


def test_path_outside_the_roots_is_refused(analyzer):
    with pytest.raises(ToolRefused):
        analyzer.describe("../secret.csv")
    with pytest.raises(ToolRefused):
        analyzer.describe("link.csv")
    with pytest.raises(ToolFailed, match="is not a file of rows"):
        analyzer.describe("notes.txt")


@pytest.mark.anyio
async def test_group_is_called_through_the_library(analyzer):
    library = ToolLibrary(tools_from_object(analyzer, "data_analyzer"))
    result = await library.call("data_analyzer.group", {"path": "sales.csv", "by": ["城市"], "aggregate": "most"})
    assert result.failure == "invalid_arguments"
    result = await library.call("data_analyzer.group", {"path": "sales.csv", "by": ["城市"]})
    assert result.data["values"][0] == ["上海", 2]


def test_columns_of_lists_are_no_numbers(tmp_path):
    (tmp_path / "scores.json").write_text(
        '[{"name": "a", "scores": [1, 2], "sum": 3}, {"name": "b", "scores": [4], "sum": 4}]'
    )
    analyzer = DataAnalyzer([tmp_path])
    described = {row[0]: row for row in analyzer.describe("scores.json")["values"]}
    assert (described["scores"][1], described["scores"][6], described["sum"][6]) == ("BIGINT[]", None, 3.5)


def test_a_chart_is_ordered_by_its_x_axis_whatever_its_name(tmp_path):
    (tmp_path / "v.csv").write_text("v,amount\nx,1\ny,5\nz,3\n")
    chart = DataAnalyzer([tmp_path]).chart("v.csv", "line", "v", "amount")["chart"]
    assert [point["v"] for point in chart["data"]] == ["x", "y", "z"]
