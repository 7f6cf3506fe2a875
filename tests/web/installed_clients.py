"""Clients that the tests install themselves, each in a folder of its own that later sessions and parallel workers use too."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from filelock import FileLock

INSTALL_SECONDS = 300


def install_python_packages(name: str, *requirements: str) -> Path:
    """The Python of an environment with these packages; the test is skipped where they cannot be installed."""
    folder = _get_folder(name)
    python = folder / "bin" / "python"
    # An own pip and the bytecode of modules that no test imports would take half a minute of processor time.
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile"]
    create = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    _install(folder, [create, [*pip, "--only-binary", ":all:", *requirements]])
    return python


def install_npm_package(package: str) -> Path:
    """The folder of an npm package and its programs; the test is skipped where it cannot be installed."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed.")
    folder = _get_folder(re.sub(r"\W+", "-", package))
    _install(folder, [["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), package]])
    return folder / "node_modules"


def _get_folder(name: str) -> Path:
    return Path(tempfile.gettempdir()) / f"opposable-tests-{name}"


def _install(folder: Path, commands: list[list[str]]) -> None:
    marker = folder / "installed.txt"
    with FileLock(f"{folder}.lock"):
        if marker.exists() and marker.read_text() == str(commands):
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for command in commands:
            try:
                subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_SECONDS)
            except (subprocess.SubprocessError, OSError) as error:
                pytest.skip(f"{command[-1]} cannot be installed: {error}")
        marker.write_text(str(commands))
