"""A real HTTP server on loopback that speaks chat-completions as a script says."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web
from tests.http_server import serve_aiohttp_app

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class ChatServer:
    """`answers` are given one a request, the last again and again; `bodies` and `headers` keep what came."""

    url: str = ""
    answers: list[Handler] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    left: int = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(json.loads(await request.read()))
        self.headers.append(dict(request.headers))
        return await self.answers[min(len(self.bodies), len(self.answers)) - 1](request)


def build_completion(
    content: str | None = None, calls: list[dict[str, Any]] | None = None, finish: str = "stop", **more: Any
) -> Handler:
    """A whole completion."""
    said = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {}), **more}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return respond_json({"choices": [{"index": 0, "message": said, "finish_reason": finish}], "usage": usage})


def respond_json(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=orjson.dumps(body), status=status, content_type="application/json", headers=headers)

    return answer


def respond_text(body: str, status: int = 200, content_type: str = "text/html") -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(text=body, status=status, content_type=content_type)

    return answer


def respond_events(*chunks: Any, pieces: int = 0, done: bool = True, then_cut: bool = False) -> Handler:
    """A stream of chunks; `pieces` cuts the bytes into pieces of that size."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        raw = b"".join(
            b"data: " + (chunk if isinstance(chunk, bytes) else orjson.dumps(chunk)) + b"\n\n" for chunk in chunks
        )
        raw += b"data: [DONE]\n\n" if done else b""
        size = pieces or len(raw) or 1
        for at in range(0, len(raw), size):
            await response.write(raw[at : at + size])
        if then_cut:
            assert request.transport is not None
            request.transport.abort()
            return response
        await response.write_eof()
        return response

    return answer


def build_delta(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """One streamed chunk."""
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


@asynccontextmanager
async def chat_server(*answers: Handler) -> AsyncIterator[ChatServer]:
    """The server, at `url`, for as long as the block lasts."""
    server = ChatServer(answers=list(answers))
    app = web.Application(client_max_size=1 << 28)
    for path in ("chat/completions", "completions", "embeddings", "messages", "responses"):
        app.router.add_post(f"/v1/{path}", server.handle)
    async with serve_aiohttp_app(app, handler_cancellation=True) as url:
        server.url = f"{url}/v1"
        yield server
