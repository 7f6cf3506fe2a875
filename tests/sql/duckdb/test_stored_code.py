"""Views and macros of a DuckDB file read only its tables."""

import duckdb
import pytest

from opposable.domain.errors import ToolFailed, ToolRefused
from opposable.sql.factory import open_database
from opposable.sql.tools import SqlTools

pytestmark = pytest.mark.anyio


async def test_views_and_macros_of_a_duckdb_file_cannot_read_settings_or_paths(tmp_path):
    path = tmp_path / "hostile.duckdb"
    with duckdb.connect(str(path)) as connection:
        for statement in (
            "CREATE TABLE notes AS SELECT 1 AS id, 'Ab' AS note",
            "CREATE VIEW plain(id, note) AS WITH q AS (SELECT * FROM notes) SELECT id, upper(note) FROM q WHERE id < 9",
            'CREATE VIEW "a view AS (SELECT 1)" AS SELECT count(*) AS n FROM main.plain',
            "CREATE MACRO twice(x) AS x * 2",
            "CREATE VIEW doubled AS SELECT twice(id) AS id FROM notes",
            "CREATE VIEW settings AS SELECT name, value FROM duckdb_settings()",
            "CREATE VIEW indirect AS SELECT * FROM settings",
            "CREATE VIEW places AS SELECT current_setting('secret_directory') AS place",
            "CREATE VIEW paths AS SELECT path FROM duckdb_databases",
            "CREATE MACRO lower(x) AS (SELECT max(path) FROM duckdb_databases())",
            "CREATE MACRO listed() AS TABLE SELECT path FROM duckdb_databases()",
            "CREATE VIEW hidden AS SELECT lower(note) AS note FROM notes",
        ):
            connection.execute(statement)
    database = await open_database(str(path))
    listed = {table.name for table in (await database.get_schema()).tables}
    assert listed == {"notes", "plain", "a view AS (SELECT 1)", "doubled"}
    assert (await database.run("SELECT p.note, d.id FROM plain p, doubled d")).rows == (("AB", 2),)
    for sql in (
        *(f"SELECT * FROM {view}" for view in ("settings", "indirect", "places", "paths", "hidden", "main.settings")),
        *(
            "SELECT lower('X')",
            "SELECT LOWER(note) FROM notes",
            "SELECT * FROM listed()",
            "SELECT note.lower() FROM notes",
        ),
    ):
        for run in (database.run, database.explain):
            with pytest.raises(ToolRefused):
                await run(sql)
    await database.close()


MACROS = (
    "CREATE TABLE notes AS SELECT 3 AS id, 'Ab' AS note",
    "CREATE SCHEMA extra",
    "CREATE MACRO tax(x, rate := 2) AS x * rate",
    "CREATE MACRO extra.half(x) AS x / 2",
    "CREATE MACRO taxed(x) AS x + tax(x)",
    "CREATE MACRO above(n) AS TABLE SELECT * FROM notes WHERE id > n",
    "CREATE MACRO total() AS (SELECT sum(id) FROM notes)",
    'CREATE MACRO "年份"(d) AS year(d)',
    "CREATE VIEW lines AS SELECT id FROM above(1)",
    "CREATE MACRO places() AS TABLE SELECT path FROM duckdb_databases()",
    "CREATE MACRO setting(x) AS current_setting(x)",
    "CREATE MACRO twice(x) AS x + x",
    "CREATE MACRO long(x) AS repeat(x, 1000)",
    "CREATE MACRO far(a, b) AS levenshtein(a, b)",
    'CREATE MACRO "GetVariable"(x) AS 1',
    "CREATE MACRO extra.current_setting(x) AS x",
    "CREATE VIEW outside AS SELECT system.main.current_setting('secret_directory') AS place",
)


@pytest.fixture
async def coded(tmp_path):
    """A database with macros of its own."""
    with duckdb.connect(str(tmp_path / "coded.duckdb")) as connection:
        for statement in MACROS:
            connection.execute(statement)
    database = await open_database(str(tmp_path / "coded.duckdb"))
    yield database
    await database.close()


async def test_macros_of_a_file_that_only_read_its_tables_may_be_called(coded):
    assert [table.name for table in (await coded.get_schema()).tables] == ["lines", "notes"]
    for sql, row in (
        ("SELECT tax(id), tax(id, rate := 5), taxed(id) FROM notes", [6, 15, 9]),
        ("SELECT main.tax(id), extra.half(id), total() FROM notes", [6, 1.5, 3]),
        ("SELECT n.id FROM above(2) AS n JOIN lines USING (id)", [3]),
        ("SELECT 年份(DATE '2024-01-01'), \"年份\"(DATE '2023-01-01')", [2024, 2023]),
        ("SELECT length(long(note)), length(long('x')) FROM notes", [2000, 1000]),
        ("SELECT far(note, 'Ac') FROM notes", [1]),
        (f"SELECT {'tax(' * 8}1{')' * 8}, taxed(taxed(taxed(id))) FROM notes", [256, 81]),
    ):
        found = await SqlTools(coded).execute(sql)
        assert (found["rows"], found["corrections"]) == ([row], []), sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM places()",
        "SELECT setting('threads')",
        "SELECT tax(setting('threads'))",
        "SELECT list_transform(['threads'], lambda x: setting(x))",
        "SELECT * FROM above((SELECT count(*) FROM duckdb_settings()))",
        "SELECT system.main.getvariable('x')",
        "SELECT system.main.current_setting('threads')",
        f"SELECT {'twice(' * 40}1{')' * 40}",
        "SELECT long(long(note)) FROM notes",
        "SELECT far(long(note), long(long(note))) FROM notes",
    ],
)
async def test_macros_of_a_file_do_no_more_than_a_query_may(coded, sql):
    for run in (coded.run, coded.explain, SqlTools(coded).execute):
        with pytest.raises(ToolRefused):
            await run(sql)


async def test_macros_cannot_take_the_place_of_the_functions_that_the_checks_call(tmp_path):
    path = tmp_path / "hostile.duckdb"
    with duckdb.connect(str(path)) as connection:
        for statement in (
            "CREATE TABLE notes AS SELECT 1 AS id",
            "CREATE VIEW places AS SELECT path FROM duckdb_databases()",
            "CREATE MACRO lower(x) AS (SELECT max(path) FROM duckdb_databases())",
            """CREATE MACRO json_serialize_sql(x) AS '{"error":false,"statements":[{}]}'""",
            "CREATE MACRO duckdb_functions() AS TABLE SELECT '' AS function_name LIMIT 0",
            "CREATE MACRO duckdb_views() AS TABLE SELECT 'main' AS schema_name, 'places' AS view_name, 'AS SELECT 1' AS sql",
            "CREATE MACRO current_database() AS 'other'",
        ):
            connection.execute(statement)
    database = await open_database(str(path))
    assert [table.name for table in (await database.get_schema()).tables] == ["notes"]
    for sql in ("SELECT lower('X')", "SELECT * FROM places", "SELECT path FROM system.main.duckdb_databases()"):
        with pytest.raises((ToolRefused, ToolFailed)):
            await database.run(sql)
    await database.close()
