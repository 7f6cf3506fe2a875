"""The composition root: what is opened, with what, and what is refused before."""

import asyncio
import sqlite3
from pathlib import Path

import pytest
from tests.models.chat_server import build_completion, chat_server

from opposable.agent.limits import Limits
from opposable.app.agents import open_agent, open_chat_agent
from opposable.app.ask import (
    SQL_AGENT_OPTIONS,
    TeamPool,
    answer_from_run,
    answer_to_json,
    create_ask_data_tool,
    open_data_agent,
    open_data_team,
)
from opposable.app.inputs import create_limits, validate_task
from opposable.app.lazy_failure_store import open_failure_memory
from opposable.app.models import list_model_kinds, open_model
from opposable.app.stored_tools import store_exists
from opposable.app.tools import create_builtin_library, open_tools, select_tools
from opposable.domain.answers import DataAnswer
from opposable.domain.call_context import NO_CONTEXT
from opposable.domain.errors import BadInput, ModelUnavailable
from opposable.domain.events import RunFinished
from opposable.domain.tools import ToolResult
from opposable.domain.usage import Price, Usage
from opposable.models.base import ForcedTool
from opposable.models.scripted import ScriptedModel
from opposable.settings import Settings

pytestmark = pytest.mark.anyio

BUILTIN = ("echo", "calculator", "time", "file_search", "read_file", "log_transform")
SQL = (
    *("schema_list_columns", "schema_list_tables"),
    *("sql_auto_fix_columns", "sql_execute", "sql_refine", "sql_validate", "sql_validate_columns"),
)


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as made:
        made.executescript("CREATE TABLE item (name TEXT, price REAL); INSERT INTO item VALUES ('bolt', 1.5)")
    made.close()
    return str(path)


def settings(tmp_path: Path, **more) -> Settings:
    return Settings(_env_file=None, home=tmp_path / "home", roots=(tmp_path,), **more)


@pytest.mark.parametrize(
    ("given", "taken"),
    [("What?", "What?"), (" 多少？ ", " 多少？ "), ("a\udcffb", "a?b"), ("x" * 100_000, "x" * 100_000)],
)
def test_a_task_is_taken(given: str, taken: str) -> None:
    assert validate_task(given) == taken


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("", "The task is empty; say in a sentence what to do."),
        (" \n\t", "The task is empty; say in a sentence what to do."),
        (
            "很" * 200_000,
            "The task has 200,000 characters; at most 100,000 are taken. "
            "Put long material into a file and let a tool read it.",
        ),
    ],
    ids=["nothing", "blanks", "too long"],
)
def test_a_task_that_is_none_is_refused(given: str, sentence: str) -> None:
    with pytest.raises(BadInput) as caught:
        validate_task(given)
    assert str(caught.value) == sentence


async def test_tools_are_those_named_each_once(tmp_path: Path) -> None:
    assert create_builtin_library(settings(tmp_path)).names == BUILTIN
    async with open_agent(settings(tmp_path), "hi", "http://127.0.0.1:9/v1#m", ["time", "echo", "Echo"]) as made:
        assert made.library.names == ("time", "echo")
    with pytest.raises(BadInput) as caught:
        select_tools(create_builtin_library(settings(tmp_path)), ["file-serch"])
    assert str(caught.value) == (
        f"There is no tool named 'file-serch'. Did you mean file_search? The tools are: {', '.join(BUILTIN)}."
    )


async def test_a_tool_that_needs_an_extra_is_there_when_it_is_named(tmp_path: Path) -> None:
    async with open_agent(settings(tmp_path), "hi", "http://127.0.0.1:9/v1#m", ["python_executor"]) as made:
        assert made.library.names == ("python_executor",)
        assert (await made.library.call("python_executor", {"code": "sum(range(5))"})).data["value"] == 10


async def test_the_tools_over_a_database_come_after_the_built_in_ones(tmp_path: Path, shop: str) -> None:
    async with open_tools(settings(tmp_path), shop) as library:
        assert library.names[: len(BUILTIN + SQL)] == BUILTIN + SQL
        assert (await library.call("sql_execute", {"sql": "SELECT price FROM item"})).data["rows"] == [[1.5]]
    async with open_tools(settings(tmp_path)) as library:
        assert set(library.names) - set(BUILTIN) >= {"python_executor", "web_scraper", "data_analyzer_describe"}


@pytest.mark.parametrize(
    ("question", "begins"), [("What?", "You answer questions about a sqlite"), ("多少？", "你回答关于 sqlite 数据库的")]
)
async def test_a_data_agent_is_told_the_schema_in_the_language_of_the_question(
    tmp_path: Path, shop: str, question: str, begins: str
) -> None:
    async with (
        chat_server(build_completion("1.5")) as server,
        open_data_agent(settings(tmp_path), question, shop, f"{server.url}#m") as agent,
    ):
        assert agent.library.names == SQL
        assert (await agent.run(question)).text == "1.5"
    [body] = server.bodies
    assert body["messages"][0]["content"].startswith(begins)
    assert "item" in body["messages"][0]["content"]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "sql_execute"}}
    assert ForcedTool("sql_execute") == SQL_AGENT_OPTIONS.tool_choice


@pytest.mark.parametrize(("text", "told"), [("Hi", "You are a helpful assistant."), ("你好", "你是一个有用的助手。")])
async def test_an_agent_is_told_in_the_language_of_the_task(tmp_path: Path, text: str, told: str) -> None:
    limits = settings(tmp_path, turns=3, tool_calls=4, seconds=5)
    async with (
        chat_server(build_completion("Hi.")) as server,
        open_agent(limits, text, f"{server.url}#m", ["echo"]) as agent,
    ):
        await agent.run(text)
    assert server.bodies[0]["messages"] == [
        {"role": "system", "content": told},
        {"role": "user", "content": text},
    ]
    assert create_limits(limits) == Limits(turns=3, tool_calls=4, seconds=5, price=Price(0, 0))


async def test_a_conversation_may_have_a_database_and_chosen_tools(tmp_path: Path, shop: str) -> None:
    model = "http://127.0.0.1:9/v1#m"
    async with open_chat_agent(settings(tmp_path), model, (), shop) as agent:
        assert agent.library.names == (*BUILTIN, *SQL, "ask_data")
    async with open_chat_agent(settings(tmp_path), model, ("sql.execute", "time"), shop) as agent:
        assert agent.library.names == ("sql_execute", "time")
    with pytest.raises(BadInput, match="There is no tool named 'sql_execute'"):
        async with open_chat_agent(settings(tmp_path), model, ("sql_execute",)):
            pass


async def test_the_settings_model_is_taken_where_none_is_named(tmp_path: Path) -> None:
    named = settings(tmp_path, model="http://127.0.0.1:9/v1#mine")
    assert (await open_model(named)).name == "mine"
    assert (await open_model(named, "http://127.0.0.1:9/v1#other")).name == "other"


async def test_a_server_that_is_not_there_is_given_up_in_seconds(tmp_path: Path) -> None:
    model = await open_model(settings(tmp_path), "http://127.0.0.1:9/v1#m")
    async with asyncio.timeout(10):
        with pytest.raises(ModelUnavailable):
            async for _ in model.stream([]):
                pass
    await model.aclose()


def result(name: str, data=None, failure=None) -> ToolResult:
    return ToolResult("c", name, "told", failure, data)


END = RunFinished("The bolt.", "answer", Usage(7, 3, 2), 2, 1, ())
ROWS = {"sql": "SELECT 1", "columns": ["a"], "rows": [[1], [None]], "truncated": True, "corrections": ["b is a"]}


def test_an_answer_has_the_last_query_that_worked() -> None:
    results = [
        result("sql_execute", {**ROWS, "sql": "SELECT 0"}),
        result("sql_execute", ROWS),
        result("sql_execute", None, "invalid_arguments"),
        result("sql_validate", {"valid": True}),
    ]
    made = answer_from_run(END, results)
    assert made == DataAnswer(
        "The bolt.", "SELECT 1", ("a",), ((1,), (None,)), True, corrections=("b is a",), confidence=0.5
    )
    assert answer_to_json(made, END.usage) == {
        "answer": "The bolt.",
        "sql": "SELECT 1",
        "columns": ("a",),
        "rows": ((1,), (None,)),
        "truncated": True,
        "chart": None,
        "assumptions": (),
        "corrections": ("b is a",),
        "confidence": 0.5,
        "usage": {"total_tokens": 10, "model_calls": 2},
    }


def test_an_agents_corrections_are_told_in_the_askers_language() -> None:
    rows = {**ROWS, "corrections": ["column nme → name"]}
    made = [answer_from_run(END, [result("sql_execute", rows)], language).corrections for language in ("en", "zh")]
    assert made == [("column nme → name",), ("列 nme → name",)]


def test_an_answer_without_a_query_has_none() -> None:
    assert answer_from_run(END, []) == DataAnswer("The bolt.")


async def test_a_team_is_a_tool_for_any_agent(tmp_path: Path, shop: str) -> None:
    async with (
        chat_server(build_completion("```sql\nSELECT name FROM items\n```")) as server,
        open_data_team(settings(tmp_path), shop, f"{server.url}#m") as team,
    ):
        tool = create_ask_data_tool(team)
        brought = await tool.run({"question": "What is there?"}, NO_CONTEXT)
    assert tool.definition.name == "ask_data"
    assert brought == {
        "answer": "The answer is bolt.",
        "sql": "SELECT name FROM item",
        "columns": ("name",),
        "rows": (("bolt",),),
        "row_count": 1,
    }
    assert (tmp_path / "home" / "catalogs").is_dir()


async def test_teams_are_opened_once_for_each_database(tmp_path: Path, shop: str) -> None:
    model = ScriptedModel("```sql\nSELECT 1\n```")
    async with TeamPool(settings(tmp_path)) as teams:
        assert await teams.get(model, shop) is await teams.get(model, shop)
        with pytest.raises(BadInput, match="There is no file"):
            await teams.get(model, shop, str(tmp_path / "none.yaml"))


def test_the_kinds_of_model_tell_what_they_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "DASHSCOPE_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-1")
    assert list_model_kinds(settings(tmp_path)) == [
        ("local", False, "fetch it with: opposable models pull"),
        ("openai:NAME", False, "OPENAI_API_KEY is not set"),
        ("qwen:NAME", False, "DASHSCOPE_API_KEY is not set"),
        ("deepseek:NAME", True, "DEEPSEEK_API_KEY is set"),
        ("anthropic:NAME", False, "ANTHROPIC_API_KEY is not set"),
        ("http://HOST:PORT/v1#NAME", True, "any OpenAI-compatible server; key in OPPOSABLE_API_KEY if it wants one"),
    ]


async def test_a_limit_on_cost_wants_the_price_of_the_model_but_not_of_the_embedded_one(tmp_path: Path) -> None:
    capped = settings(tmp_path, cost=1.0)
    with pytest.raises(BadInput, match=r"price of 'openai:gpt' is not.*OPPOSABLE_PRICES"):
        create_limits(capped, "openai:gpt")
    assert create_limits(capped, "local").price == Price(0, 0)
    known = create_limits(settings(tmp_path, cost=1.0, prices={"openai:gpt": (0.5, 2.0)}), "openai:gpt")
    assert (known.cost, known.price) == (1.0, Price(0.5, 2.0))


async def test_what_one_command_learnt_the_next_one_knows_and_nothing_is_made_before_there_is_something(tmp_path):
    home = settings(tmp_path)
    library = create_builtin_library(home)
    async with open_failure_memory(home) as learnt:
        assert (await learnt.get_patterns(library)).failures == {}
    assert not store_exists(home)
    async with open_failure_memory(home) as learnt:
        failure = learnt.record_failure("file_search", "", "failed", {"root_dir": "logg"}, "There is no 'logg'.")
        learnt.memory.correct(failure, {"given": {"root_dir": "logg"}, "right": {"root_dir": "logs"}})
    assert store_exists(home)
    async with open_failure_memory(home) as learnt:
        for _ in range(20):  # on a busy machine what is known may come too late for a run
            if known := (await learnt.get_patterns(library)).warnings:
                break
            learnt.memory.invalidate()
    assert known["file_search"][0] == 'Known from before: root_dir="logg" failed; root_dir="logs" worked.'
