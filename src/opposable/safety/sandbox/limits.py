"""Resource limits of a sandboxed program, and the result of its run."""

import re
from dataclasses import dataclass
from typing import Literal

Breach = Literal["time", "cpu", "output", "killed"]
"""Why a program was stopped: wall time, CPU time, too much output, or a signal."""

_TRACEBACK_STACK = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits of one run.

    Attributes:
        seconds: Wall time.
        cpu_seconds: CPU time of each process.
        memory_bytes: Address space of each process.
        processes: Number of concurrent processes.
        open_files: Open files of each process.
        file_bytes: Size of the largest file.
        scratch_bytes: Size of the private folder.
        output_bytes: Size of stdout and of stderr.
    """

    seconds: float = 30.0
    cpu_seconds: int = 20
    memory_bytes: int = 512 * 2**20
    processes: int = 16
    open_files: int = 64
    file_bytes: int = 32 * 2**20
    scratch_bytes: int = 64 * 2**20
    output_bytes: int = 200_000


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The result of a run.

    `exit_code` is None where the program was stopped, for the reason `breach`.
    """

    exit_code: int | None
    stdout: str
    stderr: str
    breach: Breach | None = None
    seconds: float = 0.0

    @property
    def error_text(self) -> str:
        """The standard error without the stack of each traceback of Python."""
        return _TRACEBACK_STACK.sub("", self.stderr).strip()
