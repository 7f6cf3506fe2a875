"""A team answers questions in English and Chinese on every engine."""

import datetime
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import duckdb
import psycopg
import pytest
from tests.servers import PostgresServer, postgresql  # noqa: F401

from opposable.ask.catalog import open_catalog
from opposable.ask.catalog.value_matching import ValueMatch
from opposable.ask.semantics.loader import parse_semantic_model
from opposable.ask.team.briefing import CatalogBriefProvider, CatalogValueFinder, select_named_values
from opposable.ask.team.factory import open_team
from opposable.ask.team.interfaces import TeamOptions
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


@pytest.fixture(scope="session")
def firms(tmp_path_factory: pytest.TempPathFactory, postgresql: PostgresServer) -> dict[str, str]:  # noqa: F811
    folder: Path = tmp_path_factory.mktemp("firm")
    with sqlite3.connect(folder / "firm.sqlite") as one:
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


@pytest.fixture(params=["sqlite", "duckdb", "postgres"])
async def firm(request: pytest.FixtureRequest, firms: dict[str, str]) -> AsyncIterator[Database]:
    database = await open_database(firms[request.param])
    yield database
    await database.close()


def format_sql_reply(text: str) -> str:
    return f"```sql\n{text}\n```"


async def test_the_schema_is_the_same_for_every_question_and_notes_name_values(firm):
    catalog = await open_catalog(firm)
    briefing = CatalogBriefProvider(catalog)
    english = await briefing.get_brief("Who works in Mountain View?")
    chinese = await briefing.get_brief("行政管理部有谁？")
    await catalog.close()
    assert english.schema == chinese.schema
    assert "sex" in english.schema
    assert "'F', 'M'" in english.schema
    assert "REFERENCES department(id)" in english.schema
    assert english.notes == ("Values in the data: department.city = 'Mountain View'",)
    assert chinese.notes == ("Values in the data: department.name = '行政管理部'",)


async def test_similar_values_come_from_the_index(firm):
    catalog = await open_catalog(firm)
    values = CatalogValueFinder(catalog, firm)
    department = (await firm.get_schema()).find_table("department")
    near = {
        text: list(await values.find_near_values(department, "name", text))
        for text in ("行政", "sales", "the Sales team", "x")
    }
    await catalog.close()
    assert near == {"行政": ["行政管理部"], "sales": ["Sales"], "the Sales team": ["Sales"], "x": []}


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
    semantics = parse_semantic_model(MODEL)
    day = datetime.date(2024, 6, 1)
    async with open_team(model, firm, semantics=semantics, today=lambda: day) as team:
        answer, end = await team.answer(question)
    assert (sorted(answer.rows), end.usage.requests) == (sorted(rows), calls)
    if calls:
        assert "metric payroll: SUM(salary)" in model.requests[0].messages[-1].content


def make_value_match(value: str, phrase: str, how="exact", score=1.0, column="name") -> ValueMatch:
    return ValueMatch("t", column, value, phrase, how, score)


@pytest.mark.parametrize(
    ("question", "matches", "expected_values"),
    [
        (
            "Who lives in New York?",
            [make_value_match("New York", "new york"), make_value_match("NEW", "new", column="code")],
            ["New York"],
        ),
        ("the top ten airlines", [make_value_match("TOP", "top")], []),
        ('code "TOP"', [make_value_match("TOP", "top")], ["TOP"]),
        ("majoring in 600", [make_value_match("600", "600", score=0.7)], []),
        ('majoring in "600"', [make_value_match("600", "600", score=0.7)], ["600"]),
        (
            "at the Tokohu University",
            [make_value_match("Tohoku University", "tokohu university", "fuzzy", 0.8)],
            ["Tohoku University"],
        ),
        ("each source airport", [make_value_match("Soure Airport", "source airport", "fuzzy", 0.8)], []),
        ("who eats food", [make_value_match("food", "food")], ["food"]),
        ("行政管理部有多少人", [make_value_match("行政管理部", "行政管理部")], ["行政管理部"]),
        ("行政有多少人", [make_value_match("行政管理部", "行政", "part", 0.56)], []),
    ],
)
def test_words_that_are_a_value_by_accident_are_not_named_values(question, matches, expected_values):
    assert [match.value for match in select_named_values(question, matches)] == expected_values
