"""The command `doctor`, and the question before a large download."""

import asyncio
import os
from pathlib import Path

import pytest
from aiohttp import web
from tests.cli.program import NOWHERE, needs_posix, run_program, start_program
from tests.http_server import serve_aiohttp_app
from tests.models.chat_server import build_completion, chat_server
from tests.models.package_server import PIP_SETTINGS

pytestmark = pytest.mark.anyio


async def test_a_missing_model_is_reported_with_the_command_that_fetches_it(tmp_path: Path) -> None:
    done = await run_program(tmp_path, "doctor")
    assert (done.code, done.err) == (1, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("✓ opposable: ")
    assert lines[1:3] == [
        "✗ model: local: not downloaded yet",
        "  → opposable models pull (1.1 GB), or choose another with OPPOSABLE_MODEL or --model.",
    ]
    assert f"– store: {tmp_path}/cache/opposable.sqlite: not created yet" in done.out
    assert not (tmp_path / "cache").exists()


async def test_a_folder_that_cannot_hold_the_store_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = await run_program(tmp_path, "doctor", "--json", env={"OPPOSABLE_HOME": str(tmp_path / "file" / "home")})
    [store] = [check for check in done.json["checks"] if check["name"] == "store"]
    assert (done.code, store["state"], f"cannot write to {tmp_path}/file" in store["detail"]) == (1, "failed", True)


async def test_a_server_that_answers_is_fine_and_one_that_does_not_is_reported(tmp_path: Path) -> None:
    async with chat_server(build_completion("hi")) as server:
        fine, lost = await asyncio.gather(
            run_program(tmp_path, "doctor", "--json", "--model", f"{server.url}#m"),
            run_program(tmp_path, "doctor", "--json", "--model", NOWHERE),
        )
    assert (fine.code, fine.json["checks"][1]["state"]) == (0, "ok")
    assert (lost.code, lost.json["checks"][1]["advice"]) == (1, "Start the server at 127.0.0.1, or check the URL.")


async def test_a_server_that_accepts_and_never_answers_is_reported(tmp_path: Path) -> None:
    async def wait(request: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    app = web.Application()
    app.router.add_get("/v1/models", wait)
    async with serve_aiohttp_app(app, handler_cancellation=True) as url:
        name = f"{url}/v1#m"
        done = await run_program(tmp_path, "doctor", "--json", "--model", name)
    assert (done.code, done.json["checks"][1]["detail"]) == (1, f"{name}: no answer")


@pytest.mark.parametrize("password", ["secret", "a/secret", "a[secret", "a?secret"])
async def test_a_missing_key_and_the_password_of_the_store(tmp_path: Path, password: str) -> None:
    url = f"postgresql://me:{password}@127.0.0.1:9/none?connect_timeout=1"
    env = {"OPPOSABLE_DATABASE_URL": url, "OPPOSABLE_MODEL": "gpt-5"}
    done = await run_program(tmp_path, "doctor", env=env)
    assert done.code == 1
    assert "openai:gpt-5 needs an API key. Set the environment variable OPENAI_API_KEY." in done.out
    assert "✗ store: postgresql://127.0.0.1:9/none" in done.out
    assert "secret" not in done.out + done.err


async def test_a_script_downloads_the_model_only_with_its_option(tmp_path: Path) -> None:
    for command in (("run", "hi"), ("run", "hi", "--yes"), ("chat",), ("chat", "--yes"), ("serve",)):
        done = await run_program(tmp_path, *command)
        assert (done.code, done.out) == (1, "")
        assert "The embedded model is not on this machine. Download it (1.1 GB, once) with: " in done.err
    env = {**PIP_SETTINGS, "PIP_INDEX_URL": "http://127.0.0.1:9/simple"}
    done = await run_program(tmp_path, "run", "hi", "--download", env=env)
    assert done.code == 1
    assert "Connection refused" in done.err


@needs_posix
async def test_a_person_is_asked_before_the_download(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    process = await start_program(tmp_path, "run", "hi", stdin=theirs)
    os.close(theirs)
    os.write(ours, b"n\n")
    _, err = await process.communicate()
    os.close(ours)
    assert process.returncode == 1
    assert b"Download it now (1.1 GB, once)? [y/N]" in err
    assert b"was not downloaded" in err
