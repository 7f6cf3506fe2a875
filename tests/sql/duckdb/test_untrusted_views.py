"""Views and macros of a DuckDB file read only its tables."""

import duckdb
import pytest

from opposable.domain.errors import ToolFailed, ToolRefused
from opposable.sql.factory import open_database

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
