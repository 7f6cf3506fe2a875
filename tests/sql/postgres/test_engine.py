"""PostgreSQL: roles, letter case, schemas and estimates."""

import asyncio

import psycopg
import pytest

from opposable.domain.errors import BadInput, InvalidArguments, ToolFailed, ToolRefused, ToolUnavailable
from opposable.domain.localized_text import localize
from opposable.sql.factory import open_database
from opposable.sql.messages import get_error_message
from opposable.sql.postgres.engine import PostgresDatabase
from opposable.sql.tools import SchemaTools, SqlTools

pytestmark = pytest.mark.anyio


async def test_a_reading_role_is_used_as_it_is_and_a_writing_one_is_exchanged(postgres_url, postgres_owner):
    reader, owner = await open_database(postgres_url), await open_database(postgres_owner)
    assert isinstance(reader, PostgresDatabase)
    assert isinstance(owner, PostgresDatabase)
    assert (reader.access.assumed_role, owner.access.assumed_role) == ("", "pg_read_all_data")
    assert (await owner.run("SELECT count(*) FROM hidden")).rows == ((1,),)
    assert (await reader.get_schema()).find_table("hidden") is None
    assert "word" not in reader.identity
    await reader.close()
    await owner.close()


async def test_tables_of_all_schemas_are_listed_with_comments_and_keys(postgres_shop):
    tables = {table["name"]: table for table in await SchemaTools(postgres_shop).list_tables()}
    assert tables["customers"] == {"name": "customers", "kind": "table", "columns": 4, "rows": 3, "comment": "who buys"}
    assert tables["hr.people"] == {"name": "hr.people", "kind": "table", "columns": 3, "rows": 1}
    assert 'CREATE TABLE "Staff" (' in (await postgres_shop.get_schema()).to_ddl()


async def test_names_get_the_quotes_that_keep_their_case(postgres_shop):
    found = await SqlTools(postgres_shop).execute("SELECT s.FullName FROM staff s WHERE s.id = 1")
    assert (found["rows"], found["sql"]) == ([["Eve"]], 'SELECT s."FullName" FROM "Staff" s WHERE s."Id" = 1')


@pytest.fixture
async def two_cases(postgresql):
    """A database with names that differ in letter case only."""
    url = postgresql.new_database()
    with psycopg.connect(url, autocommit=True) as made:
        made.execute("""
            CREATE SCHEMA s2;
            CREATE TABLE "Client" (a CHAR(5)); CREATE TABLE client (b INTEGER); CREATE TABLE s2."CLIENT" (c INTEGER);
            CREATE TABLE "One" (d INTEGER);
            INSERT INTO "Client" VALUES ('x'), (NULL); INSERT INTO client VALUES (2);
        """)
    database = await open_database(url)
    yield database
    await database.close()


async def test_a_table_is_described_by_its_exact_name_or_its_only_one(two_cases):
    tools = SchemaTools(two_cases)
    columns = {}
    for name in (
        "Client",
        '"Client"',
        "client",
        "public.client",
        'public."Client"',
        "s2.client",
        "s2.CLIENT",
        "one",
        "ONE",
    ):
        found = await tools.list_columns(name, include_types=False, samples=True)
        columns[name] = found["columns"][0]["name"]
    assert "".join(columns.values()) == "aabbaccdd"
    assert (await tools.list_columns("Client", samples=True))["columns"][0]["samples"] == ["x    "]
    for name in ("CLIENT", "public.CLIENT"):
        with pytest.raises(InvalidArguments, match=r"did you mean .*Client"):
            await tools.list_columns(name)


async def test_padded_text_has_its_spaces(two_cases):
    found = await SqlTools(two_cases).execute('SELECT a, ARRAY[a] FROM "Client" ORDER BY a')
    assert found["rows"] == [["x    ", ["x    "]], [None, [None]]]


async def test_an_error_about_values_does_not_name_a_column_that_exists(postgres_shop):
    with pytest.raises(ToolFailed, match="invalid input syntax for type integer"):
        await SqlTools(postgres_shop).execute("SELECT ctid, xmin, o.tableoid FROM orders o WHERE id = 'x'")


async def test_text_in_double_quotes_is_pointed_out(postgres_shop):
    with pytest.raises(InvalidArguments, match="Text belongs in single quotes, not double quotes"):
        await SqlTools(postgres_shop).execute('SELECT id FROM orders WHERE note = "Paid"')


@pytest.mark.parametrize("bad", ["reader:wrong%20secret%25", "no:wrong%20secret%25"])
async def test_a_password_is_in_no_error_message(postgres_url, bad):
    url = f"postgresql://{bad}@127.0.0.1:1/shop"
    for wrong in (url, url.replace("%25", "%zz")):
        with pytest.raises(BadInput) as raised:
            await open_database(wrong)
        assert "secret" not in str(raised.value)


async def test_the_end_of_a_password_with_an_at_sign_is_in_no_error_message():
    with pytest.raises(BadInput, match="special characters percent-encoded") as raised:
        await open_database("postgresql://reader:wrong@secret@127.0.0.1:1/shop")
    assert "secret" not in str(raised.value)


PARTS_SQL = """
CREATE EXTENSION ltree; CREATE EXTENSION pg_trgm; CREATE EXTENSION dblink; CREATE EXTENSION tablefunc;
CREATE SCHEMA archive; GRANT USAGE ON SCHEMA archive TO shop_reader;
CREATE TABLE sales (id INTEGER, sold DATE, path LTREE) PARTITION BY RANGE (sold);
CREATE TABLE archive."Sales_2023" PARTITION OF sales FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
CREATE TABLE sales_2024 PARTITION OF sales FOR VALUES FROM ('2024-01-01') TO ('2025-01-01') PARTITION BY LIST (id);
CREATE TABLE sales_2024_1 PARTITION OF sales_2024 FOR VALUES IN (1);
CREATE TABLE sales_2024_2 PARTITION OF sales_2024 FOR VALUES IN (2);
INSERT INTO sales VALUES (1, '2023-05-01', 'a.b'), (1, '2024-05-01', 'a.b.c'), (2, '2024-06-01', 'a.d');
GRANT SELECT ON sales, archive."Sales_2023", sales_2024, sales_2024_1 TO shop_reader;
CREATE TABLE pay (id INTEGER) PARTITION BY LIST (id);
CREATE TABLE pay_1 PARTITION OF pay FOR VALUES IN (1);
CREATE TABLE pay_2 PARTITION OF pay FOR VALUES IN (2) PARTITION BY LIST (id);
CREATE TABLE pay_2_2 PARTITION OF pay_2 FOR VALUES IN (2);
INSERT INTO pay VALUES (1), (2);
ALTER TABLE pay ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON pay FOR SELECT TO shop_reader USING (id = 1);
GRANT SELECT ON pay, pay_1, pay_2, pay_2_2 TO shop_reader;
"""


@pytest.fixture
async def parted(postgresql, postgres_url):
    """Tools over a database with partitions and extensions."""
    url = postgresql.new_database()
    with psycopg.connect(url, autocommit=True) as made:
        made.execute(PARTS_SQL)
    database = await open_database(url.replace("//postgres:@", "//shop_reader:pass%20word%257@"))
    yield database
    await database.close()


async def test_partitions_are_read_by_name_and_not_listed(parted):
    tools = SqlTools(parted)
    assert [table["name"] for table in await SchemaTools(parted).list_tables()] == ["pay", "sales"]
    for sql, row in (
        ("SELECT count(*), min(s.sold) FROM sales_2024_1 AS s", [1, "2024-05-01"]),
        ("SELECT count(*) FROM public.sales_2024", [2]),
        ('SELECT count(*) FROM archive."Sales_2023" JOIN sales USING (id) AS j WHERE j.id = 1', [2]),
    ):
        assert (await tools.execute(sql))["rows"] == [row], sql
    repaired = await tools.execute("SELECT count(*) FROM archive.sales_2023")
    assert (repaired["rows"], repaired["sql"]) == ([[1]], 'SELECT count(*) FROM archive."Sales_2023"')
    with pytest.raises(InvalidArguments, match="There is no table sales_2024_2"):
        await tools.execute("SELECT * FROM sales_2024_2")
    with pytest.raises(InvalidArguments, match=r"There is no column price in sales_2024\. .*Columns: id, sold, path"):
        await tools.execute("SELECT price FROM sales_2024")


async def test_partitions_are_not_read_around_the_row_security_of_their_table(parted):
    tools = SqlTools(parted)
    assert (await tools.execute("SELECT id FROM pay"))["rows"] == [[1]]
    for partition in ("pay_1", "pay_2", "pay_2_2"):
        with pytest.raises(InvalidArguments, match=f"There is no table {partition}"):
            await tools.execute(f"SELECT id FROM {partition}")


async def test_immutable_functions_of_extensions_may_be_called(parted):
    tools = SqlTools(parted)
    found = await tools.execute("SELECT nlevel(path), subpath(path, 1)::text, show_trgm('a') FROM sales WHERE id = 2")
    assert found["rows"] == [[2, "d", ["  a", " a "]]]
    for sql in (
        "SELECT dblink_connect('dbname=shop')",
        "SELECT * FROM dblink('dbname=shop', 'SELECT 1') AS t(a int)",
        "SELECT * FROM crosstab('SELECT 1, 2, 3') AS t(a int)",
        "SELECT set_limit(0.5), show_limit()",
    ):
        with pytest.raises(ToolRefused, match="is not available here"):
            await tools.execute(sql)


STRANGER_SQL = """
CREATE ROLE stranger LOGIN;
CREATE SCHEMA den AUTHORIZATION stranger;
GRANT USAGE ON SCHEMA den TO PUBLIC;
GRANT CREATE ON SCHEMA public TO stranger;
CREATE TABLE notes (id INTEGER, note VARCHAR(90));
INSERT INTO notes VALUES (1, 'a'), (2, 'b');
CREATE VIEW plain AS SELECT count(*) AS n FROM notes;
GRANT SELECT ON notes TO stranger;
SET ROLE stranger;
CREATE FUNCTION den.evil(given TEXT) RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN
  PERFORM set_config('role', 'none', true);
  EXECUTE 'SET LOCAL statement_timeout = 0';
  RETURN 'EVIL ' || pg_read_file('PG_VERSION');
END $$;
CREATE VIEW den.bare AS SELECT n FROM plain WHERE false;
CREATE VIEW den.lure AS SELECT den.evil('x') AS told;
CREATE VIEW den.behind AS SELECT told FROM den.lure;
CREATE TYPE den.mood AS ENUM ('good');
CREATE FUNCTION den.as_json(given den.mood) RETURNS JSON LANGUAGE sql AS $$ SELECT to_json(den.evil('x')) $$;
CREATE CAST (den.mood AS JSON) WITH FUNCTION den.as_json(den.mood);
CREATE TABLE den.moods (mood den.mood);
INSERT INTO den.moods VALUES ('good');
CREATE DOMAIN den.checked AS TEXT CHECK (den.evil(VALUE) = VALUE);
CREATE FUNCTION public.length(given VARCHAR) RETURNS INTEGER LANGUAGE sql AS $$ SELECT length(den.evil('x')) $$;
GRANT SELECT ON ALL TABLES IN SCHEMA den TO PUBLIC;
RESET ROLE;
"""


async def test_code_of_other_roles_does_not_run_with_the_rights_of_a_superuser(postgresql):
    url = postgresql.new_database()
    with psycopg.connect(url, autocommit=True) as made:
        made.execute(STRANGER_SQL.encode())
    database = await open_database(url)
    tools = SqlTools(database)
    assert {table.full_name for table in (await database.get_schema()).tables} == {
        "public.notes",
        "public.plain",
        "den.bare",
    }
    assert (await tools.execute("SELECT length(note), n FROM notes, plain"))["rows"] == [[1, 2], [1, 2]]
    for sql in (
        "SELECT told FROM den.lure",
        "SELECT told FROM den.behind",
        "SELECT mood FROM den.moods",
        "SELECT to_json(mood) FROM den.moods",
        "SELECT 'x'::den.checked",
        "SELECT CAST('x' AS den.checked)",
        "SELECT den.evil('x')",
    ):
        for run in (tools.execute, database.run, database.explain):
            with pytest.raises((ToolRefused, InvalidArguments)) as raised:
                await run(sql)
            assert "EVIL" not in str(raised.value)
    await database.close()
    with psycopg.connect(url, autocommit=True) as made:
        made.execute("DROP OWNED BY stranger CASCADE; DROP ROLE stranger")


CODE_SQL = """
CREATE TABLE hidden AS SELECT 'SECRET-4711' AS word;
CREATE TABLE ward (id INTEGER, title TEXT, total INTEGER);
INSERT INTO ward VALUES (1, 'ICU', 7);
CREATE TYPE holder AS (a INTEGER);
CREATE FUNCTION secret(ward) RETURNS TEXT LANGUAGE sql SECURITY DEFINER AS 'SELECT word FROM public.hidden';
CREATE FUNCTION total(ward) RETURNS TEXT LANGUAGE sql SECURITY DEFINER AS 'SELECT word FROM public.hidden';
CREATE FUNCTION opened(holder) RETURNS TEXT LANGUAGE sql AS 'SELECT word FROM public.hidden';
CREATE FUNCTION upper(ward) RETURNS TEXT LANGUAGE sql SECURITY DEFINER AS 'SELECT word FROM public.hidden';
CREATE FUNCTION plus(TEXT, TEXT) RETURNS TEXT LANGUAGE sql SECURITY DEFINER AS 'SELECT word FROM public.hidden';
CREATE OPERATOR public.+ (leftarg = TEXT, rightarg = TEXT, function = plus);
CREATE FUNCTION is_like(ward, ward) RETURNS BOOLEAN LANGUAGE sql SECURITY DEFINER AS 'SELECT true FROM public.hidden';
CREATE OPERATOR public.~~ (leftarg = ward, rightarg = ward, function = is_like);
CREATE FUNCTION minus(INTEGER, INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT $1 - $2';
CREATE OPERATOR public.== (leftarg = INTEGER, rightarg = INTEGER, function = minus);
CREATE FUNCTION less(TEXT, TEXT) RETURNS TEXT LANGUAGE sql AS 'SELECT replace($1, $2, $2)';
CREATE OPERATOR public.- (leftarg = TEXT, rightarg = TEXT, function = less);
GRANT SELECT ON ward TO shop_reader;
CREATE TABLE partly (id INTEGER, secret_bonus INTEGER);
GRANT SELECT (id) ON partly TO shop_reader;
"""


@pytest.fixture
async def coded(postgresql, postgres_url):
    """Tools over a database with functions and operators of its own, which run as its owner."""
    url = postgresql.new_database()
    with psycopg.connect(url, autocommit=True) as made:
        made.execute(CODE_SQL.encode())
    database = await open_database(url.replace("//postgres:@", "//shop_reader:pass%20word%257@"))
    yield SqlTools(database)
    await database.close()


async def test_neither_a_dot_nor_an_operator_calls_a_function_that_is_not_allowed(coded):
    for sql in (
        "SELECT w.secret FROM ward w",
        'SELECT ward . /* a */ "secret" FROM ward',
        "SELECT (w).secret FROM ward w",
        "SELECT ('(1,x,2)').secret",
        "SELECT {{x}}.secret",
        "SELECT (ARRAY[w])[1].secret FROM ward w",
        "SELECT w.id FROM ward w ORDER BY w.secret",
        "WITH w AS (SELECT 1 AS secret) SELECT x.secret FROM w, ward x",
        "WITH unnest AS (SELECT 1 AS secret) SELECT unnest.secret FROM unnest(ARRAY[(SELECT w FROM ward w)])",
        "SELECT w.secret FROM (SELECT 1 AS secret) w(other), ward",
        "SELECT w.total FROM ward AS w(a, b, c)",
        "SELECT (ROW(1)::holder).opened",
        "SELECT upper(w) FROM ward w",
        "SELECT w.upper FROM ward w",
        "SELECT ('0.1').pg_sleep",
        "SELECT ('server_version').current_setting",
        "SELECT ('PG_VERSION').pg_read_file",
        "SELECT 'a'::text + 'b'::text",
        "SELECT title +'b' FROM ward",
        "SELECT a LIKE b FROM ward a, ward b",
        "SELECT 3 == 1",
        "SELECT 1 OPERATOR(public.+) 2",
    ):
        with pytest.raises((ToolRefused, InvalidArguments)) as raised:
            await coded.execute(sql, {"x": "(1,x,2)"})
        assert "is not available here" in str(raised.value), sql


async def test_columns_that_share_the_name_of_a_function_are_read(coded):
    for sql in (
        "SELECT w.total FROM ward w",
        "SELECT ward.total FROM public.ward",
        "SELECT t.total FROM (SELECT sum(total) AS total FROM ward) t",
        "WITH t AS (SELECT 7 AS secret UNION SELECT 7) SELECT t.secret FROM t",
        "SELECT t.secret FROM (SELECT total FROM ward) AS t(secret)",
        "SELECT (w).id * 7 FROM ward w WHERE w.title - 'x' >= 'A'",
    ):
        assert (await coded.execute(sql))["rows"] == [[7]], sql


async def test_row_types_of_tables_that_may_not_be_read_are_refused(coded):
    for sql in (
        "SELECT * FROM json_populate_record(NULL::hidden, '{}')",
        "SELECT to_json(CAST(NULL AS Partly))",
        "SELECT NULL::_hidden",
        'SELECT ARRAY[]::"hidden"[]',
        "SELECT * FROM json_to_recordset('[]') AS x(a hidden)",
        "SELECT json_value('{}', '$.a' RETURNING hidden)",
    ):
        with pytest.raises(ToolRefused, match="row type of a table that may not be read"):
            await coded.execute(sql)
    for sql in (
        "SELECT * FROM json_populate_record(NULL::ward, '{}')",
        "SELECT NULL::holder, NULL::ward[], '1 day'::interval day",
    ):
        assert (await coded.execute(sql))["rows"]


async def test_a_server_that_does_not_answer_is_reported_in_both_languages(postgresql):
    url = postgresql.new_database()
    database = await open_database(url)
    postgresql.block_connections(url)
    with pytest.raises(ToolUnavailable) as caught:
        await database.run("SELECT 1")
    assert str(caught.value) == f"The database {database.name} does not answer now."
    assert localize(get_error_message(caught.value), "zh") == f"数据库 {database.name} 目前没有响应"
    postgresql.allow_connections(url)
    assert (await database.run("SELECT 1")).rows == ((1,),)
    await database.close()


async def test_connections_that_the_server_closed_while_idle_are_replaced(postgresql):
    url = postgresql.new_database()
    database = await open_database(url)
    await asyncio.gather(*(database.run("SELECT count(*) FROM generate_series(1, 100000)") for _ in range(3)))
    postgresql.block_connections(url)
    postgresql.allow_connections(url)
    await asyncio.sleep(0.2)
    assert (await database.run("SELECT 1")).rows == ((1,),)
    assert (await database.run("SELECT 2")).rows == ((2,),)
    await database.close()
