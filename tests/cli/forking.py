"""The command line in a process that is forked, not started: the modules of the commands are loaded once."""

import asyncio
import multiprocessing
import os
import runpy
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from pkgutil import iter_modules

from opposable import cli

PRELOADED = [__name__, *(module.name for module in iter_modules(cli.__path__, f"{cli.__name__}."))]


async def run_forked(
    args: Sequence[str | bytes], folder: Path, env: Mapping[str, str], stdin: bytes, within: float
) -> tuple[int, bytes, bytes]:
    """Return the exit code, the standard output and the standard error of `python -m opposable` in a real process.

    Python's fork server has one thread, and imports once what the modules of the commands import at their top. These
    modules themselves, and what a command imports later, are imported in its process.
    """
    loop, context = asyncio.get_running_loop(), multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    (its_in, to_in), (from_out, its_out), (from_err, its_err) = (context.Pipe(duplex=False) for _ in range(3))
    process = context.Process(target=_run_command_line, args=(args, folder, env, (its_in, its_out, its_err)))
    process.start()
    for stream in (its_in, its_out, its_err):
        stream.close()
    writer, _ = await loop.connect_write_pipe(asyncio.Protocol, to_in)
    writer.write(stdin)
    writer.write_eof()
    try:
        async with asyncio.timeout(within):
            out, err = await asyncio.gather(_read(from_out), _read(from_err))
    except BaseException:
        process.kill()
        raise
    finally:
        writer.close()
        await asyncio.to_thread(process.join, within)
        process.kill()  # if it closed its streams, but did not end
    assert process.exitcode is not None
    return process.exitcode, out, err


async def _read(stream: Connection) -> bytes:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), stream)
    try:
        return await reader.read()
    finally:
        transport.close()


def _run_command_line(
    args: Sequence[str | bytes], folder: Path, env: Mapping[str, str], streams: Sequence[Connection]
) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdin, sys.stdout = os.fdopen(0, encoding="utf-8"), os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.path.insert(0, str(folder))
    for name in [name for name in sys.modules if name.startswith(cli.__name__)]:
        del sys.modules[name]  # they have looked at the environment
    sys.argv[1:] = [os.fsdecode(arg) for arg in args]
    runpy.run_module("opposable", run_name="__main__", alter_sys=True)
