"""Questions about data over HTTP: whole, streamed, by agents with a database, and who may name one."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.waiting import wait_until
from tests.web.api.chat_serving import read_events, serve_service
from tests.web.serving import SlowModel

from opposable.domain.specs import AgentSpec
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call

pytestmark = pytest.mark.anyio

WRITTEN = "```sql\nSELECT name, ｐｒｉｃｅ FROM item ORDER BY price DESC\n```"
SQL = "SELECT name, price FROM item ORDER BY price DESC"
MODEL = "metrics:\n  dearest:\n    expr: MAX(price)\n    table: item\n    synonyms: [最高价]\n"


@pytest.fixture
def shop(tmp_path: Path) -> str:
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as made, made:
        made.executescript("CREATE TABLE item (name, price); INSERT INTO item VALUES ('bolt', 1.5), ('螺母', 0.25)")
    made.close()
    return str(tmp_path / "shop.sqlite")


async def test_a_whole_answer_has_sql_rows_and_chart(tmp_path, shop):
    async with serve_service(tmp_path, ScriptedModel(WRITTEN)) as (session, _):
        body = {"question": "每种商品多少钱？", "database": shop, "stream": False}
        async with session.post("/api/ask", json=body) as response:
            assert response.status == 200, await response.text()
            answer = await response.json()
    assert answer == {
        "answer": "共 2 行（name：price）：bolt 1.5，螺母 0.25。",
        "sql": SQL,
        "columns": ["name", "price"],
        "rows": [["bolt", 1.5], ["螺母", 0.25]],
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
        "history": [
            {
                "member": "sql_generator",
                "input_text": "还没有写出 SQL",
                "output_text": "SELECT name, ｐｒｉｃｅ FROM item ORDER BY price DESC",
                "error": "",
            },
            {
                "member": "result_evaluator",
                "input_text": "SELECT name, ｐｒｉｃｅ FROM item ORDER BY price DESC",
                "output_text": "2 行",
                "error": "",
            },
        ],
        "usage": {"total_tokens": 15, "model_calls": 1},
    }


async def test_a_follow_up_question_is_completed_from_the_history(tmp_path, shop):
    model = ScriptedModel("How many items are there?", "```sql\nSELECT count(*) FROM item\n```")
    async with serve_service(tmp_path, model) as (session, _):
        body = {"question": "And how many?", "history": ["Which items are there?"], "database": shop, "stream": False}
        async with session.post("/api/ask", json=body) as response:
            answer = await response.json()
    assert (answer["rows"], answer["assumptions"]) == ([[2]], ["the question is: How many items are there?"])


async def test_the_turns_are_streamed_as_they_happen(tmp_path, shop):
    async with (
        serve_service(tmp_path, ScriptedModel(WRITTEN)) as (session, _),
        session.post("/api/ask", json={"question": "Prices?", "database": shop}) as response,
    ):
        assert response.content_type == "text/event-stream"
        seen = [(kind, data) async for _, kind, data in read_events(response)]
    assert [data["action"] for kind, data in seen if kind == "decided"] == [
        "sql_generator",
        "result_evaluator",
        "finish",
    ]
    assert [data["content"] for kind, data in seen if kind == "" and data != "[DONE]"] == [
        "2 rows (name: price): bolt 1.5, 螺母 0.25."
    ]
    [answered] = [data for kind, data in seen if kind == "data_answered"]
    assert (answered["sql"], answered["rows"]) == (SQL, [["bolt", 1.5], ["螺母", 0.25]])
    assert seen[-1] == ("", "[DONE]")


async def test_an_agent_with_a_database_answers_and_has_a_data_tool(tmp_path, shop):
    (tmp_path / "model.yaml").write_text(MODEL)
    model = ScriptedModel(
        reply_with_calls(tool_call("ask_data_clerk", '{"question": "最高价是多少？"}')), "最高价是 1.5。"
    )
    clerk = AgentSpec(agent_id="clerk", database=shop, semantics=str(tmp_path / "model.yaml"))
    async with serve_service(tmp_path, model) as (session, service):
        await service.store.agents.add(clerk)
        headers = {"X-Agent-ID": "clerk"}
        body = {"question": "最高价是多少？", "stream": False}
        async with session.post("/api/ask", json=body, headers=headers) as response:
            answer = await response.json()
        assert (answer["answer"], answer["usage"]["model_calls"]) == ("答案是 1.5。", 0)
        async with session.post("/agent/chat", json={"message": "最高价？"}, headers=headers) as response:
            chatted = await response.json()
        path = "/api/tools/ask_data.clerk/call"
        async with session.post(path, json={"arguments": {"question": "最高价？"}}) as response:
            assert response.status == 404  # the tool of an agent is no tool of others
    assert chatted["response"] == "最高价是 1.5。"
    assert chatted["tool_calls"][0]["result"]["output"]["rows"] == [[1.5]]


async def test_two_models_with_the_same_name_are_asked_by_their_own_agents(tmp_path, shop):
    models = {"us": ScriptedModel("```sql\nSELECT 1\n```"), "eu": ScriptedModel("```sql\nSELECT 2\n```")}
    assert models["us"].name == models["eu"].name
    body = {"question": "Which number?", "database": shop, "stream": False}
    async with serve_service(tmp_path, models) as (session, service):
        for name, expected in (("us", 1), ("eu", 2)):
            await service.store.agents.add(AgentSpec(agent_id=name, model=name))
            async with session.post("/api/ask", json=body, headers={"X-Agent-ID": name}) as response:
                assert (await response.json())["rows"] == [[expected]]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"question": "x"}, 400, "The agent 'default' has no database. Name one in the request."),
        ({"question": "x", "database": "none.db"}, 400, "File `none.db` does not exist"),
        ({"question": " ", "database": "none.db"}, 400, "The question is empty"),
        ({"question": "x", "stream": "yes"}, 422, "body.stream: must be true or false"),
        ({"database": "none.db"}, 422, "question"),
    ],
)
async def test_invalid_questions_are_rejected_with_a_message(tmp_path, body, status, said):
    async with (
        serve_service(tmp_path, ScriptedModel("x")) as (session, _),
        session.post("/api/ask", json=body) as response,
    ):
        assert response.status == status
        assert said in (await response.json())["error"]["message"]


@pytest.mark.parametrize(("detach", "status"), [(True, "finished"), (False, "cancelled")])
async def test_a_detached_question_is_answered_after_a_disconnect(tmp_path, shop, detach, status):
    async with serve_service(tmp_path, SlowModel(0.02, pieces=40)) as (session, service):
        body = {"question": "How many items?", "database": shop, "detach": detach}
        async with session.post("/api/ask", json=body) as response:
            _, _, started = await anext(read_events(response))
            response.close()
        await wait_until(lambda: service.runner.active_count == 0)
        async with session.get(f"/api/runs/{started['run_id']}") as response:
            assert (await response.json())["status"] == status
