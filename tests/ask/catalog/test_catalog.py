import pytest
from tests.ask.catalog.databases import open_sqlite

from opposable.ask.catalog import catalog as catalog_module
from opposable.ask.catalog.catalog import open_catalog
from opposable.ask.team.factory import open_team
from opposable.ask.team.team import Team, TeamOptions
from opposable.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_tables_beyond_the_time_limit_have_no_samples(tmp_path, monkeypatch):
    database = await open_sqlite(tmp_path, "CREATE TABLE t (a TEXT)", "INSERT INTO t VALUES ('Rome')")
    assert "e.g. 'Rome'" in (await (await open_catalog(database)).select_schema("a")).to_ddl()
    monkeypatch.setattr(catalog_module, "MAX_READING_SECONDS", 0.0)
    catalog = await open_catalog(database)
    assert (await catalog.select_schema("a")).to_ddl() == "CREATE TABLE t ( -- 1 rows\n  a TEXT\n);"
    await database.close()


@pytest.mark.parametrize("name", ["EMAIL", "people.email", "*"])
async def test_private_columns_have_no_samples_and_near_values_are_not_shown(tmp_path, name):
    rows = [f"INSERT INTO people VALUES ('ann{n % 2}@example.org')" for n in range(6)]
    database = await open_sqlite(tmp_path, "CREATE TABLE people (email TEXT)", *rows)
    query = "SELECT email FROM people WHERE email = 'ann1@exampel.org'"

    async def list_prompts(private_columns):
        model = ScriptedModel(*[f"```sql\n{query}\n```"] * 4)
        options = TeamOptions(private_columns=private_columns)
        async with open_team(model, database, options=options) as team:
            assert (await team.answer("Who is ann1@exampel.org?"))[0].sql
        return [message.content for request in model.requests for message in request.messages]

    assert any("ann1@example.org" in prompt for prompt in await list_prompts(()))
    prompts = await list_prompts((name,))
    assert prompts
    assert not any("@example.org" in prompt for prompt in prompts)
    await database.close()


async def test_a_team_without_a_factory_has_no_samples_of_private_columns_either(tmp_path):
    database = await open_sqlite(tmp_path, "CREATE TABLE t (a TEXT)", "INSERT INTO t VALUES ('Rome')")
    model = ScriptedModel("```sql\nSELECT count(*) FROM t\n```")
    await Team(model, database, options=TeamOptions(private_columns=("a",))).answer("How many?")
    await database.close()
    assert "CREATE TABLE t" in model.requests[0].messages[0].content
    assert "Rome" not in model.requests[0].messages[0].content
