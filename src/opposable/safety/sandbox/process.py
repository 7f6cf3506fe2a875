"""Execution of a program with bounded output and a process group."""

import asyncio
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from opposable.safety.sandbox.limits import Breach, ProcessResult

_READ_BYTES = 65536
_START_SECONDS = 5.0
_GRACE_SECONDS = 1.0
"""Time to read the pipes of a killed program."""


async def run_process(
    command: Sequence[str],
    stdin: bytes,
    *,
    seconds: float,
    output_bytes: int,
    environment: Mapping[str, str],
    folder: Path | None = None,
    inherited_fds: Sequence[int] = (),
) -> ProcessResult:
    """Run `command` in its own process group.

    The group is killed at the end, at a limit and on cancellation.

    Raises:
        OSError: The program cannot be started.
    """
    started = time.perf_counter()
    start = asyncio.create_task(
        _start_process(command, env=dict(environment), cwd=folder, pass_fds=tuple(inherited_fds))
    )
    try:
        process = await asyncio.shield(start)
    except asyncio.CancelledError:  # asyncio would kill the program, but not what it has started
        start.add_done_callback(_kill_started_group)
        await asyncio.wait({start})  # the caller closes the files that the program inherits
        raise
    out, err = _BoundedOutput(output_bytes), _BoundedOutput(output_bytes)
    is_full = asyncio.Event()
    tasks = _start_transfers(process, stdin, out, err, is_full)
    breach: Breach | None = None
    try:
        breach = await _wait_for_end(process, is_full, seconds)
    finally:
        _kill_group(process.pid)
        await asyncio.shield(_drain_and_wait(process, tasks))
    code = process.returncode
    if breach is None and code is not None and code < 0:
        breach = "cpu" if -code == signal.SIGXCPU else "killed"
    exit_code = None if breach else code
    return ProcessResult(exit_code, out.decode(), err.decode(), breach, round(time.perf_counter() - started, 4))


async def _start_process(command: Sequence[str], **options: Any) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    async with asyncio.timeout(_START_SECONDS):  # Python 3.11 hangs if the end of `asyncio.run` cancels the start
        return await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, **options
        )


def _kill_started_group(start: asyncio.Task[asyncio.subprocess.Process]) -> None:
    if not start.cancelled() and start.exception() is None:
        _kill_group(start.result().pid)


class _BoundedOutput:
    """The first `max_bytes` bytes of a stream."""

    def __init__(self, max_bytes: int) -> None:
        self._remaining_bytes = max_bytes
        self._chunks: list[bytes] = []

    def append(self, chunk: bytes) -> bool:
        """Store what fits; return whether all of it did."""
        fits = len(chunk) <= self._remaining_bytes
        if self._remaining_bytes:
            self._chunks.append(chunk[: self._remaining_bytes])
            self._remaining_bytes = max(0, self._remaining_bytes - len(chunk))
        return fits

    def decode(self) -> str:
        return b"".join(self._chunks).decode("utf-8", "replace")


def _start_transfers(
    process: asyncio.subprocess.Process, stdin: bytes, out: _BoundedOutput, err: _BoundedOutput, is_full: asyncio.Event
) -> list[asyncio.Task[None]]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    return [
        asyncio.create_task(_feed_stdin(process.stdin, stdin)),
        asyncio.create_task(_read_output(process.stdout, out, is_full)),
        asyncio.create_task(_read_output(process.stderr, err, is_full)),
    ]


async def _wait_for_end(process: asyncio.subprocess.Process, is_full: asyncio.Event, seconds: float) -> Breach | None:
    waiting = {asyncio.create_task(process.wait()), asyncio.create_task(is_full.wait())}
    try:
        done, _ = await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
    if is_full.is_set():
        return "output"
    return None if done else "time"


async def _drain_and_wait(process: asyncio.subprocess.Process, tasks: list[asyncio.Task[None]]) -> None:
    """Read the remaining output of a killed program, and wait for its end."""
    await asyncio.wait(tasks, timeout=_GRACE_SECONDS)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    with suppress(TimeoutError):  # a child that left the group may hold the pipes open
        await asyncio.wait_for(process.wait(), _GRACE_SECONDS)


async def _feed_stdin(stream: asyncio.StreamWriter, content: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # the program may not read its input
        stream.write(content)
        await stream.drain()
    stream.close()


async def _read_output(stream: asyncio.StreamReader, output: _BoundedOutput, is_full: asyncio.Event) -> None:
    while chunk := await stream.read(_READ_BYTES):
        if not output.append(chunk):
            is_full.set()  # the loop continues, so that the program can write until it is killed


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
