"""The embedded model itself: the real weights in the real llama.cpp."""

import asyncio
import signal
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path

import aiohttp
import pytest
from tests.waiting import wait_for_process_end

from opposable import Agent, TextDelta
from opposable.app.agents import DEFAULT_INSTRUCTIONS
from opposable.app.tool_factory import create_builtin_tools
from opposable.domain.errors import ContextFull, ModelUnavailable
from opposable.domain.language import detect_language
from opposable.domain.messages import user_message
from opposable.models.base import ForcedTool, ModelOptions
from opposable.models.embedded.llama_cpp import LocalModel
from opposable.models.embedded.pull import pull_weights
from opposable.models.embedded.weights import QWEN_CODER, get_models_directory
from opposable.models.profile import ModelProfile
from opposable.models.python_protocol.model import PythonProtocolModel
from opposable.models.text_protocol import TextProtocolModel
from opposable.settings import Settings

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.anyio, pytest.mark.real_model]


@pytest.fixture(scope="module")
def anyio_backend():
    """One loop for all tests here: they share one loaded model."""
    return "asyncio"


@pytest.fixture(scope="module")
async def local(anyio_backend):
    path = await pull_weights(QWEN_CODER, get_models_directory(Settings().home))
    model = LocalModel(path, context_tokens=4096, max_parallel_requests=2)
    yield model
    await model.aclose()


def stock(item: str) -> int:
    """How many pieces of an item are in stock.

    Args:
        item: the item's name
    """
    return {"bolt": 4711, "螺栓": 4711}.get(item, 0)


async def drain(parts):
    async for _ in parts:
        pass


QUESTION = "How many pieces of the item 'bolt' are in stock? Use the tool."


async def test_asked_natively_it_writes_its_call_as_text_which_is_read(local):
    tools = Agent(local, [stock]).library.definitions
    raw = [part async for part in local.stream((user_message(QUESTION),), tools)][-1]
    assert raw.message.tool_calls == ()
    read = [part async for part in TextProtocolModel(local).stream((user_message(QUESTION),), tools)][-1]
    assert [(call.name, call.arguments_json) for call in read.message.tool_calls] == [("stock", '{"item":"bolt"}')]


@pytest.mark.parametrize("question", [QUESTION, "仓库里 'bolt' 还有多少件？请使用工具查询。"])
async def test_it_answers_from_a_tools_result(local, question):
    end = await Agent(TextProtocolModel(local, "protocol"), [stock]).run(question)
    assert end.tool_calls >= 1
    assert "4711" in end.text.replace(",", "")


async def test_the_grammar_enforces_a_forced_choice(local):
    options = ModelOptions(tool_choice=ForcedTool("stock"), max_tokens=60)
    model = TextProtocolModel(local, "protocol")
    tools = Agent(local, [stock]).library.definitions
    reply = [part async for part in model.stream((user_message("Tell me a joke."),), tools, options)][-1]
    assert [call.name for call in reply.message.tool_calls][:1] == ["stock"]


@pytest.mark.parametrize(
    ("said", "items"),
    [
        ("How many bolts are in stock, and how many nuts?", ["bolt", "nut"]),
        ("仓库里螺栓还有多少件？", ["螺栓"]),
        ("Who wrote the play Hamlet?", []),
    ],
)
async def test_asked_as_python_it_calls_what_fits_and_else_answers(local, said, items):
    model = PythonProtocolModel(local)
    tools = Agent(local, [stock]).library.definitions
    reply = [part async for part in model.stream((user_message(said),), tools, ModelOptions(max_tokens=60))][-1]
    assert [call.arguments["item"].rstrip("s") for call in reply.message.tool_calls] == items
    assert bool(reply.message.content) is not bool(items)


@pytest.mark.parametrize(
    ("said", "tools", "facts"),
    [
        ("echo hello", ["echo"], ("hello",)),
        ("搜索包含 'calculator' 的文件，然后计算 [1,2,3,4,5] 的平均值", ["file_search", "calculator"], ("平均值", "3")),
        ("帮我分析一下 logs/app.log", ["log_transform"], ("日志", "305", "Payment gateway timed out")),
        ("搜索名为 不存在.txt 的文件", ["file_search"], ("不存在",)),
    ],
    ids=["one tool", "two tools", "choice of a tool", "nothing found"],
)
async def test_the_scenarios_of_the_agent_end_right(local, said, tools, facts):
    library = create_builtin_tools([ROOT / "examples" / "data" / "files"])
    model = PythonProtocolModel(local, ModelProfile("constrained", assisted=True))  # all tools, as with 16k tokens
    end = await Agent(model, library, instructions=DEFAULT_INSTRUCTIONS[detect_language(said)]).run(said)
    assert [call.name for message in end.messages for call in message.tool_calls] == tools
    assert end.reason == "answer"
    assert [fact for fact in facts if fact not in end.text] == [], end.text
    assert detect_language(end.text) == detect_language(said)


async def test_messages_beyond_the_context_window_raise(local):
    with pytest.raises(ContextFull, match="context"):
        await Agent(local).run("word " * 20_000)


async def test_leaving_a_stream_stops_the_computation(local):
    async with aclosing(local.stream((user_message("Count from 1 to 2000, one number a line."),))) as parts:
        async for part in parts:
            if type(part) is TextDelta:
                break
    started = asyncio.get_running_loop().time()
    await Agent(local, options=ModelOptions(max_tokens=4)).run("Say hi.")
    assert asyncio.get_running_loop().time() - started < 20


async def test_its_server_requires_the_key(local):
    await Agent(local, options=ModelOptions(max_tokens=2)).run("Say hi.")
    url = f"{local._client._base_url}/chat/completions"
    async with aiohttp.ClientSession() as session, session.post(url, json={"messages": []}) as response:
        assert response.status == 401


async def test_a_failure_of_llama_cpp_costs_one_reply_and_the_next_one_starts_it_again(local):
    await Agent(local, options=ModelOptions(max_tokens=2)).run("Say hi.")
    process = local._process
    stream = local.stream((user_message("Count from 1 to 2000, one number a line."),))
    assert await anext(stream)
    process.kill()
    with pytest.raises(ModelUnavailable):
        await asyncio.wait_for(drain(stream), 30)
    await asyncio.to_thread(process.wait)
    await Agent(local, options=ModelOptions(max_tokens=2)).run("Say hi.")


async def test_other_tasks_run_while_it_loads(local):
    await local.aclose()
    answering = asyncio.create_task(Agent(local, options=ModelOptions(max_tokens=2)).run("Say hi."))
    gaps, last = [], time.monotonic()
    while not answering.done():
        await asyncio.sleep(0.01)
        gaps.append(time.monotonic() - last)
        last = time.monotonic()
    assert max(gaps) < sum(gaps) / 2


def test_its_process_ends_with_the_program(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import asyncio, os, signal\n"
        "from opposable.models.factory import create_unwrapped_model\n"
        "model = create_unwrapped_model('local')\n"
        "asyncio.run(model._start())\n"
        "print(model._process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    wait_for_process_end(int(done.stdout))


def test_the_demo_does_all_its_tasks():
    done = subprocess.run([sys.executable, ROOT / "examples" / "demo.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
