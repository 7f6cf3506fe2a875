"""A cancelled connection leaves no open files."""

import asyncio
from pathlib import Path

import pytest
from tests.cli.program import needs_posix

from opposable.domain.specs import McpServerSpec
from opposable.tools.mcp.transport import ConnectionDiagnostics, connect

pytestmark = [pytest.mark.anyio, needs_posix]


@pytest.mark.parametrize("steps", range(1, 8))
async def test_a_connection_that_is_cancelled_while_it_opens_leaves_no_open_files(steps: int) -> None:
    spec = McpServerSpec(tool_id="cat", command="cat")

    async def ignore(message: object) -> None:
        pass

    async def open_connection() -> None:
        async with connect(spec, ignore, ConnectionDiagnostics()):
            pass

    await asyncio.sleep(0.1)
    before = len(list(Path("/dev/fd").iterdir()))
    task = asyncio.create_task(open_connection())
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.1)
    assert len(list(Path("/dev/fd").iterdir())) == before
