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
from opposable.safety.sandbox.limits import Breach, ProcessResult, SandboxLimits

_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - inside the sandbox
    "TMPDIR": "/tmp",  # noqa: S108 - inside the sandbox
    "LANG": "C.UTF-8",
    "PYTHONIOENCODING": "utf-8:replace",
    "PYTHONDONTWRITEBYTECODE": "1",
}
_USER_IDS = range(2_000_000_000, 2_100_000_000)
"""Ids no system gives to people: one for each run, so that its limit of processes is its own."""
_SIGNAL_EXIT_BASE = 128
"""bubblewrap tells that its program died of a signal as a shell does: 128 and the signal's number."""
_PROBE_SECONDS = 10.0


class Sandbox:
    """Runs programs with no network, no file but what is named, no variable of ours, and under limits.

    `at_once` bounds the runs under way. Where namespaces are forbidden (many containers) every run is refused, unless
    `allow_unprotected` is set by the owner: then limits, a private folder and an empty environment are all there is.
    """

    def __init__(
        self, limits: SandboxLimits | None = None, *, max_concurrent: int = 4, allow_unprotected: bool = False
    ) -> None:
        self.limits = limits or SandboxLimits()
        self._allow_unprotected = allow_unprotected
        self._semaphore = asyncio.Semaphore(max_concurrent)
        self._probe_task: asyncio.Task[str] | None = None
        self._user_ids = itertools.cycle(random.sample(_USER_IDS, 1000))

    @property
    def python_program(self) -> str:
        """The Python program as the sandbox sees it."""
        return sys.executable if self._allow_unprotected else bubblewrap.find_python().program

    async def get_isolation_problem(self) -> str:
        """Why nothing can be isolated here, in a sentence; "" when it can."""
        if self._probe_task is None or (self._probe_task.done() and self._probe_task.cancelled()):
            self._probe_task = asyncio.create_task(self._probe_isolation())
        return await asyncio.shield(self._probe_task)

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        read_only_mounts: Mapping[str, Path] | None = None,
        limits: SandboxLimits | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> ProcessResult:
        """Run a program; `command[0]` is its path inside, `readable` maps paths inside to the host's (read-only).

        Raises: `ToolUnavailable` where the system cannot isolate programs.
        """
        bounds = limits or self.limits
        shown = read_only_mounts or {}
        given = _ENVIRONMENT | dict(environment or {})
        async with self._semaphore:
            if not await self.get_isolation_problem():
                return await self._run_isolated(command, stdin, shown, bounds, given)
            if not self._allow_unprotected:
                raise ToolUnavailable(await self.get_isolation_problem())
            return await self._run_unprotected(command, stdin, shown, bounds, given)

    async def _run_isolated(
        self,
        command: Sequence[str],
        stdin: bytes,
        read_only_mounts: Mapping[str, Path],
        limits: SandboxLimits,
        environment: Mapping[str, str],
    ) -> ProcessResult:
        launched = self._build_launch_command(bubblewrap.find_python().program, command, limits)
        finished = await _run_in_namespaces(launched, stdin, read_only_mounts, limits, environment)
        return _map_signal_exit(finished)

    async def _run_unprotected(
        self,
        command: Sequence[str],
        stdin: bytes,
        read_only_mounts: Mapping[str, Path],
        limits: SandboxLimits,
        environment: Mapping[str, str],
    ) -> ProcessResult:
        real = [_to_host_path(word, read_only_mounts) for word in command]
        with tempfile.TemporaryDirectory() as folder:
            return await processes.run_process(
                self._build_launch_command(sys.executable, real, limits, unprotected=True),
                stdin,
                seconds=limits.seconds,
                output_bytes=limits.output_bytes,
                environment={**environment, "HOME": folder, "TMPDIR": folder},
                folder=Path(folder),
            )

    def _build_launch_command(
        self, python: str, command: Sequence[str], limits: SandboxLimits, unprotected: bool = False
    ) -> list[str]:
        bounds = {
            "RLIMIT_AS": limits.memory_bytes,
            "RLIMIT_CPU": limits.cpu_seconds,
            "RLIMIT_FSIZE": limits.file_bytes,
            "RLIMIT_NOFILE": limits.open_files,
            "RLIMIT_CORE": 0,
        }
        if not unprotected:  # outside a namespace the limit would count every process of the user
            bounds["RLIMIT_NPROC"] = limits.processes
        user = 0 if unprotected or os.geteuid() != 0 else next(self._user_ids)
        return [python, "-I", "-S", "-c", _read_launcher_source(), str(user), orjson.dumps(bounds).decode(), *command]

    async def _probe_isolation(self) -> str:
        if not sys.platform.startswith("linux"):
            return "Programs can be isolated on Linux only (by bubblewrap); this is another system."
        program = bubblewrap.find_bubblewrap()
        if program is None:
            return 'Running scripts needs bubblewrap: pip install "opposable[code]" (or the system\'s own package).'
        if syscalls.build_filter() is None:
            return f"Programs cannot be isolated here: no filter of system calls is known for {platform.machine()}."
        bounds = dataclasses.replace(self.limits, seconds=_PROBE_SECONDS)
        python = bubblewrap.find_python().program
        try:
            told = await _run_in_namespaces(
                self._build_launch_command(python, [python, "-c", ""], bounds), b"", {}, bounds, _ENVIRONMENT
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


async def _run_in_namespaces(
    command: Sequence[str],
    stdin: bytes,
    read_only_mounts: Mapping[str, Path],
    limits: SandboxLimits,
    environment: Mapping[str, str],
) -> ProcessResult:
    program, filtered = bubblewrap.find_bubblewrap(), syscalls.build_filter()
    assert program is not None
    assert filtered is not None
    seccomp = os.memfd_create("seccomp")
    try:
        os.write(seccomp, filtered)
        os.lseek(seccomp, 0, os.SEEK_SET)
        around = bubblewrap.build_command(program, limits.scratch_bytes, read_only_mounts, environment, seccomp)
        return await processes.run_process(
            [*around, *command],
            stdin,
            seconds=limits.seconds,
            output_bytes=limits.output_bytes,
            environment={},
            inherited_fds=[seccomp],
        )
    finally:
        os.close(seccomp)


def _read_launcher_source() -> str:
    return inspect.getsource(launcher)


def _to_host_path(word: str, read_only_mounts: Mapping[str, Path]) -> str:
    """A path inside as the host's own, where it is one that was named."""
    for inside, path in read_only_mounts.items():
        if word == inside:
            return str(path)
        if word.startswith(inside + "/"):
            return str(path / word[len(inside) + 1 :])
    return word


def _map_signal_exit(finished: ProcessResult) -> ProcessResult:
    code = finished.exit_code
    if code is None or code <= _SIGNAL_EXIT_BASE or code - _SIGNAL_EXIT_BASE not in {signal.SIGKILL, signal.SIGXCPU}:
        return finished
    breach: Breach = "cpu" if code - _SIGNAL_EXIT_BASE == signal.SIGXCPU else "killed"
    return dataclasses.replace(finished, exit_code=None, breach=breach)
