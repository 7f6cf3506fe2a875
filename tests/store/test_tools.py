"""Tools are stored in the columns of the seed schema."""

import asyncio

import pytest
from sqlalchemy import text
from tests.store.records import SPECS, WEATHER

from opposable.domain.errors import BadInput
from opposable.domain.specs import (
    EndpointConfig,
    HttpToolSpec,
    McpServerSpec,
)
from opposable.store.tools import MAX_TOOL_VERSIONS

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.tool_type)
async def test_stored_tool_is_returned_unchanged(store, spec):
    await store.tools.add(spec)
    assert await store.tools.get(spec.tool_id) == spec
    changed = spec.model_copy(update={"description": "changed", "enabled": False, "tags": ()})
    await store.tools.save(changed)
    assert (await store.tools.list()).items == (changed,)


async def test_tool_columns_follow_the_seed_schema(store, engine):

    await store.tools.add(WEATHER)
    async with store.tools._database.begin_read() as connection:
        row = (await connection.execute(text("SELECT * FROM tools"))).one()._mapping
    assert list(row)[:15] == [
        "id",
        "name",
        "type",
        "display_name",
        "description",
        "category",
        "endpoint",
        "parameters",
        "response_transform",
        "rate_limit",
        "enabled",
        "version",
        "tags",
        "created_at",
        "updated_at",
    ]
    assert (row["id"], row["name"], row["type"], row["tool_type"]) == ("weather", "weather", "streamable", "http")
    if engine == "postgresql":
        assert row["tags"] == ["web", "天气"]
        assert row["endpoint"]["url_template"] == "https://example.com/{city}"


async def test_row_with_only_the_seed_columns_is_a_valid_tool(store):

    statement = """INSERT INTO tools (id, name, display_name, description, endpoint, parameters)
        VALUES ('t', 't', 'T', 'by hand', '{"url_template": "internal://time"}', '{"type": "object", "properties": {}}')"""
    async with store.tools._database.begin_write() as connection:
        await connection.execute(text(statement))
    stored_spec = await store.tools.get("t")
    assert stored_spec == HttpToolSpec(
        tool_id="t",
        display_name="T",
        description="by hand",
        category="custom",
        endpoint=EndpointConfig(url_template="internal://time"),
    )


async def test_invalid_row_is_listed_as_unreadable(store):

    for spec in SPECS:
        await store.tools.add(spec)
    async with store.tools._database.begin_write() as connection:
        await connection.execute(text("UPDATE tools SET endpoint = '{}' WHERE id = 'weather'"))
    page = await store.tools.list()
    assert [spec.tool_id for spec in page.items] == ["skill", "sum", "计算.server"]
    assert page.unreadable_rows == {
        "weather": "The stored tool 'weather' is not valid: endpoint.url_template: is required. Save the tool again."
    }


async def test_taken_id_and_overlong_text_are_reported(store):
    await store.tools.add(WEATHER)
    with pytest.raises(BadInput, match="The tool 'weather' already exists"):
        await store.tools.add(WEATHER)
    with pytest.raises(BadInput, match="version of tool 'weather' has 21 characters; the limit is 20"):
        await store.tools.save(WEATHER.model_copy(update={"version": "1" * 21}))


async def test_tools_are_listed_by_page_and_by_filter(store):
    for spec in SPECS:
        await store.tools.add(spec)
    first = await store.tools.list(limit=3)
    rest = await store.tools.list(limit=3, after=first.next_cursor)
    assert [[spec.tool_id for spec in page.items] for page in (first, rest)] == [
        ["skill", "sum", "weather"],
        ["计算.server"],
    ]
    assert rest.next_cursor == ""
    assert await store.tools.set_enabled("sum", False)
    assert not await store.tools.set_enabled("no such", False)
    assert [spec.tool_id for spec in (await store.tools.list(enabled=False)).items] == ["sum"]
    assert [spec.tool_id for spec in (await store.tools.list(tool_type="skill")).items] == ["skill"]


async def test_tool_name_is_unique(store):
    named = WEATHER.model_copy(update={"name": "get_weather"})
    await store.tools.add(named)
    assert await store.tools.get("weather") == named
    same_name = named.model_copy(update={"tool_id": "t"})
    for save in (store.tools.add, store.tools.save):
        with pytest.raises(BadInput, match="Another tool has the name 'get_weather'"):
            await save(same_name)
    same = WEATHER.model_copy(update={"name": "weather"})
    await store.tools.save(same)
    assert await store.tools.get("weather") == same


async def test_a_literal_secret_in_a_header_is_not_stored(store):
    headers = {"Authorization": "Bearer s3cr3t-value"}
    http = HttpToolSpec(tool_id="web", endpoint=EndpointConfig(url_template="https://example.com", headers=headers))
    server = McpServerSpec(tool_id="server", url="https://example.com/mcp", headers=headers)
    for save in (store.tools.add, store.tools.save):
        for spec in (http, server):
            with pytest.raises(BadInput, match=f"{spec.tool_id}: the header 'Authorization' holds a secret"):
                await save(spec)
    assert (await store.tools.list()).items == ()
    referenced = server.model_copy(update={"headers": {"Authorization": "Bearer env:TOKEN"}})
    await store.tools.add(referenced)
    assert await store.tools.get("server") == referenced


async def list_versions(store, tool_id="weather"):
    return [
        (version.version, version.spec.description, version.saved_by)
        for version in await store.tools.list_versions(tool_id)
    ]


async def test_each_changed_spec_is_a_version(store):
    await store.tools.add(WEATHER, saved_by="ann")
    changed = WEATHER.model_copy(update={"description": "changed"})
    for _ in range(2):
        await store.tools.save(changed, saved_by="ben")
    await store.tools.set_enabled("weather", False)
    await store.tools.save(changed.model_copy(update={"enabled": False}), saved_by="cem")
    newest, first = await store.tools.list_versions("weather")
    assert (newest.version, newest.spec, newest.saved_by) == (2, changed, "ben")
    assert (first.version, first.spec, first.saved_by) == (1, WEATHER, "ann")
    assert newest.created_at > first.created_at
    assert await store.tools.list_versions("sum") == ()
    await store.tools.delete("weather")
    await store.tools.save(changed)
    assert await list_versions(store) == [(1, "changed", "")]


async def test_a_spec_from_before_versions_or_changed_with_sql_becomes_a_version(store):
    await store.tools.add(WEATHER)
    async with store.tools._database.begin_write() as connection:
        await connection.execute(text("DELETE FROM tool_versions"))
    await store.tools.save(WEATHER.model_copy(update={"description": "second"}), saved_by="ben")
    async with store.tools._database.begin_write() as connection:
        await connection.execute(text("UPDATE tools SET description = 'third', updated_at = NULL"))
    await store.tools.save(WEATHER, saved_by="cem")
    assert await list_versions(store) == [
        (4, "Tomorrow's weather", "cem"),
        (3, "third", ""),
        (2, "second", "ben"),
        (1, "Tomorrow's weather", ""),
    ]


async def test_an_unreadable_tool_can_be_saved_again(store):
    await store.tools.add(WEATHER)
    async with store.tools._database.begin_write() as connection:
        await connection.execute(text("UPDATE tools SET endpoint = '{}'"))
    await store.tools.save(WEATHER)
    assert len(await list_versions(store)) == 1


async def test_the_oldest_versions_are_deleted(store):
    for number in range(1, MAX_TOOL_VERSIONS + 3):
        await store.tools.save(WEATHER.model_copy(update={"description": str(number)}))
    numbers = [version.version for version in await store.tools.list_versions("weather")]
    assert numbers == list(range(MAX_TOOL_VERSIONS + 2, 2, -1))


async def test_simultaneous_changes_are_versions_of_their_own(store):
    changes = [WEATHER.model_copy(update={"description": str(number)}) for number in range(8)]
    await asyncio.gather(*(store.tools.save(spec) for spec in changes))
    versions = await list_versions(store)
    assert [number for number, _, _ in versions] == list(range(8, 0, -1))
    assert {description for _, description, _ in versions} == {str(number) for number in range(8)}
    assert (await store.tools.get("weather")).description == versions[0][1]
