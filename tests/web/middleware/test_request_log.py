"""A request without a response is logged, too; one that the end of the server cuts gets an error of its API."""

import asyncio
import logging

import orjson
import pytest

from opposable.web.middleware.request_log import RequestLogMiddleware

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("path", ["/healthz", "/assets/index.js", "/api/tools"])
async def test_a_request_that_ends_without_a_response_is_logged(caplog, path):
    async def app(scope, receive, send):
        raise ConnectionResetError

    caplog.set_level(logging.DEBUG, logger="opposable.requests")
    with pytest.raises(ConnectionResetError):
        await RequestLogMiddleware(app)({"type": "http", "method": "GET", "path": path}, None, None)
    [record] = caplog.records
    level = logging.INFO if path == "/api/tools" else logging.DEBUG
    assert (record.levelno, record.status, record.path, record.key_id) == (level, 499, path, "anonymous")


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/agent/chat", {"error": {"kind": "stopping"}}),
        ("/v1/chat/completions", {"error": {"type": "server_error", "param": None, "code": "stopping"}}),
        ("/v1/messages", {"type": "error", "error": {"type": "overloaded_error"}}),
    ],
)
async def test_a_stopping_server_responds_in_the_format_of_the_api(path, error):
    async def app(scope, receive, send):
        raise asyncio.CancelledError

    async def send(message):
        sent.append(message)

    sent = []
    await RequestLogMiddleware(app)({"type": "http", "method": "POST", "path": path, "headers": []}, None, send)
    start, body = sent
    assert (start["status"], (b"retry-after", b"2") in start["headers"]) == (503, True)
    error["error"]["message"] = "The service is stopping. Try again."
    assert orjson.loads(body["body"]) == error
