"""Chats over HTTP: whole, streamed, in conversations, with what goes wrong."""

import asyncio
import io
import json
import re

import pytest
from tests.waiting import wait_until
from tests.web.api.asking import wait_until_written
from tests.web.api.chat_serving import read_events, serve_service
from tests.web.serving import SlowModel

from opposable.domain.content import FilePart, ImagePart, TextPart
from opposable.domain.errors import ModelUnavailable
from opposable.domain.messages import user_message
from opposable.domain.specs import AgentSpec, AgentToolBinding
from opposable.models.profile import ModelProfile
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.web.api.schemas import MessageResponse

pytestmark = pytest.mark.anyio

SUM = reply_with_calls(tool_call("calculator", '{"expression": "25*4"}', "c1"))


async def test_doc_001_asks_and_is_answered_as_written(tmp_path):
    model = ScriptedModel(SUM, "25 乘以 4 等于 100。", "还是 100。")
    async with serve_service(tmp_path, model) as (session, service):
        body = {"message": "计算 25*4", "conversation_id": "conv-123", "max_tool_calls": 5, "max_tokens": 2000}
        async with session.post("/agent/chat", json=body) as response:
            assert response.status == 200, await response.text()
            answer = await response.json()
        assert set(answer) == {"success", "response", "conversation_id", "trace_id", "tool_calls", "meta"}
        assert (answer["success"], answer["response"], answer["conversation_id"]) == (
            True,
            "25 乘以 4 等于 100。",
            "conv-123",
        )
        [made] = answer["tool_calls"]
        assert (made["tool"], made["arguments"]) == ("calculator", {"expression": "25*4"})
        assert made["result"]["success"]
        assert made["result"]["output"]["result"] == 100
        assert {name: answer["meta"][name] for name in ("total_tokens", "tool_calls_count")} == {
            "total_tokens": 30,
            "tool_calls_count": 1,
        }
        assert answer["meta"]["latency_ms"] >= 0
        async with session.get("/agent/conversations/conv-123") as response:
            said = (await response.json())["messages"]
        assert [m["role"] for m in said] == ["user", "assistant", "tool", "assistant"]
        assert (said[0]["content"], said[3]["content"]) == ("计算 25*4", "25 乘以 4 等于 100。")
        async with session.post("/agent/chat", json={"message": "再说一遍", "conversation_id": "conv-123"}) as response:
            assert (await response.json())["response"] == "还是 100。"
        assert [m.role for m in model.requests[-1].messages[1:]] == ["user", "assistant", "tool", "assistant", "user"]
        async with session.delete("/agent/conversations/conv-123") as response:
            assert await response.json() == {"deleted": True}
        async with session.get("/agent/conversations/conv-123") as response:
            assert (response.status, (await response.json())["error"]["kind"]) == (404, "not_found")
        assert not await service.store.conversations.list_messages("conv-123")


async def test_a_message_without_a_conversation_starts_a_new_one(tmp_path):
    async with serve_service(tmp_path, ScriptedModel("hello")) as (session, _):
        async with session.post("/agent/chat", json={"message": "hi"}) as response:
            found = (await response.json())["conversation_id"]
        async with session.get("/agent/conversations") as response:
            assert [(one["conversation_id"], one["messages_count"]) for one in (await response.json())["items"]] == [
                (found, 2)
            ]


async def test_conversations_are_listed_page_by_page(tmp_path):
    async with serve_service(tmp_path, ScriptedModel("hello")) as (session, _):
        for n in range(5):
            async with session.post("/agent/chat", json={"message": "hi", "conversation_id": f"c{n}"}):
                pass
        found, after = [], ""
        while True:
            async with session.get("/agent/conversations", params={"after": after, "limit": 2}) as response:
                part = await response.json()
            found += [one["conversation_id"] for one in part["items"]]
            after = part["next"]
            if not after:
                break
        assert found == ["c4", "c3", "c2", "c1", "c0"]


async def test_doc_002_streams_content_and_done(tmp_path):
    async with serve_service(tmp_path, ScriptedModel(SUM, "25 乘以 4 等于 100。")) as (session, _):
        headers = {"X-Agent-ID": "default"}
        async with session.post("/api/agent", json={"message": "请计算 25 乘以 4"}, headers=headers) as response:
            assert (response.status, response.content_type) == (200, "text/event-stream")
            raw = (await response.read()).decode()
    lines = [line.removeprefix("data: ") for line in raw.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    data = [json.loads(line) for line in lines[:-1]]
    assert "".join(one["content"] for one in data if "content" in one) == "25 乘以 4 等于 100。"
    named = re.findall(r"^event: (\w+)$", raw, re.MULTILINE)
    assert named == [
        "run_started",
        "model_replied",
        "tool_started",
        "tool_finished",
        "model_replied",
        "run_finished",
    ]
    ids = re.findall(r"^id: (\w+):(\d+)$", raw, re.MULTILINE)
    assert len({run for run, _ in ids}) == 1
    assert [int(number) for _, number in ids] == list(range(1, len(ids) + 1))


LONG_PREAMBLE = "Let me think about that. " * 20


@pytest.mark.parametrize("preamble", ["", "Let me check.", LONG_PREAMBLE])
@pytest.mark.parametrize("calling", ["native", "text"])
async def test_the_joined_content_of_a_stream_equals_the_answer(tmp_path, calling, preamble):
    call = reply_with_calls(tool_call("calculator", '{"expression": "25*4"}'), text=preamble)
    model = ScriptedModel(call, "It is 100.")
    model.profile = ModelProfile(calling)
    async with (
        serve_service(tmp_path, model) as (session, service),
        session.post("/api/agent", json={"message": "25*4"}) as response,
    ):
        events = [(kind, data) async for _, kind, data in read_events(response)]
        [finished] = [data for kind, data in events if kind == "run_finished"]
        run = service.runner.find(events[0][1]["run_id"]).run
    joined = "".join(data["content"] for kind, data in events if kind == "" and data != "[DONE]")
    assert joined == finished["text"] == run.text
    is_commentary = preamble == "Let me check." and calling == "text"
    assert joined == (f"{preamble}\n\nIt is 100." if preamble and not is_commentary else "It is 100.")
    assert [data for kind, data in events if kind == "commentary"] == ([{"text": preamble}] if is_commentary else [])


async def test_a_model_that_calls_natively_streams_at_once_and_its_whole_answer_is_the_last_reply(tmp_path):
    call = reply_with_calls(tool_call("calculator", '{"expression": "25*4"}'), text="Let me check.")
    async with serve_service(tmp_path, ScriptedModel(call, "It is 100.", call, "It is 100.")) as (session, _):
        async with session.post("/api/agent", json={"message": "25*4"}) as response:
            events = [(kind, data) async for _, kind, data in read_events(response) if data != "[DONE]"]
        async with session.post("/api/agent", json={"message": "25*4", "stream": False}) as response:
            assert (await response.json())["response"] == "It is 100."
    replied = [kind for kind, _ in events].index("model_replied")
    assert "".join(data["content"] for kind, data in events[:replied] if kind == "") == "Let me check."


async def test_an_answer_that_the_model_did_not_give_is_streamed_too(tmp_path):
    async with (
        serve_service(tmp_path, ScriptedModel("")) as (session, _),
        session.post("/api/agent", json={"message": "hi"}) as response,
    ):
        events = [(kind, data) async for _, kind, data in read_events(response)]
    assert [data["content"] for kind, data in events if kind == "" and data != "[DONE]"] == [
        "The model gave no answer."
    ]


async def test_a_stream_begins_and_keeps_a_conversation(tmp_path):
    model = ScriptedModel("Hello Ann.", "You are Ann.")
    async with serve_service(tmp_path, model) as (session, _):
        async with session.post("/api/agent", json={"message": "I am Ann."}) as response:
            started = [data async for _, kind, data in read_events(response) if kind == "run_started"]
        conversation_id = started[0]["conversation_id"]
        assert conversation_id
        body = {"message": "Who am I?", "conversation_id": conversation_id}
        async with session.post("/api/agent", json=body) as response:
            await response.read()
    assert [message.content for message in model.requests[1].messages[1:]] == ["I am Ann.", "Hello Ann.", "Who am I?"]


async def test_stream_false_gives_one_answer(tmp_path):
    async with serve_service(tmp_path, ScriptedModel(SUM, "100")) as (session, _):
        async with session.post("/api/agent", json={"message": "25*4", "stream": False}) as response:
            answer = await response.json()
        assert (answer["content"], answer["response"], answer["meta"]["tool_calls_count"]) == ("100", "100", 1)


async def test_the_header_selects_another_agent(tmp_path):
    model = ScriptedModel("Arr.")
    async with serve_service(tmp_path, model) as (session, service):
        await service.store.agents.add(AgentSpec(agent_id="pirate", instructions="Talk like a pirate."))
        async with session.post(
            "/api/agent", json={"message": "hi", "stream": False}, headers={"X-Agent-ID": "pirate"}
        ):
            pass
        assert model.requests[0].messages[0].content == "Talk like a pirate."


@pytest.mark.parametrize("header", ["客服-é", "%E5%AE%A2%E6%9C%8D-%C3%A9"])
async def test_the_header_selects_an_agent_with_a_chinese_id(tmp_path, header):
    model = ScriptedModel("您好。")
    async with serve_service(tmp_path, model) as (session, service):
        await service.store.agents.add(AgentSpec(agent_id="客服-é", instructions="你是客服。"))
        async with session.post("/agent/chat", json={"message": "你好"}, headers={"X-Agent-ID": header}) as response:
            assert (response.status, (await response.json())["response"]) == (200, "您好。")
        assert model.requests[0].messages[0].content == "你是客服。"


REFUSED = {
    "an unknown agent": ({"message": "hi"}, {"X-Agent-ID": "stranger"}, 404, "There is no agent 'stranger'."),
    "no message": ({}, {}, 422, "body.message: is required"),
    "an empty message": ({"message": " "}, {}, 400, "The task is empty"),
    "no text": ({"message": 5}, {}, 422, "body.message: must be text"),
    "a word for a truth value": ({"message": "hi", "stream": "yes"}, {}, 422, "body.stream: must be true or false"),
    "a wrong limit": ({"message": "hi", "max_tokens": 0}, {}, 422, "body.max_tokens"),
    "a wrong agent": ({"message": "hi"}, {"X-Agent-ID": "a%2Fb"}, 422, "header.X-Agent-ID: must match the pattern"),
    "a wrong id": ({"message": "hi", "conversation_id": "a/b"}, {}, 422, "body.conversation_id"),
    "no such event": ({"message": "hi"}, {"Last-Event-ID": "x"}, 400, "Last-Event-ID is not an event id"),
    "no such run": ({"message": "hi"}, {"Last-Event-ID": "x:1"}, 404, "There is no run 'x'."),
}


@pytest.mark.parametrize(("body", "headers", "status", "sentence"), REFUSED.values(), ids=REFUSED)
async def test_invalid_requests_get_errors_of_one_form(tmp_path, body, headers, status, sentence):
    async with (
        serve_service(tmp_path, ScriptedModel("hi")) as (session, _),
        session.post("/api/agent", json=body, headers=headers) as response,
    ):
        answer = await response.json()
        assert (response.status, set(answer)) == (status, {"error"})
        assert sentence in answer["error"]["message"]


async def test_an_unknown_route_and_a_body_without_json_are_reported(tmp_path):
    async with serve_service(tmp_path, ScriptedModel("hi")) as (session, _):
        async with session.get("/api/nope") as response:
            error = (await response.json())["error"]
            assert (response.status, error["kind"]) == (404, "not_found")
            assert error["message"] == "There is no route GET /api/nope. See /openapi.json."
        headers = {"Content-Type": "application/json"}
        async with session.post("/agent/chat", data=b"{bad", headers=headers) as response:
            assert response.status == 422
            fields = (await response.json())["error"]["fields"]
            assert fields == [{"field": "body", "problem": "is not valid JSON at character 1"}]


async def test_an_unavailable_model_is_reported_as_a_status_or_an_event(tmp_path):
    async with serve_service(tmp_path, ScriptedModel(ModelUnavailable("The model is away."))) as (session, _):
        async with session.post("/agent/chat", json={"message": "hi", "conversation_id": "v"}) as response:
            assert (response.status, response.headers["retry-after"]) == (503, "2")
            assert await response.json() == {"error": {"kind": "model_unavailable", "message": "The model is away."}}
        async with session.post("/api/agent", json={"message": "hi"}) as response:
            events = [event async for event in read_events(response)]
        assert [(kind, data) for _, kind, data in events[-2:]] == [
            ("error", {"error": {"kind": "model_unavailable", "message": "The model is away."}}),
            ("", "[DONE]"),
        ]
        async with session.get("/agent/conversations/v") as response:
            assert (await response.json())["messages"] == []  # it is listed, for another attempt


@pytest.mark.parametrize("body", [{"stream": True}, {"stream": False}])
async def test_a_disconnect_stops_the_run(tmp_path, body):
    model = SlowModel(0.02)
    async with serve_service(tmp_path, model) as (session, service):
        asking = asyncio.create_task(session.post("/api/agent", json={"message": "hi", **body}))
        await asyncio.wait_for(model.begun.wait(), 5)
        await asyncio.sleep(0.1)
        assert service.runner.active_count == 1
        if body["stream"]:
            (await asking).close()
        else:
            asking.cancel()
        await asyncio.wait_for(model.closed.wait(), 10)  # the model writes for 20
        await wait_until(lambda: service.runner.active_count == 0)


async def test_a_detached_run_continues_and_can_be_resumed(tmp_path):
    model = SlowModel(0.02, pieces=40)
    async with serve_service(tmp_path, model) as (session, service):
        body = {"message": "hi", "detach": True, "conversation_id": "v"}
        async with session.post("/api/agent", json=body) as response:
            seen = []
            async for event in read_events(response):
                seen.append(event)
                if len(seen) == 3:
                    break
            response.close()
        async with session.post("/api/agent", json=body, headers={"Last-Event-ID": seen[-1][0]}) as response:
            rest = [event async for event in read_events(response)]
        assert service.runner.active_count == 0
        pieces = [data["content"] for _, kind, data in [*seen, *rest[:-1]] if kind == ""]
        assert "".join(pieces) == "a" * 40
        assert len(await service.store.conversations.list_messages("v")) == 2


async def test_runs_are_listed_and_replayed_and_each_call_is_recorded_once(tmp_path):
    async with serve_service(tmp_path, ScriptedModel(SUM, "100")) as (session, service):
        async with session.post("/api/agent", json={"message": "25*4"}) as response:
            live = [event async for event in read_events(response)]
        run_id = live[0][0].partition(":")[0]
        async with session.get(f"/api/runs/{run_id}") as response:
            run = await response.json()
            assert (run["status"], run["text"], run["tool_calls"], run["model"]) == ("finished", "100", 1, "m")
        async with session.get(f"/api/runs/{run_id}/events") as response:
            assert [event async for event in read_events(response)] == live
        service.runner._ended_runs.clear()
        await wait_until_written(service)
        async with session.get(f"/api/runs/{run_id}/events", headers={"Last-Event-ID": live[2][0]}) as response:
            assert [event async for event in read_events(response)] == live[3:]
        async with session.get("/api/runs", params={"status": "finished"}) as response:
            assert [one["run_id"] for one in (await response.json())["items"]] == [run_id]
        async with session.post(f"/api/runs/{run_id}/cancel") as response:
            assert await response.json() == {"run_id": run_id, "cancelled": False}
        async with session.get("/api/runs/none") as response:
            assert response.status == 404
        assert len((await service.store.executions.list()).items) == 1


async def test_a_run_can_be_cancelled(tmp_path):
    model = SlowModel(0.02)
    async with serve_service(tmp_path, model) as (session, _):
        async with session.post("/api/agent", json={"message": "hi", "conversation_id": "v"}) as response:
            events = []
            async for event in read_events(response):
                events.append(event)
                if len(events) == 2:
                    run_id = event[0].partition(":")[0]
                    async with session.post(f"/api/runs/{run_id}/cancel") as cancelled:
                        assert await cancelled.json() == {"run_id": run_id, "cancelled": True}
        assert events[-2][1:] == ("error", {"error": {"kind": "cancelled", "message": "The run was cancelled."}})
        async with session.get(f"/api/runs/{run_id}") as response:
            assert (await response.json())["status"] == "cancelled"


@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_a_call_that_needs_approval_waits_for_a_decision(tmp_path, decision):
    spec = AgentSpec(
        agent_id="careful", tools=(AgentToolBinding(tool_id="calculator"),), needs_approval=("calculator",)
    )
    async with serve_service(tmp_path, ScriptedModel(SUM, "Done.")) as (session, service):
        await service.store.agents.add(spec)
        async with session.post("/api/agent", json={"message": "25*4"}, headers={"X-Agent-ID": "careful"}) as response:
            async for _, kind, data in read_events(response):
                if kind == "approval_needed":
                    assert data["arguments"] == {"expression": "25*4"}
                    async with session.get("/api/approvals", params={"status": "pending"}) as listed:
                        [waiting] = (await listed.json())["items"]
                    assert (waiting["arguments"], waiting["sha256"]) == (data["arguments"], data["sha256"])
                    url = f"/api/approvals/{waiting['approval_id']}"
                    async with session.get(f"/api/runs/{waiting['run_id']}") as run:
                        assert (await run.json())["status"] == "waiting"
                    other = {"decision": decision, "sha256": "0" * 64}
                    async with session.post(url, json=other) as wrong:
                        assert wrong.status == 409
                    right = {"decision": decision, "sha256": data["sha256"], "reason": "太贵了"}
                    async with session.post(url, json=right) as decided:
                        assert (decided.status, (await decided.json())["reason"]) == (200, "太贵了")
                    async with session.post(url, json=right) as again:
                        assert again.status == 409
                elif kind == "tool_finished":
                    result = data
        assert result["success"] == (decision == "approve")
        assert ("太贵了" in result["result"]) == (decision == "deny")


PIXEL = ImagePart("", b"\x89PNG\r\n\x1a\n", "image/png")
PIXEL_URL = "data:image/png;base64,iVBORw0KGgo="


class SeeingModel(ScriptedModel):
    """A scripted model that takes images."""

    profile = ModelProfile(images=True)


@pytest.mark.parametrize("path", ["/agent/chat", "/api/agent"])
async def test_images_and_files_reach_the_model_and_stay_in_the_conversation(tmp_path, path):
    pdf = {"url": "data:application/pdf;base64,JVBERi0xLjc=", "name": "a.pdf"}
    body = {"message": "see", "attachments": [{"url": PIXEL_URL}, pdf], "conversation_id": "c", "stream": False}
    if path == "/agent/chat":
        del body["stream"]
    model = SeeingModel("a pixel", "again")
    async with serve_service(tmp_path, model) as (session, _):
        async with session.post(path, json=body) as response:
            assert (await response.json())["response"] == "a pixel"
        async with session.post(path, json={"message": "again?", "conversation_id": "c"}) as response:
            assert response.status == 200
        async with session.get("/agent/conversations/c") as response:
            stored = MessageResponse.model_validate((await response.json())["messages"][0])
    parts = (TextPart("see"), PIXEL, FilePart("", b"%PDF-1.7", "application/pdf", "a.pdf"))
    assert [request.messages[1] for request in model.requests] == [user_message("see", parts)] * 2
    assert [part.type for part in stored.parts] == ["text", "image", "file"]


@pytest.mark.parametrize(
    ("attachments", "status", "message"),
    [
        ([{"url": "/etc/passwd"}], 422, "attachments"),
        ([{"url": "data:text/plain;base64,aGk="}], 400, "is not an image"),
        ([{"url": "http://127.0.0.1/a.png"}], 400, "Cannot fetch"),
        ([{"url": PIXEL_URL}], 400, "takes no images"),
        ([{"url": PIXEL_URL}] * 21, 422, "attachments"),
        ([{"url": "data:image/png;base64," + "A" * 29_000_000}], 400, "at most 20,971,520 bytes"),
    ],
    ids=["a path", "text", "a private address", "a model of text", "too many", "too large"],
)
async def test_unusable_attachments_are_rejected(tmp_path, attachments, status, message):
    body = io.BytesIO(json.dumps({"message": "see", "attachments": attachments}).encode())
    async with (
        serve_service(tmp_path, ScriptedModel("hi")) as (session, _),
        session.post("/api/agent", data=body, headers={"content-type": "application/json"}) as response,
    ):
        assert response.status == status
        assert message in await response.text()


@pytest.mark.parametrize("depth", [300, 500, 1000])
async def test_a_call_with_deep_arguments_is_answered_and_recorded(tmp_path, depth):
    arguments = f'{{"expression": {"[" * depth}{"]" * depth}}}'
    replies = [reply_with_calls(tool_call("calculator", arguments)), "Done."] * 2
    async with serve_service(tmp_path, ScriptedModel(*replies)) as (session, service):
        async with session.post("/agent/chat", json={"message": "go"}) as response:
            assert response.status == 200, await response.text()
            text = await response.text()
        assert arguments.replace(" ", "") in text.replace(" ", "")
        async with session.post("/api/agent", json={"message": "go", "stream": True}) as response:
            kinds = [kind async for _, kind, _ in read_events(response)]
        assert {"tool_finished", "run_finished"} < set(kinds)
        body = f'{{"arguments": {arguments}}}'
        headers = {"content-type": "application/json"}
        async with session.post("/api/tools/calculator/call", data=body, headers=headers) as response:
            assert (response.status, (await response.json())["error"]["kind"]) == (200, "invalid_arguments")
        await wait_until_written(service)
        async with session.get("/api/executions") as response:
            assert len((await response.json())["items"]) == 3
        assert service.recorder.status.refused == 0
