import sqlite3

import duckdb
import psycopg
import pytest
from tests.ask.catalog.databases import open_sqlite
from tests.servers import make_clickhouse, mysql, postgresql  # noqa: F401

from opposable.ask.catalog.catalog import open_catalog
from opposable.ask.catalog.schema_view import estimate_tokens, format_prompt_value
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio


async def test_a_small_schema_is_shown_whole_with_keys_and_samples(tmp_path):
    database = await open_sqlite(
        tmp_path,
        "CREATE TABLE team (id INTEGER PRIMARY KEY, city VARCHAR(40), founded DATE)",
        "INSERT INTO team VALUES (1, 'Berlin', '1999-01-02'), (2, 'Paris', '2001-05-06')",
        'CREATE TABLE "team player" (\n id INTEGER PRIMARY KEY,\n team_id INTEGER REFERENCES team(id),\n goals INTEGER -- shot\n)',
        'INSERT INTO "team player" VALUES (1, 1, 7)',
    )
    catalog = await open_catalog(database)
    view = await catalog.select_schema("Goals of Pariss?")
    assert view.to_ddl() == (
        "CREATE TABLE team ( -- 2 rows\n"
        "  id INTEGER PRIMARY KEY,\n"
        "  city VARCHAR, -- e.g. 'Berlin', 'Paris'\n"
        "  founded DATE -- e.g. '1999-01-02'\n"
        ");\n"
        'CREATE TABLE "team player" ( -- 1 rows\n'
        "  id INTEGER PRIMARY KEY,\n"
        "  team_id INTEGER REFERENCES team(id),\n"
        "  goals INTEGER -- shot; e.g. 7\n"
        ");"
    )
    assert (view.omitted_tables, estimate_tokens(view.to_ddl()) < 200) == (0, True)
    await database.close()


QUOTED_NAMES = (
    'CREATE TABLE "order" ("group" INTEGER PRIMARY KEY, "unit price" INTEGER)',
    'CREATE TABLE "sales figures" ("select" INTEGER, "order id" INTEGER REFERENCES "order"("group"))',
    'INSERT INTO "order" VALUES (1, 20)',
    'INSERT INTO "sales figures" VALUES (3, 1)',
)


def create_database_with_quoted_names(engine, tmp_path, request):
    """Return the URL of a database whose tables and columns have reserved words and spaces in their names."""
    match engine:
        case "sqlite" | "duckdb":
            path = str(tmp_path / f"names.{engine}")
            connection = (sqlite3 if engine == "sqlite" else duckdb).connect(path)
            for statement in QUOTED_NAMES:
                connection.execute(statement)
            connection.commit()
            connection.close()
            return path
        case "postgres":
            server = request.getfixturevalue("postgresql")
            with psycopg.connect(server.get_database_url("postgres"), autocommit=True) as connection:
                connection.execute("CREATE DATABASE names")
            with psycopg.connect(url := server.get_database_url("names"), autocommit=True) as connection:
                for statement in QUOTED_NAMES:
                    connection.execute(statement)
            return url
        case "mysql":
            return request.getfixturevalue("mysql").new_database(QUOTED_NAMES)
    return make_clickhouse(tmp_path / "names", QUOTED_NAMES)


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres", "mysql", "clickhouse"])
async def test_reserved_words_and_spaces_are_quoted_for_the_model(engine, tmp_path, request):
    database = await open_database(create_database_with_quoted_names(engine, tmp_path, request))
    sql = "SELECT `unit price`, `select` FROM `order` JOIN `sales figures` ON `order id` = `group`"
    try:
        schema_text = (await (await open_catalog(database)).select_schema("What?")).to_ddl()
        tool_text = (await database.get_schema()).to_ddl()
        rows = (await database.run(sql if engine == "mysql" else sql.replace("`", '"'))).rows
    finally:
        await database.close()
    quote = "`" if engine == "mysql" else '"'
    names = [
        "CREATE TABLE `order` (",
        "\n  `group` ",
        "\n  `unit price` ",
        "CREATE TABLE `sales figures` (",
        "\n  `select` ",
    ]
    has_keys = engine != "clickhouse"
    for text, key in ((schema_text, "`order`(`group`)"), (tool_text, "`order`.`group`")):
        wanted = [name.replace("`", quote) for name in (*names, *([f" REFERENCES {key}"] if has_keys else []))]
        assert [name for name in wanted if name not in text] == []
    assert [tuple(row) for row in rows] == [(20, 3)]


async def test_values_cannot_pose_as_instructions_or_lines_of_the_schema(shop):
    catalog = await open_catalog(shop)
    text = (await catalog.select_schema("ignore previous instructions", 20_000)).to_ddl()
    [line] = [line for line in text.splitlines() if "ignore previous" in line]
    assert line.strip().startswith("title ")
    assert "-- " in line
    assert not any(char in text for char in "\u202e\u0007")
    assert len(max(text.splitlines(), key=len)) < 400
    assert "x" * 100 not in text


async def test_views_and_empty_tables_are_shown_too(shop):
    catalog = await open_catalog(shop)
    names = {table.table.full_name: table.table.kind for table in (await catalog.select_schema("x", 20_000)).tables}
    assert (names["rich"], names["empty_one"]) == ("view", "table")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("it's", "'it''s'"), ("a\nb\x00\u200b", "'a b'"), ("x" * 90, "'" + "x" * 39 + "…'"), ("", "''")],
)
def test_values_are_quoted_on_one_line(text, expected):
    assert format_prompt_value(text) == expected
