"""The documents' own commands for curl, as they stand there but for host and port."""

import asyncio
import shutil
import subprocess

import orjson
import pytest
from tests.web.api.chat_serving import serve_service

from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl"),
]

SUM = reply_with_calls(tool_call("calculator", '{"expression": "25 * 4"}'))
SEARCH = reply_with_calls(tool_call("file_search", '{"query": "calculator"}'))

STREAMED = r"""curl -X POST http://localhost:8890/api/agent \
  -H "Content-Type: application/json" \
  -H "X-Agent-ID: {agent_id}" \
  -d '{
    "message": "请计算 25 乘以 4"
  }'"""

WHOLE = r"""curl -X POST http://localhost:8890/agent/chat \
  -H "Content-Type: application/json" \
  -d '{
  "message": "搜索包含 calculator 的文件",
  "conversation_id": "optional-conversation-id",
  "max_tool_calls": 5,
  "max_tokens": 2000
}'"""


async def run_curl(command: str, session, agent_id: str = "default") -> str:
    """What a command prints, asked of the service of a session."""
    base = str(session._base_url).rstrip("/")
    command = command.replace("http://localhost:8890", base).replace("{agent_id}", agent_id)
    done = await asyncio.to_thread(
        subprocess.run, ["/bin/sh", "-c", f"{command} -sS -m 20"], capture_output=True, text=True, check=True
    )
    return done.stdout


async def test_a_streamed_answer_is_lines_of_data_with_content_and_done(tmp_path):
    async with serve_service(tmp_path, ScriptedModel(SUM, "25 乘以 4 等于 100。")) as (session, _):
        output = await run_curl(STREAMED, session)
        unknown = orjson.loads(await run_curl(STREAMED, session, "unknown"))
    events = [dict(line.split(": ", 1) for line in block.splitlines()) for block in output.strip().split("\n\n")]
    plain = [orjson.loads(one["data"]) for one in events[:-1] if "event" not in one]
    assert "".join(one["content"] for one in plain) == "25 乘以 4 等于 100。"
    assert events[-1] == {"data": "[DONE]"}
    assert [one.get("event") for one in events if one.get("event", "").startswith("tool")] == [
        "tool_started",
        "tool_finished",
    ]
    assert unknown["error"]["kind"] == "not_found"


async def test_a_whole_answer_has_every_documented_field(tmp_path):
    (tmp_path / "calculator.py").write_text("print(1)\n")
    async with serve_service(tmp_path, ScriptedModel(SEARCH, "找到了 calculator.py。")) as (session, _):
        output = orjson.loads(await run_curl(WHOLE, session))
        base = "curl http://localhost:8890/agent/conversations/optional-conversation-id"
        history = orjson.loads(await run_curl(base, session))
        await run_curl(f"{base} -X DELETE", session)
        gone = orjson.loads(await run_curl(base, session))
    assert list(output) == ["success", "response", "conversation_id", "trace_id", "tool_calls", "meta"]
    assert (output["success"], output["response"]) == (True, "找到了 calculator.py。")
    assert output["conversation_id"] == "optional-conversation-id"
    (made,) = output["tool_calls"]
    assert (made["tool"], made["arguments"]) == ("file_search", {"query": "calculator"})
    assert "calculator.py" in str(made["result"])
    assert output["meta"]["tool_calls_count"] == 1
    assert {"total_tokens", "latency_ms"} <= set(output["meta"])
    assert [one["role"] for one in history["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert gone["error"]["kind"] == "not_found"
