"""Requests that arrive too slowly end with 408, whatever part of them is slow."""

import asyncio
import contextlib

import pytest
from fastapi import FastAPI, Request
from starlette.responses import StreamingResponse

from opposable.web import http_protocol, http_server
from opposable.web.http_server import serve_in_background

pytestmark = pytest.mark.anyio

HEAD = b"POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\n"
app = FastAPI()


@app.post("/echo")
async def echo(request: Request) -> int:
    return len(await request.body())


@app.post("/stream")
async def stream() -> StreamingResponse:
    async def write():
        yield "begun"
        await asyncio.sleep(1.5)
        yield " ended"

    return StreamingResponse(write())


@pytest.fixture
async def connection(monkeypatch):
    monkeypatch.setattr(http_protocol, "READ_SECONDS", 1.0)
    async with serve_in_background(app) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2].partition("/")[0]))
        yield reader, writer
        writer.close()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", b""),
        (HEAD, b"HTTP/1.1 408 "),
        (HEAD + b"content-length: 10\r\n\r\n12345", b"HTTP/1.1 408 "),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\n12345\r\n", b"HTTP/1.1 408 "),
    ],
    ids=["nothing", "headers", "body", "chunked body"],
)
async def test_a_request_that_stops_is_ended(connection, sent, status):
    reader, writer = connection
    writer.write(sent)
    answer = await asyncio.wait_for(reader.read(), 10)
    assert answer.startswith(status)
    assert bool(answer) == bool(status)


@pytest.mark.parametrize("sent", [HEAD + b"x-slow: ", HEAD + b"content-length: 1000\r\n\r\n"], ids=["headers", "body"])
async def test_a_request_that_trickles_is_ended(connection, sent):
    reader, writer = connection
    writer.write(sent)
    answer = asyncio.create_task(reader.readline())
    async with asyncio.timeout(10):
        while not answer.done():
            writer.write(b"a")
            await asyncio.sleep(0.05)
        assert (await answer).startswith(b"HTTP/1.1 408 ")
        with contextlib.suppress(ConnectionResetError):  # the end, for bytes that arrived after it
            await reader.read()


async def test_a_connection_is_used_again_and_a_slow_response_is_not_cut(connection):
    reader, writer = connection
    for _ in range(2):
        writer.write(HEAD + b"content-length: 5\r\n\r\n12345")
        assert await reader.readuntil(b"\r\n\r\n5") != b""
    writer.write(b"POST /stream HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n")
    assert b" ended" in await asyncio.wait_for(reader.readuntil(b" ended"), 10)


async def test_a_large_body_that_arrives_steadily_is_read(connection):
    reader, writer = connection
    writer.write(HEAD + b"content-length: 10000\r\n\r\n")
    for _ in range(20):
        writer.write(b"x" * 500)
        await asyncio.sleep(0.1)
    assert (await reader.readuntil(b"10000")).startswith(b"HTTP/1.1 200 ")


def test_a_connection_without_a_request_stays_open_longer_than_balancers_reuse_it():
    assert http_server._create_config(app).timeout_keep_alive > 60
