"""The command lines of Claude Code and Codex with a model that writes its calls as text."""

import asyncio
import os
import subprocess
from pathlib import Path

import orjson
import pytest
from tests.web.installed_clients import install_npm_package
from tests.web.serving import serve_models

from opposable.domain.messages import Message
from opposable.models.scripted import ScriptedModel
from opposable.models.text_protocol import TextProtocolModel

pytestmark = pytest.mark.anyio

NOTE = "The order is 4711."
TASK = "What does notes.txt say?"
CODEX_SETTINGS = """
model = "m"
model_provider = "opposable"
web_search = "disabled"

[model_providers.opposable]
name = "Opposable"
base_url = "{url}"
wire_api = "responses"
"""


def create_reader(tool: str, **arguments: str) -> TextProtocolModel:
    """A model that reads the note with a tool of the agent, and answers with what it has read."""

    def reply(messages: list[Message]) -> str:
        if any(NOTE in message.content for message in messages):
            return f"It says: {NOTE}"
        return f"<tool_call>{orjson.dumps({'name': tool, 'arguments': arguments}).decode()}</tool_call>"

    return TextProtocolModel(ScriptedModel(reply), "protocol")


async def run_agent(command: list[str], folder: Path, **environment: str) -> str:
    """The output of an agent that works in a folder, without the settings and keys of the developer."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, (output + errors).decode()[-3000:]
    return output.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes.txt").write_text(NOTE)
    return tmp_path


async def test_claude_code_reads_a_file(folder):
    claude = install_npm_package("@anthropic-ai/claude-code@2") / ".bin" / "claude"
    async with serve_models(create_reader("Read", file_path=str(folder / "notes.txt"))) as url:
        output = await run_agent(
            [str(claude), "-p", TASK],
            folder,
            ANTHROPIC_BASE_URL=url.removesuffix("/v1"),
            ANTHROPIC_API_KEY="none",
            ANTHROPIC_MODEL="m",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        )
    assert output.strip() == f"It says: {NOTE}"


async def test_codex_reads_a_file(folder):
    codex = install_npm_package("@openai/codex@0.169.0") / ".bin" / "codex"
    async with serve_models(create_reader("exec_command", cmd="cat notes.txt")) as url:
        (folder / ".codex").mkdir()
        (folder / ".codex" / "config.toml").write_text(CODEX_SETTINGS.format(url=url))
        command = [str(codex), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK]
        output = await run_agent(command, folder)
    assert output.strip() == f"It says: {NOTE}"
