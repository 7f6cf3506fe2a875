"""A perfect writer's SQL runs as written: by the tool, by the team and over HTTP, with one request and no doubt."""

import contextlib
import datetime
import math
import sqlite3
from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import orjson
import psycopg
import pytest
from tests.ask.hostile import make_database
from tests.harmless.disguised_statements import DISGUISED_SQL
from tests.harmless.reading_statements import ENGINE_SCHEMA, READING_SQL, TEXT_ROWS
from tests.harmless.reading_statements import SCHEMA as READING_SCHEMA
from tests.harmless.statements import SCHEMA, STATEMENTS
from tests.servers import MysqlServer, PostgresServer, make_clickhouse, mysql, postgresql  # noqa: F401
from tests.web.api.chat_serving import serve_service

from opposable.ask.team.factory import open_team
from opposable.domain.errors import InvalidArguments, ToolError, ToolRefused
from opposable.domain.messages import Message
from opposable.models.scripted import ScriptedModel
from opposable.sql.database import Database
from opposable.sql.factory import open_database
from opposable.sql.tools import SqlTools

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="session")
def shop_urls(tmp_path_factory: pytest.TempPathFactory, postgresql: PostgresServer) -> dict[str, str]:  # noqa: F811
    folder = str(tmp_path_factory.mktemp("shop"))
    locations = {"sqlite": folder, "duckdb": folder, "postgres": postgresql.new_database()}
    return {engine: make_database(engine, location, SCHEMA) for engine, location in locations.items()}


@pytest.fixture(scope="session")
def mysql_shop_url(mysql: MysqlServer) -> str:  # noqa: F811
    return make_database("mysql", mysql, SCHEMA)


@pytest.fixture(scope="session")
def clickhouse_shop_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_clickhouse(tmp_path_factory.mktemp("shop") / "db", SCHEMA)


@pytest.fixture
def shop_url(engine: str, request: pytest.FixtureRequest) -> str:
    """The shop on one engine."""
    if engine in ("mysql", "clickhouse"):
        return str(request.getfixturevalue(f"{engine}_shop_url"))
    return str(request.getfixturevalue("shop_urls")[engine])


@pytest.fixture(params=list(STATEMENTS))
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def shop(shop_url: str) -> AsyncIterator[Database]:
    database = await open_database(shop_url)
    yield database
    await database.close()


def make_perfect_writer(engine: str) -> ScriptedModel:
    """Return a model that knows the SQL of every question."""
    sql_by_question = dict(STATEMENTS[engine])

    def reply(messages: Sequence[Message]) -> str:
        question = messages[1].content.split("\n\n")[0]
        return f"```sql\n{sql_by_question[question]}\n```"

    return ScriptedModel(reply)


def normalize(rows: Sequence[Sequence[Any]]) -> list[str]:
    return sorted(str(list(row)) for row in rows)


def test_there_are_at_least_150_statements_with_a_question_each():
    assert sum(map(len, STATEMENTS.values())) >= 150
    assert all(len({question for question, _ in cases}) == len(cases) for cases in STATEMENTS.values())


async def test_the_tool_runs_the_statement_as_written(shop, engine):
    changed = {}
    for _, sql in STATEMENTS[engine]:
        expected = (await shop.run(sql)).rows
        result = await SqlTools(shop).execute(sql)
        if (result["sql"], result["corrections"], normalize(result["rows"])) != (sql, [], normalize(expected)):
            changed[sql] = result
        for found in (await SqlTools(shop).refine(sql), await SqlTools(shop).auto_fix_columns(sql)):
            if (found["sql"], found["corrections"]) != (sql, []):
                changed[sql] = found
    assert changed == {}


async def test_the_team_runs_the_statement_as_written(shop, engine):
    changed = {}
    async with open_team(make_perfect_writer(engine), shop) as team:
        for question, sql in STATEMENTS[engine]:
            expected = normalize((await shop.run(sql)).rows)
            answer, end = await team.answer(question)
            found = (answer.sql, answer.corrections, answer.warnings, answer.assumptions, end.usage.requests)
            if found != (sql, (), (), (), 1) or normalize(answer.rows) != expected:
                changed[question] = found, answer.rows
    assert changed == {}


async def test_the_api_runs_the_statement_as_written(engine, shop_url, tmp_path: Path):
    changed = {}
    async with serve_service(tmp_path, make_perfect_writer(engine)) as (session, _):
        for question, sql in STATEMENTS[engine]:
            body = {"question": question, "database": shop_url, "stream": False}
            async with session.post("/api/ask", json=body) as response:
                answer = orjson.loads(await response.read())
            expected = {"success": True, "sql": sql, "corrections": [], "warnings": [], "assumptions": []}
            if response.status != 200 or answer | expected != answer or answer["usage"]["model_calls"] != 1:
                changed[question] = answer
    assert changed == {}


async def test_a_value_is_never_replaced(shop):
    sql = "SELECT count(*) FROM orders WHERE status = 'pai'"
    async with open_team(ScriptedModel(*[f"```sql\n{sql}\n```"] * 2), shop) as team:
        answer, _ = await team.answer("How many orders are pai?")
    assert (answer.sql, answer.rows, answer.corrections) == (sql, ((0,),), ())


async def test_a_similar_table_is_never_run_instead(shop):
    async with open_team(ScriptedModel(*["```sql\nSELECT sum(amount) FROM orders_2022\n```"] * 9), shop) as team:
        answer, _ = await team.answer("Total of 2022")
    assert (answer.success, answer.rows) == (False, ())
    assert "orders_2022" in answer.error


SERVED_ENGINES = ("sqlite", "duckdb", "postgres", "mysql")


def quote_names(engine: str, sql: str) -> str:
    """Write names in backticks for MySQL."""
    if engine != "mysql":
        return sql
    return "'".join(part if number % 2 else part.replace('"', "`") for number, part in enumerate(sql.split("'")))


def list_statements(engine: str, sql_by_engines: dict[tuple[str, ...], list[str]]) -> list[str]:
    """Return the statements of an engine; those of several engines have names in double quotes."""
    return [
        quote_names(engine, sql) if len(engines) > 1 else sql
        for engines, statements in sql_by_engines.items()
        for sql in statements
        if engine in engines
    ]


def fetch_with_driver(engine: str, url: str, server: MysqlServer | None, statements: Sequence[str]) -> list[Any]:
    """Return the column names and the rows of every statement, read without the library."""
    if engine == "postgres":
        connection: Any = psycopg.connect(url)
    elif server is not None:
        connection = server.connect(url.split("/")[3].partition("?")[0])
    else:
        connection = sqlite3.connect(url) if engine == "sqlite" else duckdb.connect(url, read_only=True)
    cursor = psycopg.RawCursor(connection) if engine == "postgres" else connection.cursor()
    if engine == "mysql":
        cursor.execute("SET SESSION sql_mode = DEFAULT")
    fetched = []
    for sql in statements:
        cursor.execute(sql)
        fetched.append(([column[0] for column in cursor.description], cursor.fetchall()))
    connection.close()
    return fetched


def is_same_value(value: Any, expected: Any) -> bool:
    """Whether a JSON value represents the value of a driver, with all its digits."""
    if expected is None or isinstance(expected, bool):
        return value is expected
    if isinstance(expected, int):
        return bool(value == (expected if abs(expected) < 2**53 else str(expected))) and not isinstance(value, bool)
    if isinstance(expected, float) and math.isfinite(expected):
        return not isinstance(value, str | bool | None) and float(value) == expected
    if isinstance(expected, Decimal) and expected.is_finite():
        return not isinstance(value, bool | None) and Decimal(str(value)) == expected
    if isinstance(expected, float | Decimal):
        return bool(value == ("NaN" if expected != expected else "Infinity" if expected > 0 else "-Infinity"))
    if isinstance(expected, bytes):
        return bool(value == f"<blob {len(expected)} bytes>")
    if isinstance(expected, list | tuple):
        return len(value) == len(expected) and all(map(is_same_value, value, expected))
    if isinstance(expected, dict):
        return list(value) == [*map(str, expected)] and is_same_value([*value.values()], [*expected.values()])
    if isinstance(expected, datetime.datetime | datetime.date | datetime.time):
        return bool(value == expected.isoformat())
    return bool(value == str(expected))


@pytest.mark.parametrize("engine", SERVED_ENGINES)
async def test_reading_statements_return_the_columns_and_rows_of_the_driver(engine, tmp_path, request):
    server = request.getfixturevalue("mysql") if engine == "mysql" else None
    location = request.getfixturevalue("postgresql").new_database() if engine == "postgres" else str(tmp_path)
    url = make_database(engine, server or location, [*READING_SCHEMA, *ENGINE_SCHEMA[engine]])
    statements = list_statements(engine, READING_SQL)
    fetched = fetch_with_driver(engine, url, server, statements)
    database = await open_database(url)
    changed: dict[str, Any] = {}
    for sql, (columns, rows) in zip(statements, fetched, strict=True):
        try:
            result = await SqlTools(database).execute(sql)
        except ToolError as error:
            changed[sql] = str(error)
            continue
        if (result["sql"], result["corrections"], result["columns"]) != (sql, [], columns):
            changed[sql] = result
        if sql in TEXT_ROWS.get(engine, {}):
            is_same = result["rows"] == TEXT_ROWS[engine][sql]
        else:
            is_same = is_same_value(result["rows"], rows)
        if not is_same:
            changed[sql] = result["rows"], rows
    await database.close()
    assert changed == {}


@pytest.mark.parametrize("engine", SERVED_ENGINES)
async def test_statements_that_write_or_read_elsewhere_are_refused_in_every_disguise(shop, engine):
    successes = {}
    for sql in list_statements(engine, DISGUISED_SQL):
        with contextlib.suppress(ToolRefused, InvalidArguments):
            successes[sql] = await SqlTools(shop).execute(sql)
    assert successes == {}
