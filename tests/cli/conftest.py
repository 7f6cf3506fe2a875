"""Fixtures of the command line's tests."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with a database, a few broken files and a log."""
    (tmp_path / "a.txt").write_text("hello\n")
    (tmp_path / "broken.sqlite").write_bytes(b"SQLite format 3\0 and then nothing of the kind")
    (tmp_path / "empty.db").touch()
    (tmp_path / "short.gguf").write_bytes(b"GGUF\x03\0\0\0")
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as shop, shop:
        shop.executescript(
            "CREATE TABLE item (name TEXT, price REAL, note TEXT);"
            "INSERT INTO item VALUES ('[red]bolt[/]', 1.5, NULL), (':smile: \x1b[2Jnut', 0.25, '螺母');"
        )
    shop.close()
    return tmp_path
