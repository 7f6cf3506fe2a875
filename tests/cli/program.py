"""The command line as a program of its own: helpers that run it and serve its models."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from tests.cli.forking import run_forked
from tests.models.chat_server import (
    ChatServer,
    build_delta,
    chat_server,
    respond_events,
)
from tests.waiting import wait_until

import opposable

TESTED_PACKAGE = {"PYTHONPATH": str(Path(opposable.__file__).parents[1])}
"""The variable with which a program imports the package under test, also if another one is installed."""

NOWHERE = "http://127.0.0.1:9/v1#m"
"""The address of a server that does not exist."""

SQL_REPLY = "```sql\nSELECT name, ｐｒｉｃｅ FROM item ORDER BY price DESC\n```"
"""The reply of a model that writes SQL; the column is `price`."""


@dataclass(frozen=True)
class ProgramResult:
    code: int
    out: str
    err: str
    seconds: float

    @property
    def json(self) -> dict:
        """The one JSON object on standard output."""
        return orjson.loads(self.out)


def build_environment(folder: Path, env: dict[str, str] | None) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name in ("PATH", "SYSTEMROOT", "LANG", "LC_ALL")}
    own = {"HOME": str(folder), "OPPOSABLE_HOME": str(folder / "cache"), "NO_PROXY": "127.0.0.1", **TESTED_PACKAGE}
    return {**inherited, "PYTHONIOENCODING": "utf-8", **own, **(env or {})}


async def start_program(
    folder: Path, *args: str | bytes, stdin: int = asyncio.subprocess.PIPE, env: dict[str, str] | None = None
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "opposable", *args),
        cwd=folder,
        env=build_environment(folder, env),
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def run_program(
    folder: Path,
    *args: str | bytes,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    within: float = 60,
    forked: bool = sys.platform != "win32",
) -> ProgramResult:
    """Run the program to its end, in a forked process or in a new one, whose start takes longer than most commands."""
    started = time.perf_counter()
    if forked:
        code, out, err = await run_forked(args, folder, build_environment(folder, env), stdin, within)
        return ProgramResult(code, out.decode(), err.decode(), time.perf_counter() - started)
    process = await start_program(folder, *args, env=env)
    try:
        async with asyncio.timeout(within):
            out, err = await process.communicate(stdin)
    except TimeoutError:
        process.kill()
        await process.communicate()
        raise
    assert process.returncode is not None
    return ProgramResult(process.returncode, out.decode(), err.decode(), time.perf_counter() - started)


@asynccontextmanager
async def run_with_model(
    folder: Path, *args: str, answers: list, **more
) -> AsyncIterator[tuple[ProgramResult, ChatServer]]:
    """Run the program with a model that gives these answers."""
    async with chat_server(*answers) as server:
        yield await run_program(folder, *args, "--model", f"{server.url}#m", **more), server


def respond_text_deltas(*pieces: str):
    return respond_events(*(build_delta(content=piece) for piece in pieces), build_delta("stop"))


def respond_call(name: str, **arguments):
    call = {"index": 0, "id": "c1", "function": {"name": name, "arguments": orjson.dumps(arguments).decode()}}
    return respond_events(build_delta(tool_calls=[call]), build_delta("tool_calls"))


async def respond_endlessly(request: web.Request) -> web.StreamResponse:
    """Stream an answer that never ends."""
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for number in range(10_000):
        await response.write(b"data: " + orjson.dumps(build_delta(content=f"word{number} ")) + b"\n\n")
        await asyncio.sleep(0.02)
    return response


needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and terminals of POSIX")


async def assert_one_sentence(folder: Path, args, code: int, sentence: str, **more) -> None:
    done = await run_program(folder, *args, **more)
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done
    assert done.err.startswith("Error: "), done
    assert sentence in done.err, done


class Terminal:
    """The program in a pseudo-terminal."""

    def __init__(self) -> None:
        self.seen = ""
        self._master, self._slave = os.openpty()
        self.process: asyncio.subprocess.Process | None = None

    async def open(self, folder: Path, *args: str) -> None:
        own = (
            "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
        )
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", own, sys.executable, "-m", "opposable", *args),
            cwd=folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "TERM": "xterm",
                "PYTHONIOENCODING": "utf-8",
                **TESTED_PACKAGE,
            },
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
        )
        os.close(self._slave)
        asyncio.get_running_loop().add_reader(self._master, self._read)

    def _read(self) -> None:
        try:
            self.seen += os.read(self._master, 65536).decode("utf-8", "replace")
        except OSError:  # the program is gone
            asyncio.get_running_loop().remove_reader(self._master)

    def type(self, keys: str) -> None:
        self.seen = ""
        os.write(self._master, keys.encode())

    async def shows(self, text: str) -> None:
        try:
            await wait_until(lambda: text in self.seen)
        except TimeoutError:
            pytest.fail(f"{text!r} was not shown: {self.seen!r}")

    async def close(self) -> int:
        assert self.process is not None
        try:
            return await asyncio.wait_for(self.process.wait(), 20)
        finally:
            asyncio.get_running_loop().remove_reader(self._master)
            os.close(self._master)
