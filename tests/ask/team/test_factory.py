"""A team answers questions in English and Chinese on every engine."""

import datetime
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import duckdb
import psycopg
import pytest
from tests.servers import MysqlServer, PostgresServer, make_clickhouse, mysql, postgresql  # noqa: F401

from opposable.ask.catalog.catalog import open_catalog
from opposable.ask.semantics.loader import parse_semantic_model
from opposable.ask.team.factory import open_team
from opposable.ask.team.literals import TextLiteral, find_near_values
from opposable.ask.team.team import TeamOptions
from opposable.models.scripted import ScriptedModel
from opposable.sql.database import Database
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio

SCHEMA = [
    "CREATE TABLE department (id INTEGER PRIMARY KEY, name VARCHAR(40), city VARCHAR(40))",
    "INSERT INTO department VALUES (1, '行政管理部', 'Mountain View'), (2, '研发中心', 'New York'), (3, 'Sales', 'TOP')",
    "CREATE TABLE person (id INTEGER PRIMARY KEY, name VARCHAR(40), sex VARCHAR(1), hired DATE, salary INTEGER,"
    " department_id INTEGER REFERENCES department(id))",
    "INSERT INTO person VALUES (1, 'Ann', 'F', '2023-05-01', 10, 1), (2, 'Bob', 'M', '2024-02-29', 20, 2),"
    " (3, 'Cy', 'M', '2024-03-15', 30, 2), (4, 'Di', 'F', '2024-04-15', 40, 2), (5, 'Ed', 'M', '2024-05-15', 50, 2)",
]
MODEL = """
metrics:
  payroll: {expr: SUM(salary), table: person, synonyms: [工资总额, total pay], time: hired}
dimensions:
  department: {expr: department.name, table: person, synonyms: [部门]}
  label: {expr: "person.name || '/' || person.sex", table: person, synonyms: [标签]}
joins: [person.department_id = department.id]
"""


def get_model_text(firm: Database) -> str:
    """Return the model; on MySQL `||` is a logical OR."""
    text = "CONCAT(person.name, '/', person.sex)"
    return MODEL.replace("person.name || '/' || person.sex", text) if firm.dialect == "mysql" else MODEL


@pytest.fixture(scope="session")
def firms(tmp_path_factory: pytest.TempPathFactory, postgresql: PostgresServer) -> dict[str, str]:  # noqa: F811
    folder: Path = tmp_path_factory.mktemp("firm")
    with closing(sqlite3.connect(folder / "firm.sqlite")) as one, one:
        one.executescript(";".join(SCHEMA))
    one.close()
    with duckdb.connect(str(folder / "firm.duckdb")) as two:
        for statement in SCHEMA:
            two.execute(statement)
    url = postgresql.new_database()
    with psycopg.connect(url, autocommit=True) as three:
        for statement in SCHEMA:
            three.execute(statement)
    return {"sqlite": str(folder / "firm.sqlite"), "duckdb": str(folder / "firm.duckdb"), "postgres": url}


@pytest.fixture(scope="session")
def mysql_firm(mysql: MysqlServer) -> str:  # noqa: F811
    return mysql.new_database(SCHEMA)


@pytest.fixture(scope="session")
def clickhouse_firm(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_clickhouse(tmp_path_factory.mktemp("firm") / "db", SCHEMA)


@pytest.fixture(params=["sqlite", "duckdb", "postgres", "mysql", "clickhouse"])
async def firm(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    firms = request.getfixturevalue(f"{request.param}_firm" if request.param in ("mysql", "clickhouse") else "firms")
    database = await open_database(firms if isinstance(firms, str) else firms[request.param])
    yield database
    await database.close()


def format_sql_reply(text: str) -> str:
    return f"```sql\n{text}\n```"


async def test_the_schema_is_the_same_for_every_question(firm):
    catalog = await open_catalog(firm)
    english = (await catalog.select_schema("Who works in Mountain View?")).to_ddl()
    chinese = (await catalog.select_schema("行政管理部有谁？")).to_ddl()
    assert english == chinese
    assert "sex" in english
    assert "'F', 'M'" in english
    assert ("REFERENCES department(id)" in english) == (firm.dialect != "clickhouse")  # it has no foreign keys


@pytest.mark.parametrize(
    ("text", "near_values"),
    [("行政", ["行政管理部"]), ("sales", ["Sales"]), ("the Sales team", ["Sales"]), ("Slaes", ["Sales"]), ("x", [])],
)
async def test_similar_values_of_a_column_are_found(firm, text, near_values):
    table = (await firm.get_schema()).find_table("department")
    assert await find_near_values(firm, TextLiteral(table, "name", text)) == near_values


@pytest.mark.parametrize(
    ("question", "written", "rows"),
    [
        ("How many people work in Mountain View?", "d.city = 'Mountain View'", ((1,),)),
        ("研发中心有多少人？", "d.name = '研发中心'", ((4,),)),
    ],
)
async def test_a_question_is_answered_on_every_engine(firm, question, written, rows):
    query = f"SELECT count(*) FROM person p JOIN department d ON p.department_id = d.id WHERE {written}"
    async with open_team(ScriptedModel(format_sql_reply(query)), firm) as team:
        answer, end = await team.answer(question)
    assert (answer.rows, answer.sql, answer.corrections, end.usage.requests) == (rows, query, (), 1)


async def test_the_table_of_a_column_is_joined_for_an_assisted_model_on_every_engine(firm):
    if firm.dialect == "clickhouse":
        pytest.skip("ClickHouse has no foreign keys")
    query = "SELECT P.name, P.city FROM person AS P WHERE P.salary > 10 AND P.salary < 30"
    async with open_team(ScriptedModel(format_sql_reply(query)), firm, options=TeamOptions(assisted=True)) as team:
        answer, end = await team.answer("Names and cities of people who earn between 10 and 30")
    assert (answer.rows, end.usage.requests) == ((("Bob", "New York"),), 1)
    assert answer.corrections == ("department joined for city",)


async def test_the_column_that_contains_a_value_is_reported_to_the_model(firm):
    query = "SELECT p.name FROM person p JOIN department d ON p.department_id = d.id WHERE d.{} = 'Mountain View'"
    model = ScriptedModel(format_sql_reply(query.format("name")), format_sql_reply(query.format("city")))
    async with open_team(model, firm) as team:
        answer, end = await team.answer("Who works in Mountain View?")
    assert (answer.rows, answer.corrections, end.usage.requests) == ((("Ann",),), (), 2)
    table = (await firm.get_schema()).find_table("department").full_name
    assert f"it occurs in {table}.city" in model.requests[1].messages[-1].content


@pytest.mark.parametrize(
    ("question", "rows", "calls"),
    [
        ("各部门的工资总额", (("研发中心", 140), ("行政管理部", 10)), 0),
        ("total pay in 2023", ((10,),), 0),
        ("标签是 Bob/M 的工资总额", ((20,),), 0),
        ("total pay of those who like tea", ((150,),), 1),
    ],
)
async def test_terms_of_a_semantic_model_need_no_language_model(firm, question, rows, calls):
    model = ScriptedModel(format_sql_reply("SELECT sum(salary) FROM person"))
    semantics = parse_semantic_model(get_model_text(firm))
    day = datetime.date(2024, 6, 1)
    async with open_team(model, firm, semantics=semantics, today=lambda: day) as team:
        answer, end = await team.answer(question)
    assert (sorted(answer.rows), end.usage.requests) == (sorted(rows), calls)
    if calls:
        assert "metric payroll: SUM(salary)" in model.requests[0].messages[-1].content
