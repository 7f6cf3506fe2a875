"""The metrics of a service with several processes are those of all of them."""

import asyncio
import os
import re
import signal
import sys

import aiohttp
import pytest
from tests.models.chat_server import build_completion, chat_server, respond_json
from tests.service.processes import get_worker_pids, serve_process, wait_for

pytestmark = pytest.mark.anyio

CHAT = {"model": "qwen", "messages": [{"role": "user", "content": "hi"}]}


def read_metric(text: str, name: str, **labels: str) -> float:
    """The sum of the samples with these labels."""
    samples = re.findall(rf"^{name}(?:\{{(.*?)\}})? (\S+)$", text, re.MULTILINE)
    wanted = {f'{key}="{value}"' for key, value in labels.items()}
    return sum(float(value) for found, value in samples if wanted <= set(found.split(",")))


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
async def test_every_process_returns_the_metrics_of_all(tmp_path):
    async with (
        chat_server(build_completion("hello")) as upstream,
        serve_process(tmp_path, f"{upstream.url}#qwen", "--workers", "2") as (process, url),
    ):
        base = url.removesuffix("/v1")

        async def request(path: str, body: object = None) -> str:
            """Send a request on a connection of its own, so that any process may accept it."""
            async with (
                aiohttp.ClientSession() as session,
                session.request("POST" if body else "GET", base + path, json=body) as response,
            ):
                assert response.status == 200, await response.text()
                return await response.text()

        await asyncio.gather(*(request("/api/tools/echo/call", {"arguments": {"text": "hi"}}) for _ in range(40)))
        await request("/v1/chat/completions", CHAT)
        texts = await asyncio.gather(*(request("/metrics") for _ in range(10)))
        assert {read_metric(text, "opposable_tool_calls_total", tool="echo") for text in texts} == {40}
        assert {read_metric(text, "opposable_model_replies_total", model="qwen") for text in texts} == {1}

        async def has_up_to_date_state() -> bool:
            text = await request("/metrics")
            return read_metric(text, "opposable_records_written") == 40 and "opposable_recorder_up 1.0" in text

        await wait_for(has_up_to_date_state)
        killed = get_worker_pids(process)[0]
        os.kill(killed, signal.SIGKILL)

        async def is_replaced() -> bool:
            pids = get_worker_pids(process)
            return killed not in pids and len(pids) == 2

        await wait_for(is_replaced)
        assert read_metric(await request("/metrics"), "opposable_tool_calls_total", tool="echo") == 40


async def test_failures_and_durations_of_models_are_counted(tmp_path):
    failure = respond_json({"error": {"message": "no such model"}}, 400)
    async with (
        chat_server(build_completion("hello"), failure) as upstream,
        serve_process(tmp_path, f"{upstream.url}#qwen") as (_, url),
        aiohttp.ClientSession(url.removesuffix("/v1")) as session,
    ):
        for path, body, status in (
            ("/v1/chat/completions", CHAT, 200),
            ("/v1/chat/completions", CHAT, 400),
            ("/agent/chat", {"message": "hi"}, 400),
        ):
            async with session.post(path, json=body) as response:
                assert response.status == status, await response.text()
        async with session.get("/metrics") as response:
            text = await response.text()
    assert read_metric(text, "opposable_model_replies_total", model="qwen") == 1
    assert read_metric(text, "opposable_model_failures_total", model="qwen", kind="model_rejected") == 2
    assert read_metric(text, "opposable_model_seconds_count", model="qwen") == 3
