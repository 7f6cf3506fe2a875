"""The database of the team's tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.ask.team.shop import make_shop

from opposable.sql.database import Database
from opposable.sql.factory import open_database


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Database]:
    database = await open_database(str(make_shop(tmp_path / "shop.sqlite")))
    yield database
    await database.close()
