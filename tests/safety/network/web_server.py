"""An HTTP server that records requests, and a resolver for tests."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.abc import AbstractResolver

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class ReceivedRequest:
    """A received request; `path` is raw."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class WebServer:
    """A server that answers every request by `answer`, and records them in `seen`."""

    port: int = 0
    answer: Handler | None = None
    seen: list[ReceivedRequest] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.seen.append(ReceivedRequest(request.method, request.raw_path, headers, await request.read()))
        return web.json_response({"ok": True}) if self.answer is None else await self.answer(request)


@asynccontextmanager
async def run_web_server(*hosts: str) -> AsyncIterator[WebServer]:
    """Run a server on 127.0.0.1, and on the other `hosts` with the same port."""
    server = WebServer()
    runner = web.ServerRunner(web.Server(server.handle, handler_cancellation=True), shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.port = runner.addresses[0][1]
        for host in hosts:
            await web.TCPSite(runner, host, server.port).start()
        yield server
    finally:
        await runner.cleanup()


class StubResolver(AbstractResolver):
    """A resolver that returns the given answers in turn, then the last one."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.resolved_hosts: list[str] = []

    async def resolve(self, host, port=0, family=0):
        self.resolved_hosts.append(host)
        addresses = self.answers[min(len(self.resolved_hosts), len(self.answers)) - 1]
        return [
            {"hostname": host, "host": one, "port": port, "family": family, "proto": 0, "flags": 0} for one in addresses
        ]

    async def close(self) -> None:
        pass
