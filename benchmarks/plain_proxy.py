"""A proxy of plain aiohttp, which a benchmark compares the gateway with: it passes requests on and does nothing else.

python benchmarks/plain_proxy.py UPSTREAM_URL
"""

import asyncio
import sys

import aiohttp
from aiohttp import web


async def serve(upstream: str) -> None:
    """Pass every POST request on to the upstream; print the address first."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def relay(request: web.Request) -> web.StreamResponse:
            headers = {"content-type": "application/json"}
            path = request.path.removeprefix("/v1")
            async with session.post(f"{upstream}{path}", data=await request.read(), headers=headers) as received:
                response = web.StreamResponse(status=received.status, headers={"content-type": received.content_type})
                await response.prepare(request)
                async for chunk in received.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
                return response

        app = web.Application(client_max_size=1 << 25)
        app.router.add_post("/{path:.*}", relay)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
