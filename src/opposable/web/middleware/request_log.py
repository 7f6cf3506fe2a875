"""A log line for each request."""

import asyncio
import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opposable.web.errors import RETRY_AFTER_HEADERS, ApiError
from opposable.web.openai_errors import format_api_error
from opposable.web.principal import ANONYMOUS, PRINCIPAL_SCOPE_KEY

QUIET_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths that are requested all the time; they are logged at level DEBUG, as the files of the console are."""

CLIENT_LEFT_STATUS = 499
"""The status in the log for a request without a response."""

log = logging.getLogger("opposable.requests")


class RequestLogMiddleware:
    """Logs the method, path, status, duration and API key of each request; no query and no content."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and log its end."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, started_at = CLIENT_LEFT_STATUS, time.perf_counter()

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note_status)
        except asyncio.CancelledError:  # the server stops
            if status == CLIENT_LEFT_STATUS:
                error = ApiError(503, "stopping", "The service is stopping. Try again.", headers=RETRY_AFTER_HEADERS)
                await format_api_error(error, scope).to_response()(scope, receive, send_and_note_status)
        finally:
            is_quiet = scope["path"] in QUIET_PATHS or scope["path"].startswith("/assets/")
            level = logging.DEBUG if is_quiet else logging.INFO
            principal = scope.get(PRINCIPAL_SCOPE_KEY, ANONYMOUS)
            fields = {
                "method": scope["method"],
                "path": scope["path"][:200],
                "status": status,
                "seconds": round(time.perf_counter() - started_at, 3),
                "key_id": principal.key_id or principal.name,
            }
            log.log(level, "request ended", extra=fields)
