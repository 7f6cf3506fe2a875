"""The command `mcp-serve`: keys of the store and records of calls."""

import asyncio
import os
import re
import signal
import sys

import aiohttp
import orjson
import pytest
from tests.cli.program import Terminal, needs_posix, run_program, start_program

from opposable.app.default_store import open_existing_store
from opposable.domain.records import ExecutionFilter
from opposable.settings import Settings

pytestmark = pytest.mark.anyio

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "calculator", "arguments": {"expression": "25*4"}},
}


async def create_key(folder, *scopes: str) -> str:
    options = [part for scope in scopes for part in ("--scope", scope)]
    created = await run_program(folder, "keys", "create", f"of {len(scopes)}", *options, "--json")
    assert created.code == 0, created.err
    return created.json["key"]


@needs_posix
async def test_http_clients_need_a_key_of_the_store_and_their_calls_are_recorded(tmp_path):
    key, chat_key = await create_key(tmp_path, "tools:write", "tools:read"), await create_key(tmp_path, "chat")
    revoked = await create_key(tmp_path, "tools:write", "tools:read", "chat")
    assert (await run_program(tmp_path, "keys", "revoke", revoked[:12])).code == 0
    program = await start_program(tmp_path, "mcp-serve", "--http", "--port", "0", "--tool", "calculator")
    try:
        async with asyncio.timeout(60):
            url = re.search(r"http://\S+", (await program.stderr.readline()).decode())[0]
        statuses = []
        async with aiohttp.ClientSession() as session:
            for candidate in ("", "opp_wrong", revoked, chat_key, key):
                headers = {"Accept": "application/json, text/event-stream"}
                headers |= {"Authorization": f"Bearer {candidate}"} if candidate else {}
                async with session.post(url, json=INITIALIZE, headers=headers) as response:
                    statuses.append(response.status)
                    session_id = response.headers.get("mcp-session-id", "")
            headers |= {"mcp-session-id": session_id, "mcp-protocol-version": "2025-11-25"}
            async with session.post(url, json=CALL, headers=headers) as response:
                assert "100" in await response.text()
        assert statuses == [401, 401, 401, 403, 200]
    finally:
        program.terminate()
        await program.communicate()
    async with open_existing_store(Settings(home=tmp_path / "cache", _env_file=None)) as store:
        [execution] = (await store.executions.list(ExecutionFilter())).items
    assert (execution.tool_id, execution.arguments, execution.failure) == ("calculator", {"expression": "25*4"}, None)


@needs_posix
async def test_the_terminal_shows_that_a_client_starts_the_command(tmp_path):
    terminal = Terminal()
    await terminal.open(tmp_path, "mcp-serve", "--tool", "calculator")
    await terminal.shows("An MCP client starts this command")
    terminal.type("\x04")
    assert await terminal.close() == 0


@needs_posix
@pytest.mark.parametrize("redirection", ["<&-", ">&-"])
async def test_a_closed_stream_of_the_transport_is_invalid_input(tmp_path, redirection):
    command = f'exec "{sys.executable}" -m opposable mcp-serve {redirection}'
    program = await asyncio.create_subprocess_shell(
        command, cwd=tmp_path, stderr=asyncio.subprocess.PIPE, env={**os.environ, "OPPOSABLE_HOME": str(tmp_path)}
    )
    _, err = await program.communicate()
    assert (program.returncode, err.startswith(b"Error: Standard input or output is closed.")) == (2, True)


@needs_posix
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_signal_ends_the_server_while_its_client_is_connected(tmp_path, number, code):
    program = await start_program(tmp_path, "mcp-serve", "--tool", "calculator")
    program.stdin.write(orjson.dumps(INITIALIZE) + b"\n")
    assert b"serverInfo" in await asyncio.wait_for(program.stdout.readline(), 30)
    program.send_signal(number)
    assert await asyncio.wait_for(program.wait(), 20) == code
    assert await program.stderr.read() == b"Stopped.\n"
