"""A sandbox: full programs under bubblewrap, or a refusal where the system cannot isolate them."""

import asyncio
import dataclasses
import inspect
import itertools
import os
import platform
import random
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from opposable.domain.errors import ToolUnavailable
from opposable.safety.sandbox import bubblewrap, launcher
from opposable.safety.sandbox import process as processes
from opposable.safety.sandbox import seccomp as syscalls
from opposable.safety.sandbox.limits import Breach, Finished, Limits

_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - inside the sandbox
    "TMPDIR": "/tmp",  # noqa: S108 - inside the sandbox
    "LANG": "C.UTF-8",
    "PYTHONIOENCODING": "utf-8:replace",
    "PYTHONDONTWRITEBYTECODE": "1",
}
_USERS = range(2_000_000_000, 2_100_000_000)
"""Ids no system gives to people: one for each run, so that its limit of processes is its own."""
_SHELL_CODE = 128
"""bubblewrap tells that its program died of a signal as a shell does: 128 and the signal's number."""
_PROBE_SECONDS = 10.0


class Sandbox:
    """Runs programs with no network, no file but what is named, no variable of ours, and under limits.

    `at_once` bounds the runs under way. Where namespaces are forbidden (many containers) every run is refused, unless
    `allow_unprotected` is set by the owner: then limits, a private folder and an empty environment are all there is.
    """

    def __init__(self, limits: Limits | None = None, *, at_once: int = 4, allow_unprotected: bool = False) -> None:
        self.limits = limits or Limits()
        self._allow_unprotected = allow_unprotected
        self._gate = asyncio.Semaphore(at_once)
        self._probed: asyncio.Task[str] | None = None
        self._users = itertools.cycle(random.sample(_USERS, 1000))

    @property
    def python(self) -> str:
        """The Python program as the sandbox sees it."""
        return sys.executable if self._allow_unprotected else bubblewrap.python().program

    async def obstacle(self) -> str:
        """Why nothing can be isolated here, in a sentence; "" when it can."""
        if self._probed is None or (self._probed.done() and self._probed.cancelled()):
            self._probed = asyncio.create_task(self._probe())
        return await asyncio.shield(self._probed)

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        readable: Mapping[str, Path] | None = None,
        limits: Limits | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Finished:
        """Run a program; `command[0]` is its path inside, `readable` maps paths inside to the host's (read-only).

        Raises: `ToolUnavailable` where the system cannot isolate programs.
        """
        bounds = limits or self.limits
        shown = readable or {}
        given = _ENVIRONMENT | dict(environment or {})
        async with self._gate:
            if not await self.obstacle():
                return await self._isolated(command, stdin, shown, bounds, given)
            if not self._allow_unprotected:
                raise ToolUnavailable(await self.obstacle())
            return await self._unprotected(command, stdin, shown, bounds, given)

    async def _isolated(
        self,
        command: Sequence[str],
        stdin: bytes,
        readable: Mapping[str, Path],
        limits: Limits,
        environment: Mapping[str, str],
    ) -> Finished:
        launched = self._launched(bubblewrap.python().program, command, limits)
        finished = await _in_namespaces(launched, stdin, readable, limits, environment)
        return _signals_told(finished)

    async def _unprotected(
        self,
        command: Sequence[str],
        stdin: bytes,
        readable: Mapping[str, Path],
        limits: Limits,
        environment: Mapping[str, str],
    ) -> Finished:
        real = [_outside(word, readable) for word in command]
        with tempfile.TemporaryDirectory() as folder:
            return await processes.run(
                self._launched(sys.executable, real, limits, stay=True),
                stdin,
                seconds=limits.seconds,
                output_bytes=limits.output_bytes,
                environment={**environment, "HOME": folder, "TMPDIR": folder},
                folder=Path(folder),
            )

    def _launched(self, python: str, command: Sequence[str], limits: Limits, stay: bool = False) -> list[str]:
        bounds = {
            "RLIMIT_AS": limits.memory,
            "RLIMIT_CPU": limits.cpu_seconds,
            "RLIMIT_FSIZE": limits.file_bytes,
            "RLIMIT_NOFILE": limits.open_files,
            "RLIMIT_CORE": 0,
        }
        if not stay:  # outside a namespace the limit would count every process of the user
            bounds["RLIMIT_NPROC"] = limits.processes
        user = 0 if stay or os.geteuid() != 0 else next(self._users)
        return [python, "-I", "-S", "-c", _launcher(), str(user), orjson.dumps(bounds).decode(), *command]

    async def _probe(self) -> str:
        if not sys.platform.startswith("linux"):
            return "Programs can be isolated on Linux only (by bubblewrap); this is another system."
        program = bubblewrap.bwrap()
        if program is None:
            return 'Running scripts needs bubblewrap: pip install "opposable[code]" (or the system\'s own package).'
        if syscalls.program() is None:
            return f"Programs cannot be isolated here: no filter of system calls is known for {platform.machine()}."
        bounds = dataclasses.replace(self.limits, seconds=_PROBE_SECONDS)
        python = bubblewrap.python().program
        try:
            told = await _in_namespaces(
                self._launched(python, [python, "-c", ""], bounds), b"", {}, bounds, _ENVIRONMENT
            )
        except OSError as error:
            return f"Programs cannot be isolated here: bubblewrap does not start ({error.strerror})."
        if told.exit_code == 0:
            return ""
        said = (told.stderr.strip().splitlines() or ["no reason was given"])[-1]
        return (
            f"Programs cannot be isolated here, so none is run ({said}). The system must allow namespaces: user"
            " namespaces for an ordinary user, or CAP_SYS_ADMIN and an open seccomp profile for root in a container."
        )


async def _in_namespaces(
    launched: Sequence[str],
    stdin: bytes,
    readable: Mapping[str, Path],
    limits: Limits,
    environment: Mapping[str, str],
) -> Finished:
    program, filtered = bubblewrap.bwrap(), syscalls.program()
    assert program is not None
    assert filtered is not None
    seccomp = os.memfd_create("seccomp")
    try:
        os.write(seccomp, filtered)
        os.lseek(seccomp, 0, os.SEEK_SET)
        around = bubblewrap.command(program, limits.scratch_bytes, readable, environment, seccomp)
        return await processes.run(
            [*around, *launched],
            stdin,
            seconds=limits.seconds,
            output_bytes=limits.output_bytes,
            environment={},
            descriptors=[seccomp],
        )
    finally:
        os.close(seccomp)


def _launcher() -> str:
    return inspect.getsource(launcher)


def _outside(word: str, readable: Mapping[str, Path]) -> str:
    """A path inside as the host's own, where it is one that was named."""
    for inside, path in readable.items():
        if word == inside:
            return str(path)
        if word.startswith(inside + "/"):
            return str(path / word[len(inside) + 1 :])
    return word


def _signals_told(finished: Finished) -> Finished:
    code = finished.exit_code
    if code is None or code <= _SHELL_CODE or code - _SHELL_CODE not in {signal.SIGKILL, signal.SIGXCPU}:
        return finished
    breach: Breach = "cpu" if code - _SHELL_CODE == signal.SIGXCPU else "killed"
    return dataclasses.replace(finished, exit_code=None, breach=breach)
