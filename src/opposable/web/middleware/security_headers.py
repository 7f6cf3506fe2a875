"""What every answer says to browsers: take nothing for what it is not, frame it nowhere, keep it nowhere."""

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
"""For answers that do not say otherwise themselves, as the pages of a console do."""


class SecurityHeadersMiddleware:
    """Adds the headers to every answer. With `shared`, pages of the origins allowed by CORS may read answers."""

    def __init__(self, app: ASGIApp, *, allow_cross_origin: bool = False) -> None:
        self._app = app
        self._required_headers = [
            pair for pair in REQUIRED_HEADERS if not (allow_cross_origin and pair[0] == b"cross-origin-resource-policy")
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                said = {name for name, _ in given}
                message["headers"] = [
                    *given,
                    *self._required_headers,
                    *(pair for pair in DEFAULT_HEADERS if pair[0] not in said),
                ]
            await send(message)

        await self._app(scope, receive, told)
