"""Fixtures of the composition root's tests."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript("CREATE TABLE item (name TEXT, price REAL); INSERT INTO item VALUES ('bolt', 1.5)")
    connection.close()
    return str(path)
