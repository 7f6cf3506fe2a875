"""A request without a response is logged, too."""

import logging

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
