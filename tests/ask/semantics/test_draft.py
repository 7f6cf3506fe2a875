import duckdb
import pytest
from tests.servers import make_clickhouse

from opposable.ask.semantics.draft import draft_semantic_model
from opposable.ask.semantics.lint import lint_semantic_model
from opposable.ask.semantics.loader import parse_semantic_model
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio


async def test_a_draft_leaves_nested_columns_out(tmp_path):
    url = make_clickhouse(
        tmp_path / "db",
        [
            "SET data_type_default_nullable = 0",
            "CREATE TABLE t (id Int32, marks Array(Int8), tags Map(String, UInt8), at Tuple(x Float64, day Date))"
            " ENGINE = MergeTree ORDER BY id",
            "INSERT INTO t VALUES (1, [1], {'a': 1}, (1, '2024-01-01'))",
        ],
    )
    database = await open_database(url)
    model = parse_semantic_model(await draft_semantic_model(database))
    assert (set(model.metrics), model.tables["t"].time) == ({"t_count"}, "")
    assert [str(finding) for finding in await lint_semantic_model(model, database) if finding.severity == "error"] == []
    await database.close()


async def test_a_draft_has_no_findings_and_only_joins_that_fit_the_data(sales):
    text = await draft_semantic_model(sales)
    model = parse_semantic_model(text)
    assert [finding for finding in await lint_semantic_model(model, sales) if finding.severity != "info"] == []
    # ClickHouse has no foreign keys.
    assert [join.text for join in model.joins] == ["sales.部门编号 = 部门.编号"] * (sales.dialect != "clickhouse")
    assert {"total_amount", "average_amount", "sales_count"} <= set(model.metrics)
    assert model.tables["sales"].time == "day"
    assert "city" in model.dimensions


async def test_a_draft_names_the_tables_of_schemas_and_aggregates_only_what_can_be(tmp_path):
    path = tmp_path / "firm.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE depts (id INTEGER PRIMARY KEY, span INTERVAL, bits BIT)")
        made.execute("CREATE SCHEMA hr; CREATE TABLE hr.depts (id INTEGER PRIMARY KEY)")
        made.execute("CREATE TABLE hr.people (id INTEGER PRIMARY KEY, dept INTEGER REFERENCES hr.depts(id))")
        made.execute("INSERT INTO depts VALUES (1, INTERVAL 1 DAY, '101'); INSERT INTO hr.depts VALUES (1)")
        made.execute("INSERT INTO hr.people VALUES (1, 1)")
    database = await open_database(str(path))
    model = parse_semantic_model(await draft_semantic_model(database))
    assert [join.text for join in model.joins] == ["hr_people.dept = hr_depts.id"]
    assert set(model.metrics) == {"depts_count", "average_span", "hr_depts_count", "hr_people_count"}
    assert await lint_semantic_model(model, database) == ()
    await database.close()
