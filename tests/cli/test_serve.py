"""The command `serve`, as a process of its own."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
from urllib.parse import urlsplit

import aiohttp
import pytest
from tests.cli.program import respond_endlessly
from tests.models.chat_server import build_completion, chat_server
from tests.waiting import wait_until
from tests.web.test_sse_response import BODY
from typer.testing import CliRunner

from opposable.cli import cli
from opposable.cli.serve import read_service_settings
from opposable.web import http_server

pytestmark = pytest.mark.anyio


@contextlib.asynccontextmanager
async def start_server(*args, **env):
    """Start the process; yields it and its first line on standard error."""
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
async def serve(*args, **env):
    """Start the process; yields it and its base URL."""
    async with start_server(*args, "--port", "0", **env) as (process, line):
        assert " is served at " in line, line
        yield process, line.split()[-1]


async def complete_chat(url, key="none"):
    """Return the status and the text of a completion."""
    async with (
        aiohttp.ClientSession(headers={"authorization": f"Bearer {key}"}) as session,
        session.post(f"{url}/chat/completions", json=BODY | {"model": "qwen"}) as response,
    ):
        body = await response.json()
        return response.status, body["choices"][0]["message"]["content"] if "choices" in body else ""


def accepts_connections(url):
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", urlsplit(url).port)) == 0


def test_url_of_the_hosting_platform_counts_from_the_environment_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("DATABASE_URL=sqlite:///web.sqlite\nREDIS_URL=redis://web\n")
    for name in ("OPPOSABLE_DATABASE_URL", "OPPOSABLE_REDIS_URL", "DATABASE_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)

    def read_urls():
        settings = read_service_settings()
        return settings.database_url.get_secret_value(), settings.redis_url.get_secret_value()

    assert read_urls() == ("", "")
    monkeypatch.setenv("DATABASE_URL", "postgresql://platform/db")
    monkeypatch.setenv("REDIS_URL", "redis://platform")
    assert read_urls() == ("postgresql://platform/db", "redis://platform")
    monkeypatch.setenv("OPPOSABLE_DATABASE_URL", "postgresql://own/db")
    assert read_urls() == ("postgresql://own/db", "redis://platform")


@pytest.mark.parametrize(("choice", "assist"), [((), None), (("--assist", "on"), True), (("--assist", "off"), False)])
def test_assistance_is_switched_for_all_models(monkeypatch, choice, assist):
    served = []
    monkeypatch.delenv("OPPOSABLE_ASSIST", raising=False)

    def record_worker(run_worker, listen_socket, *_):
        listen_socket.close()
        served.append(run_worker)

    monkeypatch.setattr("opposable.web.multiprocess.run_workers", record_worker)
    done = CliRunner().invoke(cli, ["serve", "--only", "skills", "--port", "0", "--workers", "2", *choice])
    assert done.exit_code == 0, done.output
    settings = []
    monkeypatch.setattr("opposable.cli.serve._serve_until_stopped", record_settings(settings))
    with socket.socket() as listen_socket:
        served[0](listen_socket, lambda: None)
    assert [one.assist for one in settings] == [assist]


def record_settings(settings):
    async def record(first, *_):
        settings.append(first)

    return record


async def test_every_line_of_the_log_is_json_on_demand():
    async with (
        chat_server(build_completion("hello")) as backend,
        start_server("--port", "0", "--log-format", "json", "--model", f"{backend.url}#qwen") as (process, line),
    ):
        await complete_chat(json.loads(line)["url"])
        process.send_signal(signal.SIGINT)
        rest = (await asyncio.wait_for(process.stderr.read(), 30)).decode().splitlines()
        messages = [json.loads(one)["message"] for one in (line, *rest)]
    assert " is served at http://127.0.0.1:" in messages[0]
    assert messages[1].startswith("The console is at http://127.0.0.1:")
    assert messages[2:] == ["request ended", "Stopped."]


async def test_a_key_of_the_configuration_that_does_not_exist_is_reported(tmp_path):
    config = tmp_path / "gateway.yaml"
    config.write_text('{"models": [{"name": "m", "model": "http://127.0.0.1:9/v1#m"}], "keys": {"front": ["m"]}}')
    async with start_server("--port", "0", "--config", str(config)) as (_, line):
        assert line.startswith("Warning: no API key is named 'front'")


@pytest.mark.parametrize("stream", [True, False])
async def test_a_stop_during_an_answer_ends_it_with_an_error_and_no_traceback(stream):
    async with (
        chat_server(respond_endlessly) as upstream,
        serve("--model", f"{upstream.url}#qwen") as (process, url),
        aiohttp.ClientSession(url.removesuffix("/v1")) as session,
    ):
        asking = asyncio.create_task(session.post("/api/agent", json={"message": "hi", "stream": stream}))
        await wait_until(lambda: upstream.bodies)
        response = await asking if stream else None
        process.send_signal(signal.SIGTERM)
        if stream:
            text = (await asyncio.wait_for(response.read(), 20)).decode()
            assert (
                'event: error\ndata: {"error":{"kind":"model_unavailable","message":"The service is stopping.' in text
            )
            assert text.endswith("data: [DONE]\n\n")
        else:
            response = await asyncio.wait_for(asking, 20)
            assert (response.status, (await response.json())["error"]["kind"]) == (503, "stopping")
        rest = (await asyncio.wait_for(process.stderr.read(), 20)).decode()
        assert await process.wait() == 0
    assert "Traceback" not in rest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_stops_the_server_with_exit_code_0(number):
    async with (
        chat_server(build_completion("hello")) as upstream,
        serve("--model", f"{upstream.url}#qwen") as (process, url),
    ):
        assert await complete_chat(url) == (200, "hello")
        process.send_signal(number)
        rest = (await asyncio.wait_for(process.stderr.read(), 10)).decode()
        assert await process.wait() == 0
    _console_line, request_line, last_line = rest.splitlines()
    assert "[info] request ended" in request_line
    assert last_line == "Stopped."


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_answers_in_progress_are_finished_before_the_server_stops(number):
    has_started = asyncio.Event()

    async def respond_slowly(request):
        has_started.set()
        await asyncio.sleep(0.5)
        return await build_completion("late but whole")(request)

    async with chat_server(respond_slowly) as upstream, serve("--model", f"{upstream.url}#qwen") as (process, url):
        completion = asyncio.create_task(complete_chat(url))
        await has_started.wait()
        process.send_signal(number)
        assert await completion == (200, "late but whole")
        rest = (await asyncio.wait_for(process.stderr.read(), 20)).decode()
        assert await process.wait() == 0
    assert "Traceback" not in rest


async def test_a_second_ctrl_c_stops_the_server_at_once_without_a_traceback():
    async with (
        chat_server(respond_endlessly) as upstream,
        serve("--model", f"{upstream.url}#qwen") as (process, url),
    ):
        completion = asyncio.create_task(complete_chat(url))
        await wait_until(lambda: bool(upstream.bodies))
        process.send_signal(signal.SIGINT)
        await wait_until(lambda: not accepts_connections(url))
        process.send_signal(signal.SIGINT)
        rest = (await asyncio.wait_for(process.stderr.read(), 20)).decode()
        assert await process.wait() == 0
        await asyncio.wait({completion})
    assert "Traceback" not in rest
    assert rest.endswith("Stopped.\n")


@pytest.mark.parametrize(("name", "args"), [("OPPOSABLE_SERVE_KEY", ()), ("MY_KEY", ("--api-key-env", "MY_KEY"))])
async def test_the_key_is_read_from_the_environment(name, args):
    async with (
        chat_server(build_completion("hello")) as upstream,
        serve("--model", f"{upstream.url}#qwen", *args, **{name: "sesame"}) as (_, url),
    ):
        assert await complete_chat(url, "simsalabim") == (401, "")
        assert await complete_chat(url, "sesame") == (200, "hello")


INVALID = {
    "other machines without a key": (
        ("--host", "0.0.0.0"),
        "needs an API key, because other hosts can connect. Create one with `opposable keys create`",
    ),
    "an empty variable": (("--api-key-env", "NOBODY"), "NOBODY is not set. Set it to the API key."),
    "an unknown model": (("--model", "nothing"), "There is no model named 'nothing'"),
}


@pytest.mark.parametrize(("args", "sentence"), INVALID.values(), ids=INVALID)
async def test_invalid_options_are_reported_in_one_sentence(args, sentence):
    async with start_server("--model", "http://127.0.0.1:9/v1#qwen", *args) as (process, line):
        assert sentence in line
        assert await process.stderr.read() == b""
        assert await process.wait() == 2


async def test_a_port_in_use_is_reported():
    async with serve("--model", "http://127.0.0.1:9/v1#qwen") as (_, url):
        port = url.removesuffix("/v1").rpartition(":")[2]
        async with start_server("--model", "http://127.0.0.1:9/v1#qwen", "--port", port) as (process, line):
            assert await process.wait() == 2
    assert f"Cannot listen on 127.0.0.1:{port}: Address already in use." in line


async def test_deltas_are_sent_at_once():
    """Without TCP_NODELAY, each delta waits 40 ms for the acknowledgement of the previous one."""
    with http_server.open_listening_socket("127.0.0.1", 0) as listening:
        assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


async def test_a_skill_host_needs_no_model():
    async with (
        serve("--only", "skills", OPPOSABLE_MODEL="local") as (_, url),
        aiohttp.ClientSession(url) as session,
    ):
        async with session.get("/skills") as response:
            assert "calculator" in [skill["skill_id"] for skill in (await response.json())["skills"]]
        for method, path in (("GET", "/"), ("POST", "/agent/chat"), ("POST", "/v1/chat/completions")):
            async with session.request(method, path, json={}) as response:
                assert (path, response.status) == (path, 404)


async def test_workers_that_stop_refuse_connections_at_once():
    async with (
        chat_server(respond_endlessly) as upstream,
        serve("--workers", "2", "--model", f"{upstream.url}#qwen") as (process, url),
        aiohttp.ClientSession(url.removesuffix("/v1")) as session,
    ):
        asking = asyncio.create_task(session.post("/api/agent", json={"message": "hi", "stream": False}))
        await wait_until(lambda: upstream.bodies)
        process.send_signal(signal.SIGHUP)
        await wait_until(lambda: not is_listening(url))
        assert not asking.done()
        async with await asyncio.wait_for(asking, 60) as response:
            assert response.status == 503


def is_listening(url):
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname, address.port), 1).close()
    except ConnectionRefusedError:
        return False
    return True
