"""Hostile names of tables and columns stay on one line of a prompt and can be queried."""

import re
from collections.abc import AsyncIterator

import pytest
from tests.ask.hostile import list_hostile_names, make_database, quote_name
from tests.servers import MysqlServer, mysql, postgresql  # noqa: F401

from opposable.app.tool_factory import create_sql_tools
from opposable.ask.catalog.catalog import Catalog, open_catalog
from opposable.ask.semantics.draft import draft_semantic_model
from opposable.ask.semantics.lint import lint_semantic_model
from opposable.ask.semantics.loader import parse_semantic_model
from opposable.ask.semantics.model import Metric, ModelTable, SemanticModel
from opposable.ask.team.team import Team
from opposable.models.scripted import ScriptedModel
from opposable.sql.database import Database
from opposable.sql.factory import open_database
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio


def build_statements(engine: str) -> list[str]:
    """Create a table for each name, with a column and a row of it."""
    return [
        statement
        for number, name in enumerate(list_hostile_names(engine))
        for quoted in [quote_name(name, "" if engine == "mysql" else engine)]  # the test server takes ANSI quotes
        for statement in (
            f'CREATE TABLE {quoted} ({quoted} VARCHAR(90), "n" INTEGER)',
            f"INSERT INTO {quoted} VALUES ('Value {number}', {number})",
        )
    ]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Use one event loop, so that the large catalogs are opened once."""
    return "asyncio"


@pytest.fixture(scope="module", params=["sqlite", "duckdb", "postgres", "mysql", "clickhouse"])
async def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Database]:
    location: str | MysqlServer = str(tmp_path_factory.mktemp("names"))
    if request.param == "postgres":
        location = request.getfixturevalue("postgresql").new_database()
    elif request.param == "mysql":
        location = request.getfixturevalue("mysql")
    opened = await open_database(make_database(request.param, location, build_statements(request.param)))
    yield opened
    await opened.close()


@pytest.fixture(scope="module")
async def catalog(database: Database) -> Catalog:
    return await open_catalog(database)


@pytest.fixture
def names(database: Database) -> list[str]:
    return list_hostile_names(database.dialect)


async def fetch_rows(database: Database, *statements: str) -> list[object]:
    """What the team makes of each SQL statement, or why it gave up."""
    model = ScriptedModel(*(f"Here it is:\n```sql\n{sql};\n```\nIt's done." for sql in statements))
    team = Team(model, database)
    answers = [(await team.answer("What is it?"))[0] for _ in statements]
    assert len(model.requests) == len(statements)
    return [answer.rows or answer.text for answer in answers]


async def test_values_of_hostile_tables_are_read(database: Database, catalog: Catalog, names: list[str]):
    samples = {(name, catalog.samples[name].get(name)) for name in names}
    assert samples == {(name, (f"Value {number}",)) for number, name in enumerate(names)}


async def test_each_name_stays_on_its_line_of_the_prompt(database: Database, catalog: Catalog, names: list[str]):
    view = await catalog.select_schema("What is it?", budget_tokens=100_000)
    for ddl in (view.to_ddl(), (await database.get_schema()).to_ddl()):
        lines = [line for line in ddl.splitlines() if line]
        assert len(lines) == 4 * len(names)
        assert not [line for line in lines if not line.startswith(("CREATE TABLE ", "  ", ");"))]
        assert not [char for char in ddl if not char.isprintable() and char not in "\n\u2060"]
    assert "<|im_" not in view.to_ddl()
    assert "<tool_call>" not in view.to_ddl()


async def test_each_name_can_be_queried_in_quotes(database: Database, names: list[str]):
    statements = []
    for number, name in enumerate(names):
        column = quote_name(name, database.dialect)
        plain = f"SELECT {column} FROM {column} WHERE n = {number} AND {column} LIKE 'Value%'"
        aliased = f"SELECT t.{column} FROM {column} AS t WHERE t.{column} = 'Value {number}'"
        statements.append(aliased if number % 3 == 0 else plain)
    rows = dict(zip(statements, await fetch_rows(database, *statements), strict=True))
    assert rows == {sql: ((f"Value {number}",),) for number, sql in enumerate(statements)}


async def test_each_name_can_be_queried_as_the_prompt_writes_it(database: Database, catalog: Catalog, names: list[str]):
    view = await catalog.select_schema("What is it?", budget_tokens=100_000)
    expected = {}
    for table_view in view.tables:
        head, column, *_ = table_view.to_ddl(database.dialect).splitlines()
        table = head.removeprefix("CREATE TABLE ").partition(" ( -- ")[0]
        name = re.split(r" (?:varchar|nullable\(string\)),", column.strip().lower())[0]
        name = column.strip()[: len(name)]
        number = names.index(table_view.table.name)
        expected[f"SELECT {name} FROM {table} WHERE n = {number}"] = ((f"Value {number}",),)
    assert dict(zip(expected, await fetch_rows(database, *expected), strict=True)) == expected


async def test_the_tools_return_hostile_names_and_their_values(database: Database, names: list[str]):
    library = ToolLibrary(create_sql_tools(database))
    wrong = {}
    for number, name in enumerate(names):
        listed = await library.call("schema.list_columns", {"table": name, "samples": True})
        if listed.failure or listed.data["columns"][0]["samples"] != [f"Value {number}"]:
            wrong[name] = listed.content
        quoted = quote_name(name, database.dialect)
        sql = f"SELECT {quoted} FROM {quoted} WHERE n = {number}"
        for tool in ("sql.validate", "sql.execute"):
            result = await library.call(tool, {"sql": sql})
            if result.failure:
                wrong[name] = result.content
    assert wrong == {}


async def test_names_that_look_alike_are_not_confused(database: Database, names: list[str]):
    quoted = quote_name("straße", database.dialect)
    [rows] = await fetch_rows(database, f"SELECT {quoted} FROM {quoted}")
    assert rows == ((f"Value {names.index('straße')}",),)


@pytest.mark.parametrize("system", ["sqlite_master", "pragma_database_list", "duckdb_settings", "pg_shadow"])
async def test_system_tables_may_not_be_read(database: Database, system: str):
    answer, _ = await Team(ScriptedModel(f"```sql\nSELECT * FROM {system}\n```"), database).answer("What is it?")
    assert "may not be read" in answer.text


async def test_a_semantic_model_of_hostile_names_has_no_errors(database: Database, names: list[str]):
    model = parse_semantic_model(await draft_semantic_model(database))
    assert len(model.metrics) >= 2 * len(names)
    assert [str(finding) for finding in await lint_semantic_model(model, database) if finding.severity == "error"] == []


@pytest.mark.parametrize("source", ['"', ".", '""', "a.", ".b", '"a', "[x", "\n"])
async def test_a_source_that_does_not_exist_is_reported(database: Database, names: list[str], source: str):
    model = SemanticModel(
        metrics={"size": Metric(id="size", expr="COUNT(*)", table="t")}, tables={"t": ModelTable(id="t", source=source)}
    )
    reported = {finding.location for finding in await lint_semantic_model(model, database)}
    assert "tables.t" in reported or source in names
