"""A service asked over HTTP: the answer as it comes, the calls made on the way, what was kept of it.

python examples/client.py                        a service of its own, on a script
python examples/client.py http://127.0.0.1:8000  the one that runs there (opposable serve); a key in OPPOSABLE_KEY
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from opposable import Client, ScriptedModel
from opposable.models.scripted import reply_with_calls, tool_call
from opposable.service.service import open_service
from opposable.settings import Settings
from opposable.web import server


@asynccontextmanager
async def serve_scripted_model() -> AsyncIterator[str]:
    """The URL of a service on a script, for as long as the block lasts."""
    model = ScriptedModel(reply_with_calls(tool_call("calculator", '{"expression": "25*4"}')), "25 乘以 4 等于 100。")
    with tempfile.TemporaryDirectory() as home:
        async with (
            open_service(Settings(home=Path(home)), {"scripted": model}) as service,
            server.serve_in_background(server.create_app(service)) as url,
        ):
            yield url


async def main(url: str) -> None:
    """Ask, watch, look back."""
    async with Client(url, os.environ.get("OPPOSABLE_KEY", "")) as client:
        async for event in client.stream("请计算 25 乘以 4", conversation_id="example"):
            match event.kind:
                case "tool_started":
                    print(f"call    {event.data['name']} {event.data['arguments']}")
                case "tool_finished":
                    print(f"result  {event.data['success']}")
                case "text":
                    print(f"text    {event.content!r}")
        conversation = await client.get_conversation("example")
        print("kept   ", [message["role"] for message in conversation.messages])
        await client.delete_conversation("example")


async def run_with_scripted_model() -> None:
    """The same on a service of its own."""
    async with serve_scripted_model() as url:
        await main(url)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]) if len(sys.argv) > 1 else run_with_scripted_model())
