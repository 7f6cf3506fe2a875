"""The service as processes of its own."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@contextlib.asynccontextmanager
async def serve_process(
    home: Path, model: str, *arguments: str, **env: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A process that serves, and its URL."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "opposable", "serve", "--model", model, "--port", "0", *arguments),
        env={**os.environ, "OPPOSABLE_HOME": str(home), **env},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        line = (await asyncio.wait_for(process.stderr.readline(), 90)).decode()
        assert " is served at " in line, line
        yield process, line.split()[-1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        process._transport.close()


def get_worker_pids(process: asyncio.subprocess.Process) -> list[int]:
    """The ids of the processes that a process began and that serve."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
                if int(parent) == process.pid and b"spawn_main" in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
    return found


async def wait_for(condition: Callable[[], Awaitable[T]], seconds: float = 30.0) -> T:
    """What `look` finds, as soon as it finds something."""
    async with asyncio.timeout(seconds):
        while True:
            if found := await condition():
                return found
            await asyncio.sleep(0.1)
