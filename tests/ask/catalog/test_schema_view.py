import pytest
from tests.ask.catalog.databases import open_sqlite

from opposable.ask.catalog import open_catalog

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
    assert (view.omitted_tables, view.token_count < 200) == (0, True)
    await database.close()


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
