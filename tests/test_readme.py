"""Every command of the README can be pasted in a checkout: each runs, in order, with a scripted model."""

import asyncio
import os
import re
import shlex
import shutil
import socket
import sys
from pathlib import Path

import pytest
from aiohttp import web
from tests.models.chat_server import build_completion, build_delta, chat_server, respond_events
from tests.test_docs import ROOT, blocks_of

pytestmark = pytest.mark.anyio

SQL_REPLY = "```sql\nSELECT Country, COUNT(*) FROM Customer GROUP BY Country ORDER BY 2 DESC LIMIT 1\n```"
NEED_INPUT = {"opposable chat": "/exit\n"}
"""What is typed into a command; others read an empty input."""

ADDED_OPTIONS = {"examples/my_functions.py": ("--yes",)}
"""Options in place of a question, by the last word of a command."""


def list_commands() -> list[str]:
    """Return the commands without comments, in the order of the page."""
    lines = [
        line for block in blocks_of(ROOT / "README.md") if block.language == "bash" for line in block.text.splitlines()
    ]
    return [shlex.join(shlex.split(line, comments=True)) for line in lines if line.startswith(("opposable ", "curl "))]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the data of the repository, where commands may write."""
    for name in ("examples", "evals"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.mark.skipif(shutil.which("curl") is None, reason="the README calls the service with curl")
async def test_every_command_of_the_readme_works(checkout):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    commands = list_commands()
    assert len(commands) > 15
    async with chat_server(respond_always) as model:
        environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(checkout),
            "OPPOSABLE_HOME": str(checkout / "state"),
            "OPPOSABLE_MODEL": f"{model.url}#m",
        }
        server = None
        try:
            for command in commands:
                words = [adapt_word(word, model.url, port) for word in shlex.split(command)]
                if words[1] == "serve":
                    server = await start(checkout, environment, *words, "--port", str(port))
                    await wait_until_served(port)
                    continue
                await run(checkout, environment, words, NEED_INPUT.get(" ".join(words[:2]), ""))
        finally:
            if server is not None:
                server.terminate()
                await server.communicate()
    assert server is not None
    assert server.returncode == 0


def adapt_word(word: str, model_url: str, port: int) -> str:
    """Name the scripted model and the free port instead of those of the page."""
    word = re.sub(r"^(local|openai:.*)$", f"{model_url}#m", word)
    return word.replace("127.0.0.1:8000", f"127.0.0.1:{port}")


async def respond_always(request: web.Request) -> web.StreamResponse:
    """Answer every request with SQL, streamed if it asks for a stream."""
    body = await request.json()
    handler = respond_events(build_delta(content=SQL_REPLY), build_delta("stop"))
    return await (handler if body.get("stream") else build_completion(SQL_REPLY))(request)


async def run(folder: Path, environment: dict[str, str], words: list[str], typed: str) -> None:
    process = await start(folder, environment, *words, *ADDED_OPTIONS.get(words[-1], ()))
    async with asyncio.timeout(120):
        out, err = await process.communicate(typed.encode())
    assert process.returncode == 0, f"{shlex.join(words)}\n{out.decode()}\n{err.decode()}"
    assert b"Traceback" not in err


async def start(folder: Path, environment: dict[str, str], *words: str) -> asyncio.subprocess.Process:
    words = ("curl", "--fail-with-body", *words[1:]) if words[0] == "curl" else words
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *words, cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe
    )


async def wait_until_served(port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            return
