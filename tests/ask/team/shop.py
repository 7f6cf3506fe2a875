"""A small shop database for several tests, and replies with SQL."""

import sqlite3
from contextlib import closing
from pathlib import Path

SCRIPT = """
CREATE TABLE department (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO department VALUES (1, '行政管理'), (2, 'Sales');
CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, salary REAL,
  department_id INTEGER REFERENCES department(id));
INSERT INTO person VALUES (1, 'Ann', 10, 1), (2, 'Bob', 20, 2), (3, 'Cy', 30, 2);
"""


def make_shop(path: Path) -> Path:
    """Create the shop at `path` and return the path."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCRIPT)
    connection.close()
    return path


def format_sql_reply(text: str) -> str:
    return f"```sql\n{text}\n```"
