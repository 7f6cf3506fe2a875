"""Fixtures that run each test of the store on SQLite and on a real PostgreSQL."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.servers import postgresql, valkey_server, valkey_url  # noqa: F401 - fixtures

from opposable.store import open_store


@pytest.fixture(scope="session")
def template(postgresql):  # noqa: F811
    """The name of a PostgreSQL database with the current schema."""
    url = postgresql.new_database()

    async def create_schema() -> None:
        async with open_store(url):
            pass

    with ThreadPoolExecutor(1) as thread:  # this thread may have a running event loop
        thread.submit(asyncio.run, create_schema()).result()
    return postgresql.get_database_name(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request):
    return request.param


@pytest.fixture
def empty_url(engine, request, tmp_path):
    """The URL of a database without a schema."""
    if engine == "sqlite":
        yield f"sqlite:///{tmp_path}/store.db"
        return
    server = request.getfixturevalue("postgresql")
    url = server.new_database()
    yield url
    server.drop_database(url)


@pytest.fixture
def url(engine, request, tmp_path):
    """The URL of a database with the schema and no rows."""
    if engine == "sqlite":
        yield f"sqlite:///{tmp_path}/store.db"
        return
    server = request.getfixturevalue("postgresql")
    url = server.new_database(request.getfixturevalue("template"))
    yield url
    server.drop_database(url)


@pytest.fixture
async def store(url):
    async with open_store(url) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgresql", "valkey"])
async def any_store(request, tmp_path):
    """A store with conversations and rate limits in SQLite, PostgreSQL or Valkey."""
    if request.param == "postgresql":
        server = request.getfixturevalue("postgresql")
        url = server.new_database(request.getfixturevalue("template"))
        async with open_store(url) as opened:
            yield opened
        server.drop_database(url)
        return
    valkey = request.getfixturevalue("valkey_url") if request.param == "valkey" else None
    async with open_store(f"sqlite:///{tmp_path}/store.db", valkey_url=valkey) as opened:
        yield opened
