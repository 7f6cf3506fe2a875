"""What every test of the web layer uses."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace

import pytest


@pytest.fixture(autouse=True, scope="session")
def quick_end_of_servers() -> Iterator[None]:
    """Servers of the test process end within 10 ms: uvicorn looks every 100 ms and waits for another 100 ms."""

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 20)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("uvicorn.server.asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": sleep}))
        yield
