"""Helpers for tests of the odd server: its tools, its spec, and waiting."""

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from tests.waiting import wait_until

from opposable.domain.specs import McpServerSpec

ODD_SERVER_SCRIPT = str(Path(__file__).parent / "odd_server.py")
RAW_SERVER_SCRIPT = str(Path(__file__).parent / "raw_server.py")
OBJECT_SCHEMA = {"type": "object", "properties": {}}
SECONDS_SCHEMA = {"type": "object", "properties": {"seconds": {"type": "number"}}}


def create_tool_json(name: str, description: str = "", schema: dict | None = None, **more) -> dict:
    return {"name": name, "description": description, "inputSchema": schema or OBJECT_SCHEMA, **more}


def write_tools(path: Path, *tools: dict) -> Path:
    """Set the server's tools; a string is the name of a tool that accepts anything."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps([create_tool_json(one) if isinstance(one, str) else one for one in tools]))
    fresh.replace(path)
    return path


def create_spec(path: Path, tool_id: str = "odd", **more) -> McpServerSpec:
    return McpServerSpec(tool_id=tool_id, command=sys.executable, args=(ODD_SERVER_SCRIPT, str(path)), **more)


def create_raw_spec(path: Path, **more) -> McpServerSpec:
    return McpServerSpec(tool_id="raw", command=sys.executable, args=(RAW_SERVER_SCRIPT, str(path)), **more)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@contextlib.asynccontextmanager
async def start_server(command: list[str], port: int, **more) -> AsyncIterator[subprocess.Popen]:
    """A program that serves on a port of loopback, from when it answers to the end of the block."""
    program = subprocess.Popen(  # noqa: ASYNC220 - starting is quick, and the tests kill it as they like
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **more
    )
    try:
        await wait_until(lambda: _is_listening(port))
        yield program
    finally:
        program.kill()
        program.wait()


def _is_listening(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
