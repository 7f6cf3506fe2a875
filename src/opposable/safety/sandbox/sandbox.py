"""The sandbox, which runs programs under bubblewrap."""

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
from opposable.safety.sandbox import bubblewrap, launcher, seccomp
from opposable.safety.sandbox.limits import Breach, ProcessResult, SandboxLimits
from opposable.safety.sandbox.process import run_process

_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - inside the sandbox
    "TMPDIR": "/tmp",  # noqa: S108 - inside the sandbox
    "LANG": "C.UTF-8",
    "PYTHONIOENCODING": "utf-8:replace",
    "PYTHONDONTWRITEBYTECODE": "1",
}
_USER_IDS = range(2_000_000_000, 2_100_000_000)
"""User ids that no system assigns; each run has its own, and so its own limit of processes."""
_SIGNAL_EXIT_BASE = 128
"""bubblewrap reports death by a signal as a shell does: 128 plus the number of the signal."""
_PROBE_SECONDS = 10.0


class Sandbox:
    """A sandbox for programs: no network, named files only, limits.

    Where the system forbids namespaces, as in many containers, every run is refused.

    Args:
        limits: Limits of a run that sets none.
        max_concurrent: Number of concurrent runs.
        allow_unprotected: Run without isolation where namespaces are forbidden. Then only the limits, a
            private folder and the empty environment apply.
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
        """Path of the Python program in the sandbox."""
        return bubblewrap.find_python().program

    async def get_isolation_problem(self) -> str:
        """Return why this system cannot isolate programs, "" where it can.

        A problem may be temporary, such as too many open files: each call probes again until it finds none.
        """
        task = self._probe_task
        if task is None or (task.done() and (task.cancelled() or task.exception() or task.result())):
            task = self._probe_task = asyncio.create_task(self._probe_isolation())
        return await asyncio.shield(task)

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        read_only_mounts: Mapping[str, Path] = {},
        limits: SandboxLimits | None = None,
    ) -> ProcessResult:
        """Run a program in the sandbox.

        Args:
            command: The program, by its path inside, and its arguments.
            stdin: Input of the program.
            read_only_mounts: Files or folders of the host by their path inside.
            limits: Limits of this run (default: those of the sandbox).

        Raises:
            ToolUnavailable: The system cannot isolate programs.
        """
        limits = limits or self.limits
        async with self._semaphore:
            problem = await self.get_isolation_problem()
            if not problem:
                launch_command = self._build_launch_command(self.python_program, command, limits)
                return _map_signal_exit(await _run_in_namespaces(launch_command, stdin, read_only_mounts, limits))
            if not self._allow_unprotected:
                raise ToolUnavailable(problem)
            return await self._run_unprotected(command, stdin, read_only_mounts, limits)

    async def _run_unprotected(
        self, command: Sequence[str], stdin: bytes, read_only_mounts: Mapping[str, Path], limits: SandboxLimits
    ) -> ProcessResult:
        host_paths = {self.python_program: Path(sys.executable), **read_only_mounts}
        host_command = [_to_host_path(word, host_paths) for word in command]
        with tempfile.TemporaryDirectory() as folder:
            return await run_process(
                self._build_launch_command(sys.executable, host_command, limits, unprotected=True),
                stdin,
                seconds=limits.seconds,
                output_bytes=limits.output_bytes,
                environment={**_ENVIRONMENT, "HOME": folder, "TMPDIR": folder},
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
        if not unprotected:  # without a namespace the limit counts every process of the user
            bounds["RLIMIT_NPROC"] = limits.processes
        user = 0 if unprotected or os.geteuid() != 0 else next(self._user_ids)
        return [
            python,
            "-I",
            "-S",
            "-c",
            inspect.getsource(launcher),
            str(user),
            orjson.dumps(bounds).decode(),
            *command,
        ]

    async def _probe_isolation(self) -> str:
        if not sys.platform.startswith("linux"):
            return "Programs can be isolated on Linux only (by bubblewrap); this is another system."
        if bubblewrap.find_bubblewrap() is None:
            return 'Running scripts needs bubblewrap: pip install "opposable[code]" (or the system\'s own package).'
        if seccomp.build_filter() is None:
            return f"Programs cannot be isolated here: no filter of system calls is known for {platform.machine()}."
        bounds = dataclasses.replace(self.limits, seconds=_PROBE_SECONDS)
        python = self.python_program
        try:
            result = await _run_in_namespaces(
                self._build_launch_command(python, [python, "-c", ""], bounds), b"", {}, bounds
            )
        except OSError as error:
            return f"Programs cannot be isolated here: bubblewrap does not start ({error.strerror})."
        if result.exit_code == 0:
            return ""
        reason = (result.stderr.strip().splitlines() or ["no reason was given"])[-1]
        return (
            f"Programs cannot be isolated here, so none is run ({reason}). The system must allow namespaces: user"
            " namespaces for an ordinary user, or CAP_SYS_ADMIN and an open seccomp profile for root in a container."
        )


async def _run_in_namespaces(
    command: Sequence[str], stdin: bytes, read_only_mounts: Mapping[str, Path], limits: SandboxLimits
) -> ProcessResult:
    program, syscall_filter = bubblewrap.find_bubblewrap(), seccomp.build_filter()
    assert program is not None
    assert syscall_filter is not None
    filter_fd = os.memfd_create("seccomp")
    try:
        os.write(filter_fd, syscall_filter)
        os.lseek(filter_fd, 0, os.SEEK_SET)
        prefix = bubblewrap.build_command(program, limits.scratch_bytes, read_only_mounts, _ENVIRONMENT, filter_fd)
        return await run_process(
            [*prefix, *command],
            stdin,
            seconds=limits.seconds,
            output_bytes=limits.output_bytes,
            environment={},
            inherited_fds=[filter_fd],
        )
    finally:
        os.close(filter_fd)


def _to_host_path(word: str, host_paths: Mapping[str, Path]) -> str:
    """Return the path on the host of a path inside, where it is mounted."""
    for inside, path in host_paths.items():
        if word == inside:
            return str(path)
        if word.startswith(inside + "/"):
            return str(path / word[len(inside) + 1 :])
    return word


def _map_signal_exit(result: ProcessResult) -> ProcessResult:
    """Return a result whose exit code reports a signal of a limit as a breach instead."""
    code = result.exit_code
    if code is None or code <= _SIGNAL_EXIT_BASE or code - _SIGNAL_EXIT_BASE not in {signal.SIGKILL, signal.SIGXCPU}:
        return result
    breach: Breach = "cpu" if code - _SIGNAL_EXIT_BASE == signal.SIGXCPU else "killed"
    return dataclasses.replace(result, exit_code=None, breach=breach)
