"""Names that need quotes, look like others or pose as something else are told on one line and can be queried."""

from collections.abc import AsyncIterator

import pytest
from tests.ask.hostile import NAMES, make, quoted
from tests.servers import PostgresServer, postgresql  # noqa: F401

from opposable.app.tool_factory import sql_tools
from opposable.ask.catalog import Catalog, open_catalog
from opposable.ask.semantics.draft import draft
from opposable.ask.semantics.lint import lint
from opposable.ask.semantics.loader import read_semantics
from opposable.ask.semantics.model import Metric, ModelTable, SemanticModel
from opposable.ask.team.briefing import CatalogBriefing, CatalogValues
from opposable.ask.team.team import Parts, Team
from opposable.models.scripted import ScriptedModel
from opposable.sql.database import Database
from opposable.sql.factory import open_database
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio

STATEMENTS = [
    statement
    for number, name in enumerate(NAMES)
    for statement in (
        f'CREATE TABLE {quoted(name)} ({quoted(name)} VARCHAR(90), "n" INTEGER)',
        f"INSERT INTO {quoted(name)} VALUES ('Value {number}', {number})",
    )
]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One loop for all of them: the catalogues of so many tables are opened once."""
    return "asyncio"


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory, postgresql: PostgresServer) -> dict[str, str]:  # noqa: F811
    folder = str(tmp_path_factory.mktemp("names"))
    places = {"sqlite": folder, "duckdb": folder, "postgres": postgresql.new_database()}
    return {engine: make(engine, place, STATEMENTS) for engine, place in places.items()}


@pytest.fixture(scope="module", params=["sqlite", "duckdb", "postgres"])
async def database(request: pytest.FixtureRequest, urls: dict[str, str]) -> AsyncIterator[Database]:
    opened = await open_database(urls[request.param])
    yield opened
    await opened.close()


@pytest.fixture(scope="module")
async def catalog(database: Database) -> AsyncIterator[Catalog]:
    opened = await open_catalog(database)
    yield opened
    await opened.close()


async def rows(database: Database, catalog: Catalog, sql: str) -> object:
    """What the team makes of this SQL, or why it gave up."""
    team = Team(
        ScriptedModel(f"Here it is:\n```sql\n{sql};\n```\nIt's done."),
        database,
        briefing=CatalogBriefing(catalog),
        values=CatalogValues(catalog, database),
        parts=Parts(opinions=0, captain=False),
    )
    answer, _ = await team.answer("What is it?")
    return answer.rows or answer.text


async def test_their_values_are_gathered(database: Database, catalog: Catalog):
    found = {(name, catalog.samples[name].get(name)) for name in NAMES}
    assert found == {(name, (f"Value {number}",)) for number, name in enumerate(NAMES)}
    assert set(await catalog.sizes()) >= {(name, name) for name in NAMES}


async def test_each_stands_on_a_line_of_the_prompt_and_opens_nothing_in_it(database: Database, catalog: Catalog):
    view = await catalog.for_question("What is it?", budget_tokens=100_000)
    for told in (view.ddl(), (await database.schema()).text()):
        lines = [line for line in told.splitlines() if line]
        assert len(lines) == 4 * len(NAMES)
        assert not [line for line in lines if not line.startswith(("CREATE TABLE ", "  ", ");"))]
        assert not [char for char in told if not char.isprintable() and char not in "\n\u2060"]
    assert "<|im_" not in view.ddl()
    assert "<tool_call>" not in view.ddl()


async def test_each_can_be_queried_by_its_name_in_quotes(database: Database, catalog: Catalog):
    wrong = {}
    for number, name in enumerate(NAMES):
        column = quoted(name)
        plain = f"SELECT {column} FROM {column} WHERE \"n\" = {number} AND {column} LIKE 'Value%'"
        misspelt = f"SELECT t.{column} FROM {column} AS t WHERE t.{column} = 'value {number}'"
        sql = misspelt if number % 3 == 0 else plain
        if (found := await rows(database, catalog, sql)) != ((f"Value {number}",),):
            wrong[sql] = found
    assert wrong == {}


async def test_each_can_be_queried_as_the_prompt_writes_it(database: Database, catalog: Catalog):
    view = await catalog.for_question("What is it?", budget_tokens=100_000)
    wrong = {}
    for told in view.tables:
        head, column, *_ = told.ddl(database.dialect).splitlines()
        table = head.removeprefix("CREATE TABLE ").partition(" ( -- ")[0]
        name = column.strip().lower().partition(" varchar,")[0]
        name = column.strip()[: len(name)]
        number = NAMES.index(told.table.name)
        found = await rows(database, catalog, f"SELECT {name} FROM {table} WHERE n = {number}")
        if found != ((f"Value {number}",),):
            wrong[name] = found
    assert wrong == {}


async def test_the_tools_name_them_and_show_their_values(database: Database):
    library = ToolLibrary(sql_tools(database))
    wrong = {}
    for number, name in enumerate(NAMES):
        listed = await library.call("schema.list_columns", {"table": name, "samples": True})
        if listed.failure or listed.data["columns"][0]["samples"] != [f"Value {number}"]:
            wrong[name] = listed.content
        sql = f"SELECT {quoted(name)} FROM {quoted(name)} WHERE n = {number}"
        for tool in ("sql.validate", "sql.execute"):
            told = await library.call(tool, {"sql": sql})
            if told.failure:
                wrong[name] = told.content
    assert wrong == {}


async def test_names_that_look_alike_are_not_taken_for_one_another(database: Database, catalog: Catalog):
    assert await rows(database, catalog, f"SELECT {quoted('straße')} FROM {quoted('straße')}") == (
        (f"Value {NAMES.index('straße')}",),
    )
    for system in ("sqlite_master", "pragma_database_list", "duckdb_settings", "pg_shadow"):
        assert "may not be read" in str(await rows(database, catalog, f"SELECT * FROM {system}"))


async def test_a_semantic_model_can_be_drafted_of_them_and_has_no_errors(database: Database):
    model = read_semantics(await draft(database))
    assert len(model.metrics) >= 2 * len(NAMES)
    assert [str(finding) for finding in await lint(model, database) if finding.severity == "error"] == []


@pytest.mark.parametrize("source", ['"', ".", '""', "a.", ".b", '"a', "[x", "\n"])
async def test_a_source_that_names_nothing_is_told(database: Database, source: str):
    model = SemanticModel(
        metrics={"size": Metric(id="size", expr="COUNT(*)", table="t")}, tables={"t": ModelTable(id="t", source=source)}
    )
    assert "the database has no table" in str(await lint(model, database)) or source in NAMES
