"""Agents are stored with their versions and tool bindings."""

import pytest
from tests.store.records import SPECS

from opposable.domain.errors import BadInput, StoreConflict
from opposable.domain.specs import (
    AgentSpec,
    AgentToolBinding,
)

pytestmark = pytest.mark.anyio

AGENT = AgentSpec(
    agent_id="helper",
    name="助手",
    instructions="Be short.",
    tools=(AgentToolBinding(tool_id="sum", config={"timeout": 3}), AgentToolBinding(tool_id="weather", enabled=False)),
)


async def test_agent_has_versions_and_bindings(store):
    for spec in SPECS:
        await store.tools.add(spec)
    first = await store.agents.add(AGENT)
    assert (first.spec, first.version) == (AGENT, 1)
    assert await store.agents.get("helper") == first
    assert await store.agents.update(AGENT) == first
    second_version = await store.agents.bind("helper", AgentToolBinding(tool_id="skill"))
    assert second_version.version == 2
    assert [binding.tool_id for binding in second_version.spec.tools] == ["skill", "sum", "weather"]
    third = await store.agents.unbind("helper", "sum")
    assert [(record.version, len(record.spec.tools)) for record in await store.agents.list_versions("helper")] == [
        (3, 2),
        (2, 3),
        (1, 2),
    ]
    assert (await store.agents.list()).items == (third,)
    assert (await store.agents.list_versions("helper"))[-1].spec == AGENT
    with pytest.raises(StoreConflict, match="is at version 3; the change is based on version 1"):
        await store.agents.update(AGENT, expected_version=1)
    assert await store.tools.delete("weather")
    assert [binding.tool_id for binding in (await store.agents.get("helper")).spec.tools] == ["skill"]
    assert await store.agents.delete("helper")
    assert await store.agents.get("helper") is None
    assert await store.agents.list_versions("helper") == ()
    assert await store.agents.bind("helper", AgentToolBinding(tool_id="skill")) is None


async def test_invalid_agent_is_reported(store):
    with pytest.raises(BadInput, match=r"not stored: sum, weather\. Add them first"):
        await store.agents.add(AGENT)
    assert await store.agents.get("helper") is None
    with pytest.raises(BadInput, match="the limit is 36"):
        await store.agents.add(AgentSpec(agent_id="a" * 37))
    await store.agents.add(AgentSpec(agent_id="a"))
    with pytest.raises(BadInput, match="The agent 'a' already exists"):
        await store.agents.add(AgentSpec(agent_id="a"))
    with pytest.raises(BadInput, match=r"not stored: none\. Add them first"):
        await store.agents.bind("a", AgentToolBinding(tool_id="none"))


async def test_a_binding_with_a_literal_secret_is_not_stored(store):
    for spec in SPECS:
        await store.tools.add(spec)
    binding = AgentToolBinding(tool_id="weather", config={"endpoint": {"headers": {"X-API-Key": "s3cr3t-value"}}})
    with pytest.raises(BadInput, match="weather: the header 'X-API-Key' holds a secret"):
        await store.agents.add(AgentSpec(agent_id="a", tools=(binding,)))
    await store.agents.add(AgentSpec(agent_id="a"))
    server = AgentToolBinding(tool_id="计算.server", config={"headers": {"Cookie": "id=s3cr3t-value"}})
    with pytest.raises(BadInput, match="the header 'Cookie' holds a secret"):
        await store.agents.bind("a", server)
    with pytest.raises(BadInput, match="the header 'X-API-Key' holds a secret"):
        await store.agents.update(AgentSpec(agent_id="a", tools=(binding,)))
    assert (await store.agents.get("a")).spec.tools == ()
