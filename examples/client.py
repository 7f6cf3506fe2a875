"""A client of the service: it streams the answer and the calls, then reads the stored conversation.

python examples/client.py                        starts a service with a scripted model
python examples/client.py http://127.0.0.1:8000  uses a running service (opposable serve); the key is in OPPOSABLE_KEY
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
from opposable.web import http_server, server


@asynccontextmanager
async def serve_scripted_model() -> AsyncIterator[str]:
    """Run a service with a scripted model and yield its URL."""
    model = ScriptedModel(reply_with_calls(tool_call("calculator", '{"expression": "25*4"}')), "25 乘以 4 等于 100。")
    with tempfile.TemporaryDirectory() as home:
        async with (
            open_service(Settings(home=Path(home)), {"scripted": model}) as service,
            http_server.serve_in_background(server.create_app(service)) as url,
        ):
            yield url


async def main(url: str) -> None:
    """Ask, print the events, and read the stored conversation."""
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
        print("stored ", [message["role"] for message in conversation.messages])
        await client.delete_conversation("example")


async def run_with_scripted_model() -> None:
    """Run the example with a service in this process."""
    async with serve_scripted_model() as url:
        await main(url)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]) if len(sys.argv) > 1 else run_with_scripted_model())
