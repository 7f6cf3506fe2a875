"""How much a sandboxed program may use, and what came of it."""

from dataclasses import dataclass
from typing import Literal

Breach = Literal["time", "cpu", "output", "killed"]
"""What ended a program before its own end: the wall clock, processor time, too much output, or a signal."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Bounds of one run.

    `seconds` is wall time, `cpu_seconds` processor time of each process, `memory` bytes of address space of each
    process, `processes` how many at once, `file_bytes` the largest file, `scratch_bytes` the whole private folder,
    `output_bytes` what may be written to each of stdout and stderr.
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
    """What a program left: its exit code (None when it was stopped), what it wrote, and why it was stopped if it was."""

    exit_code: int | None
    stdout: str
    stderr: str
    breach: Breach | None = None
    seconds: float = 0.0
