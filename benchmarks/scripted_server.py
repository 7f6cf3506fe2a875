"""A chat-completions server for benchmarks, with prepared answers selected by the path.

`/calls-N/…` requests N calls of `add`, one per turn, then answers. `/calls-N-wait-MS/…` takes MS milliseconds per reply.
`/stream-N/…` streams N deltas, `/paced-N/…` sends each in its own packet. The server prints its address when it listens.
"""

import asyncio
import re

import orjson
from aiohttp import web

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def make_completion(turn: int, calls: int) -> bytes:
    """Make the reply of a turn."""
    arguments = f'{{"a": {turn}, "b": 2}}'
    tool_calls = [{"id": f"call_{turn}", "type": "function", "function": {"name": "add", "arguments": arguments}}]
    message = (
        {"role": "assistant", "content": None, "tool_calls": tool_calls}
        if turn < calls
        else {"role": "assistant", "content": "done"}
    )
    return orjson.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": USAGE})


def make_stream(delta_count: int) -> bytes:
    """Make a streamed answer."""
    delta = orjson.dumps({"choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}]})
    return (b"data: " + delta + b"\n\n") * delta_count + b"data: [DONE]\n\n"


async def send_paced_stream(request: web.Request, delta_count: int) -> web.StreamResponse:
    """Send a streamed answer delta by delta."""
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for delta in make_stream(delta_count).split(b"\n\n")[:-1]:
        await response.write(delta + b"\n\n")
        await asyncio.sleep(0.0002)
    await response.write_eof()
    return response


async def handle_request(request: web.Request) -> web.StreamResponse:
    """Answer as the scenario of the path requires."""
    body = await request.read()
    found = re.fullmatch(r"(calls|stream|paced)-(\d+)(?:-wait-(\d+))?", request.match_info["scenario"])
    if found is None:
        return web.Response(status=404)
    if found[3]:
        await asyncio.sleep(int(found[3]) / 1000)
    if found[1] == "paced":
        return await send_paced_stream(request, int(found[2]))
    if found[1] == "stream":
        return web.Response(body=make_stream(int(found[2])), content_type="text/event-stream")
    return web.Response(
        body=make_completion(body.count(b'"role":"assistant"'), int(found[2])), content_type="application/json"
    )


async def main() -> None:
    """Serve until killed."""
    app = web.Application(client_max_size=1 << 28)
    app.router.add_post("/{scenario}/v1/chat/completions", handle_request)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
