"""A database of its own for each test with workers."""

import pytest
from tests.durable.farm import open_outside
from tests.servers import postgresql  # noqa: F401 - a fixture


@pytest.fixture
def url(postgresql):  # noqa: F811
    """The URL of an empty PostgreSQL database."""
    url = postgresql.new_database()
    yield url
    postgresql.drop_database(url)


@pytest.fixture
async def outside():
    async with open_outside() as server:
        yield server
