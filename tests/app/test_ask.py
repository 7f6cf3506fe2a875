"""Questions about data are answered by the team or by an agent with the SQL tools."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from tests.app.settings import SQL, create_settings
from tests.models.chat_server import build_completion, chat_server
from tests.waiting import wait_until

from opposable.app import ask
from opposable.app.ask import (
    SQL_AGENT_OPTIONS,
    TeamPool,
    answer_from_run,
    answer_to_json,
    create_ask_data_tool,
    open_data_agent,
    open_data_team,
)
from opposable.ask.team.team import Team
from opposable.domain.answers import DataAnswer
from opposable.domain.call_context import NO_CONTEXT
from opposable.domain.errors import BadInput, ModelNotFound, ToolUnavailable
from opposable.domain.events import RunFinished
from opposable.domain.tools import ToolResult
from opposable.domain.usage import Usage
from opposable.models.base import ForcedTool, Model
from opposable.models.scripted import ScriptedModel
from opposable.sql.database import Database
from opposable.sql.messages import name_replaced

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("question", "start"), [("What?", "You answer questions about a sqlite"), ("多少？", "你回答关于 sqlite 数据库的")]
)
async def test_a_data_agent_has_the_schema_in_the_language_of_the_question(
    tmp_path: Path, shop: str, question: str, start: str
) -> None:
    async with (
        chat_server(build_completion("1.5")) as server,
        open_data_agent(create_settings(tmp_path), question, shop, f"{server.url}#m") as agent,
    ):
        assert agent.library.names == SQL
        assert (await agent.run(question)).text == "1.5"
    [body] = server.bodies
    assert body["messages"][0]["content"].startswith(start)
    assert "item" in body["messages"][0]["content"]
    assert body.get("tool_choice", "auto") == "auto"


async def test_the_first_call_of_an_assisted_data_agent_must_be_a_query(tmp_path: Path, shop: str) -> None:
    settings = create_settings(tmp_path, assist=True)
    async with (
        chat_server(build_completion("1.5")) as server,
        open_data_agent(settings, "What?", shop, f"{server.url}#m") as agent,
    ):
        await agent.run("What?")
    assert server.bodies[0]["tool_choice"] == {"type": "function", "function": {"name": "sql_execute"}}
    assert ForcedTool("sql_execute") == SQL_AGENT_OPTIONS.tool_choice


def build_result(name: str, data=None, failure=None) -> ToolResult:
    return ToolResult("c", name, "text", failure, data)


END = RunFinished("The bolt.", "answer", Usage(7, 3, 2), 2, 1, ())


ROWS = {"sql": "SELECT 1", "columns": ["a"], "rows": [[1], [None]], "truncated": True, "corrections": ["b is a"]}


def test_an_answer_has_the_last_successful_query() -> None:
    results = [
        build_result("sql_execute", {**ROWS, "sql": "SELECT 0"}),
        build_result("sql_execute", ROWS),
        build_result("sql_execute", None, "invalid_arguments"),
        build_result("sql_validate", {"valid": True}),
    ]
    answer = answer_from_run(END, results)
    assert answer == DataAnswer("The bolt.", "SELECT 1", ("a",), ((1,), (None,)), True, corrections=("b is a",))
    assert answer_to_json(answer, END.usage) == {
        "answer": "The bolt.",
        "sql": "SELECT 1",
        "columns": ("a",),
        "rows": ((1,), (None,)),
        "truncated": True,
        "chart": None,
        "assumptions": (),
        "warnings": (),
        "success": True,
        "error": None,
        "corrections": ("b is a",),
        "confidence": None,
        "doubts": (),
        "candidates": [],
        "intent": None,
        "history": [],
        "usage": {"total_tokens": 10, "model_calls": 2},
    }


def test_the_corrections_are_in_the_language_of_the_question() -> None:
    rows = {**ROWS, "corrections": [name_replaced("column", "nme", "name")]}
    corrections = [
        answer_from_run(END, [build_result("sql_execute", rows)], language).corrections for language in ("en", "zh")
    ]
    assert corrections == [("column nme → name",), ("列 nme → name",)]


def test_an_answer_without_a_query_has_no_data() -> None:
    assert answer_from_run(END, []) == DataAnswer("The bolt.")


async def test_a_team_is_a_tool_for_any_agent(tmp_path: Path, shop: str) -> None:
    async with (
        chat_server(build_completion("```sql\nSELECT ｎａｍｅ FROM item\n```")) as server,
        open_data_team(create_settings(tmp_path), shop, f"{server.url}#m") as team,
    ):
        tool = create_ask_data_tool(team)
        result = await tool.run({"question": "What is there?"}, NO_CONTEXT)
    assert tool.definition.name == "ask_data"
    assert result == {
        "answer": "The answer is bolt.",
        "sql": "SELECT name FROM item",
        "columns": ("name",),
        "rows": (("bolt",),),
        "row_count": 1,
    }


async def test_what_a_semantic_model_covers_needs_no_model(tmp_path: Path) -> None:
    semantics = ROOT / "evals/semantics/chinook/model.yaml"
    database = str(ROOT / "examples/data/chinook.sqlite")
    async with open_data_team(create_settings(tmp_path), database, "local", semantics) as team:
        answer, run_finished = await team.answer("2024年销售额最高的前3个国家")
        assert len(answer.rows) == 3
        assert run_finished.usage.total_tokens == 0
        with pytest.raises(ModelNotFound, match="opposable models pull"):
            await team.answer("Which playlist has the longest name?")


async def test_a_team_is_opened_once_per_database(tmp_path: Path, shop: str) -> None:
    model = ScriptedModel("```sql\nSELECT 1\n```")
    async with TeamPool(create_settings(tmp_path)) as teams:
        assert await teams.get(model, shop) is await teams.get(model, shop)
        with pytest.raises(BadInput, match="does not exist"):
            await teams.get(model, shop, str(tmp_path / "none.yaml"))
        assert not teams._open_locks


async def test_a_question_of_a_pooled_team_ends_at_the_time_limit_of_a_run(tmp_path: Path, shop: str) -> None:
    slow = "```sql\nWITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r\n```"
    async with TeamPool(create_settings(tmp_path, seconds=0.5)) as teams:
        _, end = await (await teams.get(ScriptedModel(slow), shop)).answer("How many?")
    assert end.reason == "time"


async def test_a_team_reads_its_database_again_and_answers_the_questions_it_has(
    tmp_path: Path, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    model = ScriptedModel("```sql\nSELECT 1\n```")
    async with TeamPool(create_settings(tmp_path), clock=lambda: now[0]) as teams:
        earlier = await teams.get(model, shop)
        with closing(sqlite3.connect(shop)) as connection, connection:
            connection.execute("CREATE TABLE returns (id INTEGER)")
        now[0] = ask.TEAM_SECONDS - 1
        assert await teams.get(model, shop) is earlier
        now[0] = ask.TEAM_SECONDS
        current = await teams.get(model, shop)
        assert (await current.database.get_schema()).find_table("returns")
        assert (await earlier.database.run("SELECT 1")).rows == ((1,),)
        now[0] *= 2
        monkeypatch.setattr(ask, "open_database", fail)
        assert await teams.get(model, shop) is current
    for team in (earlier, current):
        with pytest.raises(ToolUnavailable, match="closed"):
            await team.database.run("SELECT 1")


async def test_a_team_that_is_asked_no_more_is_closed(
    tmp_path: Path, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(ask, "TEAM_SECONDS", 0.01)
    async with TeamPool(create_settings(tmp_path), clock=lambda: now[0]) as teams:
        idle = await teams.get(ScriptedModel("x"), shop)
        now[0] = ask.TEAM_SECONDS
        current = await teams.get(ScriptedModel("x"), shop)
        await wait_until(lambda: not teams._closings)
        assert (await current.database.run("SELECT 1")).rows == ((1,),)
        with pytest.raises(ToolUnavailable, match="closed"):
            await idle.database.run("SELECT 1")


async def fail(url: str) -> Database:
    raise BadInput(f"{url} cannot be read.")


async def test_a_slow_database_does_not_delay_the_teams_of_others(
    tmp_path: Path, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = asyncio.Event()
    open_really = ask.open_database

    async def open_slowly(url: str) -> Database:
        if url == "slow":
            await never.wait()
        return await open_really(url)

    monkeypatch.setattr(ask, "open_database", open_slowly)
    async with TeamPool(create_settings(tmp_path)) as teams, asyncio.timeout(10):
        opening = asyncio.create_task(teams.get(ScriptedModel(), "slow"))
        await asyncio.sleep(0)
        assert (await teams.get(ScriptedModel(), shop)).database.dialect == "sqlite"
        opening.cancel()


async def test_a_team_that_cannot_be_opened_leaves_no_database_open(
    tmp_path: Path, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []

    @asynccontextmanager
    async def fail_to_open(model: Model, database: Database, **options: object) -> AsyncIterator[Team]:
        monkeypatch.setattr(database, "close", lambda: asyncio.sleep(0, closed.append(database.name)))
        raise BadInput("The values of a dimension cannot be read.")
        yield

    monkeypatch.setattr(ask, "open_team", fail_to_open)
    async with TeamPool(create_settings(tmp_path)) as teams:
        with pytest.raises(BadInput, match="cannot be read"):
            await teams.get(ScriptedModel(), shop)
        assert len(closed) == 1
