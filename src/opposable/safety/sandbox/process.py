"""Starts a program, feeds it, reads what it writes up to a bound, and leaves none of its processes behind."""

import asyncio
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from opposable.safety.sandbox.limits import Breach, Finished

_PIECE = 65536
_GRACE = 1.0
"""Seconds a killed program's pipes are read on."""


async def run(
    command: Sequence[str],
    stdin: bytes,
    *,
    seconds: float,
    output_bytes: int,
    environment: Mapping[str, str],
    folder: Path | None = None,
    descriptors: Sequence[int] = (),
) -> Finished:
    """Run `command` in a process group of its own, killed whole at the end, at a breach and when the caller leaves.

    Raises: `OSError` when the program cannot be started.
    """
    started = time.perf_counter()
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        env=dict(environment),
        cwd=folder,
        start_new_session=True,
        pass_fds=tuple(descriptors),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = _Kept(output_bytes), _Kept(output_bytes)
    full = asyncio.Event()
    tasks = [
        asyncio.create_task(_fed(process.stdin, stdin)),
        asyncio.create_task(_read(process.stdout, out, full)),
        asyncio.create_task(_read(process.stderr, err, full)),
    ]
    breach: Breach | None = None
    try:
        breach = await _ended(process, full, seconds)
    finally:
        _kill(process.pid)
        await asyncio.shield(_left(process, tasks))
    code = process.returncode
    if breach is None and code is not None and code < 0:
        breach = "cpu" if -code == signal.SIGXCPU else "killed"
    exit_code = None if breach else code
    return Finished(exit_code, out.text(), err.text(), breach, round(time.perf_counter() - started, 4))


class _Kept:
    """The first bytes of a stream, up to `most`."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._pieces: list[bytes] = []

    def take(self, piece: bytes) -> bool:
        """Keep what fits; whether all of it did."""
        fits = len(piece) <= self._left
        if self._left:
            self._pieces.append(piece[: self._left])
            self._left = max(0, self._left - len(piece))
        return fits

    def text(self) -> str:
        return b"".join(self._pieces).decode("utf-8", "replace")


async def _ended(process: asyncio.subprocess.Process, full: asyncio.Event, seconds: float) -> Breach | None:
    waiting = {asyncio.create_task(process.wait()), asyncio.create_task(full.wait())}
    try:
        done, _ = await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
    if full.is_set():
        return "output"
    return None if done else "time"


async def _left(process: asyncio.subprocess.Process, tasks: list[asyncio.Task[None]]) -> None:
    """Read a killed program's last words, and wait for its end."""
    await asyncio.wait(tasks, timeout=_GRACE)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    with suppress(TimeoutError):  # a child that left the group may hold the pipes
        await asyncio.wait_for(process.wait(), _GRACE)


async def _fed(stream: asyncio.StreamWriter, content: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # a program need not read what it is given
        stream.write(content)
        await stream.drain()
    stream.close()


async def _read(stream: asyncio.StreamReader, kept: _Kept, full: asyncio.Event) -> None:
    while piece := await stream.read(_PIECE):
        if not kept.take(piece):
            full.set()  # and read on, so that the pipe empties until the program is dead


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
