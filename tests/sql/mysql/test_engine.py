"""MySQL and MariaDB: users, letter case, text, keys and types."""

import asyncio
from contextlib import suppress

import pytest
from tests.sql.attacks import list_attacks
from tests.sql.conftest import get_slow_sql, read_mysql_contents

from opposable.domain.errors import BadInput, InvalidArguments, ToolError, ToolFailed, ToolRefused
from opposable.sql.database import QueryLimits
from opposable.sql.factory import open_database
from opposable.sql.mysql import engine as mysql_engine
from opposable.sql.tools import SchemaTools, SqlTools

pytestmark = pytest.mark.anyio

KEYS_SQL = (
    "CREATE TABLE parents (a INTEGER, b INTEGER, note TEXT COMMENT 'what', PRIMARY KEY (a, b)) COMMENT 'older'",
    'CREATE TABLE "select" ("from" INTEGER PRIMARY KEY, "Größe x" DECIMAL(30,10), "back`tick" JSON,'
    " pa INTEGER NOT NULL, pb INTEGER, FOREIGN KEY (pa, pb) REFERENCES parents (a, b))",
    "INSERT INTO parents VALUES (1, 2, 'x')",
    "INSERT INTO \"select\" VALUES (1, 12345678901234567890.5, '[1]', 1, 2)",
    'CREATE VIEW v AS SELECT "from" FROM "select"',
    "CREATE SEQUENCE s",
)


async def test_keys_comments_and_quotes_are_read(mysql):
    database = await open_database(mysql.new_database(KEYS_SQL))
    ddl = (await database.get_schema()).to_ddl()
    assert "CREATE TABLE parents ( -- older; 1 rows" in ddl
    assert "  note text -- what" in ddl
    assert "CREATE TABLE `select` (" in ddl
    assert "  `from` int(11) PRIMARY KEY," in ddl
    assert "  pa int(11) NOT NULL REFERENCES parents.a," in ddl
    assert "  pb int(11) REFERENCES parents.b" in ddl
    assert "CREATE VIEW v (" in ddl
    assert "CREATE TABLE s (" not in ddl
    found = await SqlTools(database).execute("SELECT `from`, `Größe x`, `back``tick` FROM `select`")
    assert found["rows"] == [[1, "12345678901234567890.5000000000", "[1]"]]
    listed = await SchemaTools(database).list_columns("select", samples=True)
    assert [column["samples"] for column in listed["columns"]][3:] == [[1], [2]]
    await database.close()


async def test_a_user_who_may_access_files_is_refused(mysql, mysql_url):
    with pytest.raises(BadInput, match=r"The user root may access files of the server\. .*GRANT SELECT ON shop\.\*"):
        await open_database(mysql.get_url("shop"))


async def test_a_transaction_writes_nothing_for_any_user(mysql, mysql_url, shop_files, monkeypatch):
    """Check the read-only transaction and the limits of the session alone."""
    monkeypatch.setattr(mysql_engine, "parse_safe_query", lambda *_: None)
    monkeypatch.setattr(mysql_engine, "refuse_unlisted_tables", lambda *_: None)
    before = read_mysql_contents(mysql)
    database = await open_database(mysql.get_url("shop", "writer"))
    for sql in list_attacks("mysql", shop_files["sqlite"].parent):
        # A session may begin another transaction: the guard alone refuses the statements that do so.
        if "READ WRITE" in sql or "SLEEP" in sql or "private" in sql or len(sql) > 1_000:
            continue
        with suppress(ToolError, ValueError):
            await database.run(sql, limits=QueryLimits(timeout_seconds=1))
    for sql in ("SELECT evil()", "INSERT INTO counted VALUES (1)", "DROP TABLE orders"):
        with pytest.raises(ToolRefused, match="READ ONLY transaction"):
            await database.run(sql)
    await database.close()
    assert read_mysql_contents(mysql) == before


async def test_tables_of_other_databases_are_not_listed_or_read(mysql, mysql_url):
    database = await open_database(mysql.get_url("shop", "writer"))
    with pytest.raises(ToolRefused, match="There is no table hidden here"):
        await database.run("SELECT word FROM private.hidden")
    await database.close()


async def test_a_query_over_a_view_needs_no_right_to_explain_it(mysql_shop):
    assert (await SqlTools(mysql_shop).validate("SELECT id FROM big_orders"))["valid"] is True
    with pytest.raises(InvalidArguments, match=r"no column idd in big_orders. Did you mean id\?"):
        await SqlTools(mysql_shop).validate("SELECT idd FROM big_orders")


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT 'a\\', SLEEP(10), '", "a', SLEEP(10), "),
        ("SELECT 'a' \"b' , SLEEP(10), 'c\"", "ab' , SLEEP(10), 'c"),
        ('SELECT "a\\", SLEEP(10), "', 'a", SLEEP(10), '),
    ],
)
async def test_quotes_with_backslashes_are_read_as_the_server_reads_them(mysql_shop, sql, text):
    assert (await mysql_shop.run(sql)).rows == ((text,),)


async def test_a_servers_own_sql_mode_does_not_change_where_text_ends(mysql, mysql_url):
    with mysql.connect() as root, root.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.sql_mode")
        mode = cursor.fetchone()[0]
        cursor.execute("SET GLOBAL sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'")
        try:
            database = await open_database(mysql_url)
            assert (await database.run("SELECT 'a\\'b', \"c\"")).rows == (("a'b", "c"),)
            assert (await database.run("SELECT :p1", {"p1": "x\\' OR 1 -- %"})).rows == (("x\\' OR 1 -- %",),)
            await database.close()
        finally:
            cursor.execute("SET GLOBAL sql_mode = %s", [mode])


async def test_names_of_tables_get_the_letter_case_that_the_server_has(mysql_shop):
    found = await SqlTools(mysql_shop).execute("SELECT O.ID FROM ORDERS O WHERE O.id = 1")
    assert (found["rows"], found["sql"]) == ([[1]], "SELECT O.ID FROM orders O WHERE O.id = 1")


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("mysql://shop@127.0.0.1:1", "The URL does not name a database. Use mysql://"),
        ("mysql://shop@127.0.0.1:x/shop", "The database URL is not valid. Use mysql://"),
        ("mysql://shop@127.0.0.1/shop?charset=latin1", "`charset` is not an option of a MySQL URL. Use one of "),
        ("mysql://shop:secret%25@127.0.0.1:1/shop", "Cannot read the MySQL database at 127.0.0.1: Can't connect"),
    ],
)
async def test_a_wrong_url_is_reported_in_one_sentence(url, sentence):
    with pytest.raises(BadInput) as raised:
        await open_database(url)
    assert str(raised.value).startswith(sentence)
    assert "secret" not in str(raised.value)


async def test_a_wrong_password_or_database_is_reported_without_the_password(mysql_url):
    for wrong in (mysql_url.replace("pass%20word%257", "secret"), mysql_url.replace("/shop?", "/none?")):
        with pytest.raises(BadInput, match=r"Cannot read the MySQL database at .*Access denied") as raised:
            await open_database(wrong)
        assert "secret" not in str(raised.value)


async def test_a_connection_lost_in_a_query_is_reported_and_lost_idle_ones_are_replaced(mysql, mysql_shop):
    async def kill_connections() -> None:
        await asyncio.sleep(0.2)
        with mysql.connect() as root, root.cursor() as cursor:
            cursor.execute("SELECT id FROM information_schema.processlist WHERE user = 'shop'")
            for (thread,) in cursor.fetchall():
                cursor.execute(f"KILL {thread}")

    slow = get_slow_sql("mysql")
    results = await asyncio.gather(
        mysql_shop.run(slow), mysql_shop.run(slow), kill_connections(), return_exceptions=True
    )
    assert [str(error) for error in results[:2]] == ["The database shop does not answer now."] * 2
    await asyncio.gather(mysql_shop.run("SELECT sum(id) FROM orders"), mysql_shop.run("SELECT sum(id) FROM orders"))
    await kill_connections()
    await asyncio.sleep(0.2)
    assert (await mysql_shop.run("SELECT 1")).rows == ((1,),)
    assert (await mysql_shop.run("SELECT 2")).rows == ((2,),)


async def test_a_password_may_have_any_letters(mysql, mysql_url):
    for number, password in enumerate(("pässwörd", "密码")):
        with mysql.connect() as root, root.cursor() as cursor:
            cursor.execute(f"CREATE USER letters_{number} IDENTIFIED BY '{password}'")
            cursor.execute(f'GRANT SELECT ON "shop".* TO letters_{number}')
        url = mysql_url.replace("shop:pass%20word%257@", f"letters_{number}:{password}@")
        database = await open_database(url)
        assert (await database.run("SELECT 1")).rows == ((1,),)
        await database.close()


async def test_one_row_more_than_the_limit_is_fetched_at_most(mysql_shop):
    sql = "SELECT a.id FROM orders a, orders b, orders c, orders d, orders e, orders f LIMIT 4000"
    result = await mysql_shop.run(sql, limits=QueryLimits(max_rows=5))
    assert (len(result.rows), result.truncated) == (5, True)
    assert (await mysql_shop.run("SELECT id FROM orders", limits=QueryLimits(max_rows=4))).truncated is False


async def test_recursion_and_long_texts_are_whole(mysql, mysql_url):
    with mysql.connect() as root, root.cursor() as cursor:
        cursor.execute("SET GLOBAL group_concat_max_len = 1024, max_recursive_iterations = 1000")
    database = await open_database(mysql_url)
    next_day = "SELECT d + INTERVAL 1 DAY FROM d WHERE d < '2024-12-31'"
    days = f"WITH RECURSIVE d AS (SELECT DATE('2021-01-01') AS d UNION ALL {next_day})"
    result = await database.run(f"{days} SELECT count(*), max(d), length(GROUP_CONCAT(d)) FROM d")
    assert result.rows == ((1461, "2024-12-31", 16070),)
    await database.close()


async def test_tables_of_the_server_are_not_unknown(mysql_shop):
    tools = SqlTools(mysql_shop)
    for sql in ("SELECT seq, zzz FROM seq_1_to_3 JOIN orders", "SELECT zzz FROM orders, (SELECT 1 AS one FROM DUAL) d"):
        with pytest.raises((InvalidArguments, ToolFailed)) as raised:
            await tools.execute(sql)
        assert "There is no table" not in str(raised.value)
        assert "zzz" in str(raised.value)
