"""A folder of questions with their databases."""

import sqlite3
from contextlib import closing
from pathlib import Path

import orjson
import pytest


@pytest.fixture
def question_folder(tmp_path: Path) -> Path:
    lines = []
    for number in range(6):
        with closing(sqlite3.connect(tmp_path / f"d{number}.sqlite")) as connection, connection:
            connection.executescript(
                "CREATE TABLE 部门 (名称 TEXT, n INTEGER); INSERT INTO 部门 VALUES ('行政', 3), ('财务', 5)"
            )
        connection.close()
        gold = "SELECT 名称 FROM 部门 WHERE n > 3"
        lines.append({"id": f"q{number}", "db": f"d{number}", "question": "哪些部门超过三人？", "gold_sql": gold})
    (tmp_path / "questions.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    return tmp_path
