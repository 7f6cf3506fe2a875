"""A perfect writer's SQL runs as written: by the tool, by the team and over HTTP, with one request and no doubt."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.ask.hostile import make_database
from tests.harmless.statements import SCHEMA, STATEMENTS
from tests.servers import MysqlServer, PostgresServer, make_clickhouse, mysql, postgresql  # noqa: F401
from tests.web.api.chat_serving import serve_service

from opposable.ask.team.factory import open_team
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
