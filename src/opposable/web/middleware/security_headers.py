"""Security headers of every response: no content sniffing, no framing, no caching."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUIRED_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
DEFAULT_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
"""Headers of responses that do not set them, as the pages of a console do."""


class SecurityHeadersMiddleware:
    """Adds the headers to every response.

    Args:
        app: The application.
        allow_cross_origin: Whether pages of the origins allowed by CORS may read responses.
    """

    def __init__(self, app: ASGIApp, *, allow_cross_origin: bool = False) -> None:
        self._app = app
        self._required_headers = [
            header
            for header in REQUIRED_HEADERS
            if not (allow_cross_origin and header[0] == b"cross-origin-resource-policy")
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add the headers to its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                names = {name for name, _ in headers}
                defaults = [header for header in DEFAULT_HEADERS if header[0] not in names]
                message["headers"] = [*headers, *self._required_headers, *defaults]
            await send(message)

        await self._app(scope, receive, send_with_headers)
