"""Agents are opened with the tools, instructions and limits of the settings."""

from pathlib import Path

import pytest
from tests.app.settings import BUILTIN, SQL, create_settings
from tests.models.chat_server import build_completion, chat_server

from opposable.agent.limits import Limits
from opposable.app.agents import open_agent, open_chat_agent
from opposable.app.inputs import create_limits
from opposable.domain.errors import BadInput
from opposable.domain.usage import Price

pytestmark = pytest.mark.anyio


async def test_an_optional_tool_is_available_if_named(tmp_path: Path) -> None:
    async with open_agent(create_settings(tmp_path), "hi", "http://127.0.0.1:9/v1#m", ["python_executor"]) as agent:
        assert agent.library.names == ("python_executor",)
        assert (await agent.library.call("python_executor", {"code": "sum(range(5))"})).data["value"] == 10


@pytest.mark.parametrize(
    ("text", "instructions"), [("Hi", "You are a helpful assistant."), ("你好", "你是一个有用的助手。")]
)
async def test_the_instructions_are_in_the_language_of_the_task(tmp_path: Path, text: str, instructions: str) -> None:
    settings = create_settings(tmp_path, turns=3, tool_calls=4, seconds=5)
    async with (
        chat_server(build_completion("Hi.")) as server,
        open_agent(settings, text, f"{server.url}#m", ["echo"]) as agent,
    ):
        await agent.run(text)
    assert server.bodies[0]["messages"] == [
        {"role": "system", "content": instructions},
        {"role": "user", "content": text},
    ]
    assert create_limits(settings) == Limits(turns=3, tool_calls=4, seconds=5, price=Price(0, 0))


async def test_no_model_is_opened_without_valid_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []
    monkeypatch.setattr("opposable.app.agents.open_model", lambda *arguments: opened.append(arguments))
    with pytest.raises(BadInput, match=r"the price of 'http://127\.0\.0\.1:9/v1#m' is unknown"):
        async with open_agent(create_settings(tmp_path, cost=1.0), "hi", "http://127.0.0.1:9/v1#m"):
            pass
    assert opened == []


async def test_a_conversation_may_have_a_database_and_selected_tools(tmp_path: Path, shop: str) -> None:
    model = "http://127.0.0.1:9/v1#m"
    async with open_chat_agent(create_settings(tmp_path), model, (), shop) as agent:
        assert agent.library.names == (*BUILTIN, *SQL, "ask_data")
        untrusted = [name for name in agent.library.names if agent.library.get_traits(name).untrusted_output]
        assert untrusted == [*SQL, "ask_data"]  # cells are texts of other people
    async with open_chat_agent(create_settings(tmp_path), model, ("sql.execute", "time"), shop) as agent:
        assert agent.library.names == ("sql_execute", "time")
    with pytest.raises(BadInput, match="sql_execute needs a database"):
        async with open_chat_agent(create_settings(tmp_path), model, ("sql_execute",)):
            pass
