"""`opposable serve`: the service as a process of its own."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile

import aiohttp
import pytest
from tests.models.chat_server import build_completion, chat_server
from tests.web.test_leaving import BODY

from opposable.web import server

pytestmark = pytest.mark.anyio


@contextlib.asynccontextmanager
async def started(*args, **env):
    """The process, once it has said its first line, and that line."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("OPPOSABLE_")}
    with tempfile.TemporaryDirectory() as home:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "opposable", "serve", *args),
            env=variables | {"OPPOSABLE_HOME": home} | env,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            yield process, (await asyncio.wait_for(process.stderr.readline(), 30)).decode()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            process._transport.close()


@contextlib.asynccontextmanager
async def service(*args, **env):
    """The process and its base URL."""
    async with started(*args, "--port", "0", **env) as (process, line):
        assert " is served at " in line, line
        yield process, line.split()[-1]


async def asked(url, key="none"):
    """The status and the text of an answer."""
    async with (
        aiohttp.ClientSession(headers={"authorization": f"Bearer {key}"}) as session,
        session.post(f"{url}/chat/completions", json=BODY | {"model": "qwen"}) as response,
    ):
        told = await response.json()
        return response.status, told["choices"][0]["message"]["content"] if "choices" in told else ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_it_serves_until_it_is_told_to_stop_and_ends_well(number):
    async with (
        chat_server(build_completion("hello")) as upstream,
        service("--model", f"{upstream.url}#qwen") as (process, url),
    ):
        assert await asked(url) == (200, "hello")
        process.send_signal(number)
        rest = (await asyncio.wait_for(process.stderr.read(), 10)).decode()
        assert await process.wait() == 0
    assert rest == "Stopped.\n"


async def test_answers_under_way_are_finished_when_it_stops():
    begun = asyncio.Event()

    async def slowly(request):
        begun.set()
        await asyncio.sleep(0.5)
        return await build_completion("late but whole")(request)

    async with chat_server(slowly) as upstream, service("--model", f"{upstream.url}#qwen") as (process, url):
        asking = asyncio.create_task(asked(url))
        await begun.wait()
        process.send_signal(signal.SIGTERM)
        assert await asking == (200, "late but whole")
        assert await asyncio.wait_for(process.wait(), 10) == 0


@pytest.mark.parametrize(("name", "args"), [("OPPOSABLE_SERVE_KEY", ()), ("MY_KEY", ("--api-key-env", "MY_KEY"))])
async def test_the_key_is_taken_from_the_environment(name, args):
    async with (
        chat_server(build_completion("hello")) as upstream,
        service("--model", f"{upstream.url}#qwen", *args, **{name: "sesame"}) as (_, url),
    ):
        assert await asked(url, "simsalabim") == (401, "")
        assert await asked(url, "sesame") == (200, "hello")


REFUSED = {
    "others without a key": (
        ("--host", "0.0.0.0"),
        "needs an API key: make one with `opposable keys create`, set OPPOSABLE_SERVE_KEY",
    ),
    "a variable that holds nothing": (("--api-key-env", "NOBODY"), "NOBODY is not set. Set it to the API key."),
    "an unknown model": (("--model", "nothing"), "There is no model named 'nothing'"),
}


@pytest.mark.parametrize(("args", "sentence"), REFUSED.values(), ids=REFUSED)
async def test_what_cannot_be_served_is_told_in_one_sentence(args, sentence):
    async with started("--model", "http://127.0.0.1:9/v1#qwen", *args) as (process, line):
        assert sentence in line
        assert await process.stderr.read() == b""
        assert await process.wait() == 2


async def test_a_port_that_is_taken_is_told():
    async with service("--model", "http://127.0.0.1:9/v1#qwen") as (_, url):
        port = url.removesuffix("/v1").rpartition(":")[2]
        async with started("--model", "http://127.0.0.1:9/v1#qwen", "--port", port) as (process, line):
            assert await process.wait() == 2
    assert f"Cannot listen on 127.0.0.1:{port}: Address already in use." in line


async def test_pieces_are_sent_at_once():
    """Without TCP_NODELAY, asyncio's own loop lets each wait 40 ms for the client to confirm the one before."""
    with server.open_listening_socket("127.0.0.1", 0) as listening:
        assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
