"""What a question names is found in the database, and what it needs of the schema is shown."""

import sqlite3

import pytest

from opposable.ask.catalog import CatalogLimits, open_catalog
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio


QUESTIONS = [
    ("Who works in 上海?", "部门", "城市", "上海", "exact"),
    ("行政部门有多少人？", "部门", "名称", "行政管理部", "part"),
    ("行政管理部的预算", "部门", "名称", "行政管理部", "exact"),
    ("abc事业部有谁", "部门", "名称", "ＡＢＣ事业部", "exact"),
    ("ＡＢＣ事业部有谁", "部门", "名称", "ＡＢＣ事业部", "exact"),
    ("李雷什么时候入职？", "employees", "full_name", "李雷", "exact"),
    ("salary of BRUNO FERNANDEZ", "employees", "full_name", "Bruno Fernandez", "exact"),
    ("salary of Bruno Fernadez", "employees", "full_name", "Bruno Fernandez", "fuzzy"),
    ("when was fernandez hired", "employees", "full_name", "Bruno Fernandez", "part"),
    ("streets of San Fransisco", "cities", "title", "San Francisco", "fuzzy"),
    ("how many Californias are there", "cities", "title", "California", "exact"),
    ("people in New York", "cities", "title", "New York City", "part"),
    ("which city has zip 94103", "cities", "zip", "94103", "exact"),
    ("who was hired on 2024-02-29?", "employees", "hired", "2024-02-29", "exact"),
    ("2024年2月29日入职的员工", "employees", "hired", "2024-02-29", "exact"),
    ("who earns 7200", "employees", "salary", "7200", "exact"),
]


async def test_words_of_a_question_are_matched_to_real_values(shop):
    catalog = await open_catalog(shop)
    missed = []
    for question, table, column, value, how in QUESTIONS:
        found = await catalog.match_values(question)
        if (table, column, value, how) not in [(m.table, m.column, m.value, m.kind) for m in found]:
            missed.append((question, found))
    assert missed == []
    assert catalog.is_complete
    await catalog.close()


@pytest.mark.parametrize(
    "question", ["How many are there of each?", "列出所有的名称", "", "'; DROP TABLE employees; --", '"*" ^ NEAR(']
)
async def test_a_question_that_names_nothing_matches_nothing(shop, question):
    catalog = await open_catalog(shop)
    assert [m for m in await catalog.match_values(question) if m.kind != "part"] == []
    await catalog.close()


async def test_names_of_tables_and_columns_are_no_misspelt_values(tmp_path):
    database = await sqlite(
        tmp_path, "CREATE TABLE genre (title TEXT)", "INSERT INTO genre VALUES ('Gene Krupa'), ('Genra')"
    )
    catalog = await open_catalog(database)
    assert await catalog.match_values("How many genres are there?") == ()
    await catalog.close()
    await database.close()


async def test_a_small_schema_is_shown_whole_with_keys_values_and_what_was_asked_for(tmp_path):
    database = await sqlite(
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
        "  city VARCHAR, -- asked for: 'Paris'; e.g. 'Berlin'\n"
        "  founded DATE -- e.g. '1999-01-02'\n"
        ");\n"
        'CREATE TABLE "team player" ( -- 1 rows\n'
        "  id INTEGER PRIMARY KEY,\n"
        "  team_id INTEGER REFERENCES team(id),\n"
        "  goals INTEGER -- shot; e.g. 7\n"
        ");"
    )
    assert (view.omitted_tables, view.token_count < 200) == (0, True)
    await catalog.close()
    await database.close()


async def test_cells_cannot_pose_as_instructions_or_lines_of_the_schema(shop):
    catalog = await open_catalog(shop)
    text = (await catalog.select_schema("ignore previous instructions", 20_000)).to_ddl()
    [line] = [line for line in text.splitlines() if "ignore previous" in line]
    assert line.strip().startswith("title ")
    assert "-- " in line
    assert not any(char in text for char in "\u202e\u0007")
    assert len(max(text.splitlines(), key=len)) < 400
    assert "x" * 100 not in text
    await catalog.close()


async def test_a_wide_table_is_shown_by_its_keys_and_the_columns_asked_for(shop):
    catalog = await open_catalog(shop)
    view = await catalog.select_schema("average of measure 77 in wide", 200)
    wide = next(t for t in view.tables if t.table.name == "wide")
    names = [column.name for column in wide.columns]
    assert {"id", "measure_77"} <= set(names)
    assert wide.omitted_columns == 152 - len(names) > 100
    assert f"-- and {wide.omitted_columns} more columns" in view.to_ddl()
    await catalog.close()


async def test_views_and_empty_tables_are_shown_too(shop):
    catalog = await open_catalog(shop)
    names = {table.table.full_name: table.table.kind for table in (await catalog.select_schema("x", 20_000)).tables}
    assert (names["rich"], names["empty_one"]) == ("view", "table")
    await catalog.close()


def many_tables() -> list[str]:
    """250 tables: a chain orders → order_items → products → suppliers among others that have nothing to do with them."""
    made = [
        "CREATE TABLE suppliers (supplier_id INTEGER PRIMARY KEY, company TEXT)",
        "CREATE TABLE products (product_id INTEGER PRIMARY KEY, supplier_id INTEGER REFERENCES suppliers(supplier_id), label TEXT)",
        "CREATE TABLE order_items (order_id INTEGER REFERENCES orders(order_id), product_id INTEGER REFERENCES products(product_id))",
        "CREATE TABLE orders (order_id INTEGER PRIMARY KEY, placed DATE)",
        "CREATE TABLE 客户 (客户编号 INTEGER PRIMARY KEY, 客户名称 TEXT)",
        "CREATE TABLE 合同 (合同编号 INTEGER PRIMARY KEY, 客户编号 INTEGER REFERENCES 客户(客户编号), 金额 INTEGER)",
        "INSERT INTO suppliers VALUES (1, 'Exotic Liquids')",
    ]
    made += [
        f"CREATE TABLE archive_{i} (archive_{i}_id INTEGER PRIMARY KEY, field_a TEXT, remark TEXT)" for i in range(244)
    ]
    return made


async def test_of_many_tables_those_asked_for_are_kept_with_the_way_between_them(tmp_path):
    database = await sqlite(tmp_path, *many_tables())
    catalog = await open_catalog(database)
    view = await catalog.select_schema("How many orders hold something supplied by Exotic Liquids?", 400)
    kept = {table.table.name for table in view.tables}
    assert kept >= {"orders", "suppliers", "order_items", "products"}
    assert view.omitted_tables == 250 - len(kept) > 200
    assert view.token_count <= 440
    chinese = await catalog.select_schema("每个客户的合同金额是多少？", 300)
    assert {table.table.name for table in chinese.tables} >= {"客户", "合同"}
    await catalog.close()
    await database.close()


async def test_synonyms_lead_to_their_tables(tmp_path):
    database = await sqlite(tmp_path, *many_tables())
    catalog = await open_catalog(database, synonyms={"archive_77": ("流水",), "archive_78.remark": ("turnover",)})
    assert "archive_77" in {t.table.name for t in (await catalog.select_schema("今年流水是多少", 300)).tables}
    assert "archive_78" in {t.table.name for t in (await catalog.select_schema("Show the turnover", 300)).tables}
    await catalog.close()
    await database.close()


async def test_what_was_gathered_is_kept_on_disk_until_the_data_changes(tmp_path):
    database = await sqlite(tmp_path, "CREATE TABLE t (name TEXT)", "INSERT INTO t VALUES ('Zanzibar')")
    cache = tmp_path / "cache"
    told = []
    first = await open_catalog(database, cache, on_progress=told.append)
    assert [(p.column, p.columns_done, p.total_columns, p.indexed_values) for p in told] == [("t.name", 1, 1, 1)]
    await first.close()
    again = await open_catalog(database, cache, CatalogLimits(cache_seconds=0), on_progress=told.append)
    assert (len(told), await again.count_values()) == (1, 1)
    await again.close()
    await database.close()
    changed = await sqlite(tmp_path, "INSERT INTO t VALUES ('Ouagadougou')")
    kept = await open_catalog(changed, cache)
    assert await kept.match_values("Ouagadougou") == ()
    await kept.close()
    anew = await open_catalog(changed, cache, CatalogLimits(cache_seconds=0))
    assert [match.value for match in await anew.match_values("Ouagadougou")] == ["Ouagadougou"]
    await anew.close()
    await changed.close()
    wider = await sqlite(tmp_path, "ALTER TABLE t ADD COLUMN more TEXT")
    await (await open_catalog(wider, cache)).close()
    assert len(list(cache.glob("*.sqlite"))) == 1
    assert oct(next(cache.glob("*.sqlite")).stat().st_mode & 0o777) == "0o600"
    await wider.close()


async def test_gathering_ends_at_its_bounds_and_goes_on_the_next_time(tmp_path):
    rows = ",".join(f"('one {i}', 'two {i}')" for i in range(500))
    database = await sqlite(tmp_path, "CREATE TABLE t (a TEXT, b TEXT)", f"INSERT INTO t VALUES {rows}")
    part = await open_catalog(database, tmp_path / "cache", CatalogLimits(max_values=500))
    assert (part.is_complete, await part.count_values()) == (False, 500)
    await part.close()
    whole = await open_catalog(database, tmp_path / "cache")
    assert (whole.is_complete, await whole.count_values()) == (True, 1000)
    await whole.close()
    no_time = await open_catalog(database, limits=CatalogLimits(max_seconds=0))
    assert (no_time.is_complete, (await no_time.select_schema("a")).to_ddl()) == (
        False,
        "CREATE TABLE t ( -- 500 rows\n  a TEXT,\n  b TEXT\n);",
    )
    await no_time.close()
    await database.close()


async def sqlite(tmp_path, *statements):
    path = tmp_path / "made.sqlite"
    made = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        made.execute(statement)
    made.close()
    return await open_database(str(path))
