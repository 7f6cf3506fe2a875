"""An HTTP server of a test, on a free port of this machine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def serve_aiohttp_app(app: web.Application, *, handler_cancellation: bool = False) -> AsyncIterator[str]:
    """Serve an application; yield the URL without a path."""
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=handler_cancellation)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
