"""The commands `run` and `ask`."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web
from tests.cli.program import (
    NOWHERE,
    SQL_REPLY,
    respond_call,
    respond_text_deltas,
    run_program,
    run_with_model,
)
from tests.models.chat_server import (
    build_completion,
)

from opposable.app.default_store import open_default_store, open_existing_store
from opposable.settings import Settings

pytestmark = pytest.mark.anyio


async def test_a_task_is_run_with_its_trace_on_standard_error(tmp_path: Path) -> None:
    answers = [respond_call("calculator", expression="17 * 23"), respond_text_deltas("It is ", "391", ".")]
    async with run_with_model(tmp_path, "run", "What is 17 * 23?", answers=answers) as (done, server):
        assert (done.code, done.out) == (0, "It is 391.\n")
    first, second = done.err.splitlines()
    assert first == '→ calculator{"expression":"17 * 23"}'
    assert second.startswith('  ✓ {"expression":"17 * 23","result":391} 0.')
    assert [m["role"] for m in server.bodies[1]["messages"]] == ["system", "user", "assistant", "tool"]


async def test_calls_are_recorded_if_a_store_exists(tmp_path: Path) -> None:
    answers = [respond_call("calculator", expression="17 * 23"), respond_text_deltas("391")]
    async with run_with_model(tmp_path, "run", "What is 17 * 23?", answers=answers) as (done, _):
        assert done.code == 0
    settings = Settings(_env_file=None, home=tmp_path / "cache")
    async with open_existing_store(settings) as store:
        assert store is None
    async with open_default_store(settings):
        pass
    async with run_with_model(tmp_path, "run", "What is 17 * 23?", answers=answers) as (done, _):
        assert done.code == 0
    async with run_with_model(tmp_path, "chat", answers=answers, stdin=b"What is 17 * 23?\n") as (done, _):
        assert done.code == 0
    async with open_existing_store(settings) as store:
        executions = (await store.executions.list()).items
    recorded = [(execution.tool_id, execution.arguments, execution.failure) for execution in executions]
    assert recorded == [("calculator", {"expression": "17 * 23"}, None)] * 2


async def test_a_run_whose_time_ends_before_a_reply_says_so(tmp_path: Path) -> None:
    async def respond_late(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(20)
        return await build_completion("late")(request)

    env = {"OPPOSABLE_SECONDS": "0.2"}
    async with run_with_model(tmp_path, "run", "go", "--json", answers=[respond_late], env=env) as (done, _):
        assert (done.code, done.json["reason"]) == (1, "time")


async def test_an_image_is_sent_with_the_task(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    answers = [respond_text_deltas("A pixel.")]
    asked = ("run", "What is it?", "--image", str(tmp_path / "a.png"))
    async with run_with_model(tmp_path, *asked, answers=answers) as (done, server):
        assert (done.code, done.out) == (0, "A pixel.\n")
    text, image = server.bodies[0]["messages"][-1]["content"]
    assert (text["text"], image["image_url"]["url"]) == ("What is it?", "data:image/png;base64,iVBORw0KGgo=")


async def test_json_output_is_one_object_and_nothing_else(tmp_path: Path) -> None:
    answers = [respond_call("calculator", expression="17 * 23"), respond_text_deltas("是", "391。")]
    async with run_with_model(tmp_path, "run", "-", "--json", answers=answers, stdin="17 乘 23 是多少？".encode()) as (
        done,
        _,
    ):
        said = done.json
    assert said["tool_calls"][0].pop("seconds") >= 0
    assert said == {
        "text": "是391。",
        "reason": "answer",
        "turns": 2,
        "usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, "model_calls": 2},
        "cost": None,
        "tool_calls": [
            {
                "call_id": "c1",
                "name": "calculator",
                "arguments": {"expression": "17 * 23"},
                "success": True,
                "result": '{"expression":"17 * 23","result":391}',
                "failure": None,
                "attempts": 1,
                "cached": False,
                "cut": 0,
                "handle": "",
                "repairs": [],
            }
        ],
    }
    assert (done.code, done.err.count("\n")) == (0, 2)


async def test_only_the_named_tools_are_sent_to_the_model(tmp_path: Path) -> None:
    args = ("run", "hi", "--tool", "echo", "-t", "time")
    async with run_with_model(tmp_path, *args, answers=[respond_text_deltas("hi")]) as (done, server):
        assert [tool["function"]["name"] for tool in server.bodies[0]["tools"]] == ["echo", "time"]
    assert done.code == 0


@pytest.mark.parametrize(("assist", "requests"), [((), 2), (("--assist", "off"), 2), (("--assist", "on"), 3)])
async def test_assistance_is_switched_on_and_off(tmp_path: Path, assist: tuple[str, ...], requests: int) -> None:
    wrong, answer = respond_call("calculator", expression="25*"), respond_text_deltas("I could not.")
    args = ("run", "What is 25*4?", "--tool", "calculator", *assist)
    async with run_with_model(tmp_path, *args, answers=[wrong, answer, answer]) as (done, server):
        assert (done.code, len(server.bodies)) == (0, requests)


async def test_a_limit_that_ends_a_run_is_reported(tmp_path: Path) -> None:
    answers = [respond_call("echo", text="again"), respond_text_deltas("I got no further.")]
    async with run_with_model(tmp_path, "run", "hi", answers=answers, env={"OPPOSABLE_TURNS": "1"}) as (done, _):
        assert (done.code, done.out) == (1, "I got no further.\n")
    assert done.err.endswith("The run ended at its limit of model replies.\n")


QUERY = "SELECT name, price, note FROM item ORDER BY price DESC"


async def test_a_question_is_answered_with_its_sql_and_a_table(workspace: Path) -> None:
    answers = [respond_call("sql_execute", sql=QUERY), respond_text_deltas("The bolt \x1b[31mcosts most.")]
    args = ("ask", "What costs most?", "--db", "shop.sqlite", "--agent")
    async with run_with_model(workspace, *args, answers=answers) as (done, _):
        assert done.code == 0
    assert done.out.startswith(f"SQL  {QUERY}\n")
    assert done.out.endswith("The bolt ␛[31mcosts most.\n")
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.out.splitlines() if "│" in line]
    assert rows == [["[red]bolt[/]", "1.5", "NULL"], [":smile: ␛[2Jnut", "0.25", "螺母"]]
    assert "\x1b" not in done.out + done.err


async def test_an_answer_of_an_agent_as_json(workspace: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(workspace / "shop.duckdb")) as shop:
        shop.execute("CREATE TABLE item AS SELECT 'bolt' AS name, 1.5 AS price")
    answers = [respond_call("sql_execute", sql="SELECT name, price FROM item"), respond_text_deltas("螺栓 1.5 元。")]
    args = ("ask", "螺栓多少钱？", "--db", "duckdb:///shop.duckdb", "--agent", "--json", "-v")
    async with run_with_model(workspace, *args, answers=answers) as (done, server):
        assert done.json == {
            "answer": "螺栓 1.5 元。",
            "sql": "SELECT name, price FROM item",
            "columns": ["name", "price"],
            "rows": [["bolt", 1.5]],
            "truncated": False,
            "chart": None,
            "assumptions": [],
            "warnings": [],
            "success": True,
            "error": None,
            "corrections": [],
            "confidence": None,
            "doubts": [],
            "candidates": [],
            "intent": None,
            "history": [],
            "usage": {"total_tokens": 0, "model_calls": 2},
        }
    assert done.code == 0
    assert done.err.startswith("→ sql_execute")
    assert "你回答关于 duckdb 数据库的问题" in server.bodies[0]["messages"][0]["content"]


async def test_the_team_answers_with_sql_table_chart_and_corrections(workspace: Path) -> None:
    args = ("ask", "What does each item cost?", "--db", "shop.sqlite", "--verbose")
    async with run_with_model(workspace, *args, answers=[build_completion(SQL_REPLY)]) as (done, _):
        assert done.code == 0
    assert done.out.startswith(
        "SQL  SELECT name, price FROM item ORDER BY price DESC\ncorrected  column ｐｒｉｃｅ → price\n"
    )
    assert "price by name\n[red]bolt[/]     ████" in done.out
    assert done.out.endswith("\n2 rows (name: price): [red]bolt[/] 1.5, :smile: ␛[2Jnut 0.25.\n")
    assert "· sql_generator" in done.err
    assert "→ sql_execute" in done.err
    assert "\x1b" not in done.out + done.err


async def test_the_labels_of_an_answer_are_in_the_language_of_the_question(workspace: Path) -> None:
    doubtful = [build_completion(SQL_REPLY.replace("ORDER", "WHERE name = 'tee' ORDER"))] * 9
    async with run_with_model(
        workspace, "ask", "tee 每个多少钱？", "--verbose", "--db", "shop.sqlite", answers=doubtful
    ) as (
        done,
        _,
    ):
        assert done.code == 0
    assert "\n已更正  列 ｐｒｉｃｅ → price\n警告  没有 name 为“tee”的数据\n" in done.out
    assert done.out.endswith("\n没有符合条件的数据：没有 name 为“tee”的数据。\n")
    assert "· sql_generator  还没有写出 SQL\n" in done.err


async def test_an_answer_that_is_given_up_exits_with_1(workspace: Path) -> None:
    args = ("ask", "What is the profit?", "--db", "shop.sqlite", "--json")
    replies = [build_completion("```sql\nSELECT profit FROM ledger\n```")] * 9
    async with run_with_model(workspace, *args, answers=replies) as (done, _):
        assert done.code == 1
        assert (done.json["success"], done.json["sql"]) == (False, "")
        assert done.json["error"].startswith("There is no table ledger.")
        assert done.json["error"] in done.json["answer"]


async def test_the_answer_of_the_team_as_json(workspace: Path) -> None:
    args = ("ask", "每种商品多少钱？", "--db", "shop.sqlite", "--json")
    async with run_with_model(workspace, *args, answers=[build_completion(SQL_REPLY)]) as (done, _):
        assert [turn["member"] for turn in done.json["history"]] == ["sql_generator", "result_evaluator"]
        assert done.json == {
            "answer": "共 2 行（name：price）：[red]bolt[/] 1.5，:smile: \x1b[2Jnut 0.25。",
            "sql": "SELECT name, price FROM item ORDER BY price DESC",
            "columns": ["name", "price"],
            "rows": [["[red]bolt[/]", 1.5], [":smile: \x1b[2Jnut", 0.25]],
            "truncated": False,
            "chart": {"type": "bar", "x": "name", "y": ["price"]},
            "assumptions": [],
            "warnings": [],
            "success": True,
            "error": None,
            "corrections": ["列 ｐｒｉｃｅ → price"],
            "confidence": None,
            "doubts": [],
            "candidates": [
                {
                    "sql": "SELECT name, ｐｒｉｃｅ FROM item ORDER BY price DESC",
                    "reason": "计算 name, ｐｒｉｃｅ；来自 item",
                    "source": "generator",
                    "diagnosis": "",
                    "is_chosen": True,
                }
            ],
            "intent": None,
            "history": done.json["history"],
            "usage": {"total_tokens": 18, "model_calls": 1},
        }


async def test_a_semantic_model_answers_without_the_model(workspace: Path) -> None:
    (workspace / "model.yaml").write_text(
        "metrics:\n  dearest:\n    expr: MAX(price)\n    table: item\n    synonyms: [highest price, 最高价]\n"
    )
    args = ("ask", "最高价是多少？", "--db", "shop.sqlite", "--semantics", "model.yaml", "--json", "-m", NOWHERE)
    done = await run_program(workspace, *args)
    assert (done.json["answer"], done.json["usage"]) == ("答案是 1.5。", {"total_tokens": 0, "model_calls": 0})
    assert done.json["intent"] == {"intent_type": "basic", "metrics": ["dearest"]}
    assert done.json["candidates"][0]["source"] == "semantics"


async def test_an_answer_shows_no_steps_unless_asked(workspace: Path) -> None:
    args = ("ask", "What does each item cost?", "--db", "shop.sqlite", "--limit", "1")
    async with run_with_model(workspace, *args, answers=[build_completion(SQL_REPLY)]) as (done, _):
        assert (done.code, done.err) == (0, "")
    assert done.out.count("SELECT") == 1
    assert "1 of 2 rows" in done.out


async def test_rows_as_csv_have_exact_values_and_nothing_else(workspace: Path) -> None:
    args = ("ask", "What does each item cost?", "--db", "shop.sqlite", "--csv")
    async with run_with_model(workspace, *args, answers=[build_completion(SQL_REPLY)]) as (done, _):
        assert done.out == "name,price\n[red]bolt[/],1.5\n:smile: \x1b[2Jnut,0.25\n"
    assert done.err.startswith("2 rows (name: price): ")
    both = await run_program(workspace, *args, "--json", "-m", NOWHERE)
    assert both.code == 2
