"""The commands for stored agents."""

import asyncio

import orjson
import pytest
from typer.testing import CliRunner

from opposable.cli import cli
from opposable.domain.errors import BadInput
from opposable.domain.specs import AgentSpec, AgentToolBinding, HttpToolSpec
from opposable.store import open_store


@pytest.fixture
def store_agents(tmp_path, monkeypatch):
    """Store a tool that reads mail, one that pays, and agents with both."""
    url = f"sqlite:///{tmp_path / 'store.sqlite'}"
    monkeypatch.setenv("OPPOSABLE_DATABASE_URL", url)

    async def store_specs(agents):
        async with open_store(url) as store:
            for tool_id, method in (("mail", "GET"), ("pay", "POST"), ("off", "GET")):
                endpoint = {"url_template": f"https://api.example.com/{tool_id}", "method": method}
                spec = HttpToolSpec(tool_id=tool_id, endpoint=endpoint, untrusted_output=tool_id == "mail")
                spec = spec.model_copy(update={"enabled": tool_id != "off"})
                await store.tools.save(spec)
            for agent in agents:
                await store.agents.add(agent)

    return lambda *agents: asyncio.run(store_specs(agents))


def check(*words):
    done = CliRunner().invoke(cli, ["agents", "check", *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def create_agent(agent_id, *tools, **fields):
    return AgentSpec(agent_id=agent_id, tools=[AgentToolBinding(tool_id=tool_id) for tool_id in tools], **fields)


def test_agent_that_can_act_on_untrusted_text_is_reported(store_agents):
    assert check() == (0, "No agent is stored yet.\n")
    store_agents(
        create_agent("clerk", "mail", "pay"),
        create_agent("careful", "mail", "pay", after_untrusted="approve"),
        create_agent("reader", "mail"),
        create_agent("lost", "pay", "off"),
    )
    code, output = check("--json")
    found = {agent["agent_id"]: agent["warnings"] for agent in orjson.loads(output)["agents"]}
    assert code == 1
    assert found == {
        "clerk": [
            "The agent reads untrusted text (mail) and can act on it (pay). Set after_untrusted to approve or refuse."
        ],
        "careful": [],
        "reader": [],
        "lost": ["off cannot be used: There is no enabled tool named 'off'. Add or enable it."],
    }
    assert check("careful") == (0, "careful  no warnings\n")
    assert "reads untrusted text (mail)" in check("clerk")[1]
    with pytest.raises(BadInput, match="There is no agent 'missing'"):
        check("missing")


def test_an_agent_before_the_first_start_of_the_service_is_explained(store_agents):
    store_agents()
    with pytest.raises(BadInput, match="The first `opposable serve` stores the agent default"):
        CliRunner().invoke(cli, ["agents", "bind", "default", "pay"], catch_exceptions=False)


def test_tools_are_bound_and_unbound(store_agents):
    store_agents(create_agent("clerk", "mail"))
    runner = CliRunner()
    assert runner.invoke(cli, ["agents", "bind", "clerk", "pay", "off"]).output == "clerk has mail, off, pay.\n"
    unbound = runner.invoke(cli, ["agents", "unbind", "clerk", "mail", "--json"])
    assert [tool["tool_id"] for tool in orjson.loads(unbound.stdout)["tools"]] == ["off", "pay"]
    assert runner.invoke(cli, ["agents", "unbind", "clerk", "mail", "off", "pay"]).output == "clerk has no tools.\n"
    with pytest.raises(BadInput, match=r"There is no agent 'stranger'\. See: opposable agents list"):
        runner.invoke(cli, ["agents", "bind", "stranger", "pay"], catch_exceptions=False)
    with pytest.raises(BadInput, match="nothing"):
        runner.invoke(cli, ["agents", "bind", "clerk", "nothing"], catch_exceptions=False)
