"""Engine values become JSON values."""

import datetime
import json
import sqlite3
import uuid
from contextlib import closing
from decimal import Decimal

import pytest

from opposable.sql.database import QueryLimits
from opposable.sql.factory import open_database
from opposable.sql.json_values import to_json_value, truncate_cell
from opposable.sql.postgres.cell_truncation import decode_cell

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (2**53 - 1, 2**53 - 1),
        (2**53, "9007199254740992"),
        (-(2**70), "-1180591620717411303424"),
        (1.5, 1.5),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Decimal("10.50"), 10.5),
        (Decimal(7), 7),
        (Decimal("0.1234567890123456789012"), "0.1234567890123456789012"),
        (Decimal("NaN"), "NaN"),
        (datetime.date(2024, 2, 29), "2024-02-29"),
        (datetime.datetime(2024, 2, 29, 1, 2, 3), "2024-02-29T01:02:03"),  # noqa: DTZ001 - a column without a zone
        (datetime.time(1, 2), "01:02:00"),
        (datetime.timedelta(days=1), "1 day, 0:00:00"),
        (b"twelve bytes", "<blob 12 bytes>"),
        ("中文", "中文"),
        ("bad\ud800", "bad?"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ([1, b"x", float("inf")], [1, "<blob 1 bytes>", "Infinity"]),
        ({"a": Decimal(1), 2: None}, {"a": 1, "2": None}),
        ({True: 1, False: 2}, {"true": 1, "false": 2}),
    ],
)
def test_values_become_json(value, expected):
    assert to_json_value(value) == expected
    json.dumps(to_json_value(value), allow_nan=False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("abcdef", ("abc…", True)), ("abc", ("abc", False)), ([1, 2, 3], ("[1,…", True)), (12345, (12345, False))],
)
def test_long_cells_are_truncated_and_marked(value, expected):
    assert truncate_cell(value, 3) == expected


async def test_rows_and_cells_beyond_the_limits_are_omitted_and_counted(shop):
    result = await shop.run(
        "SELECT id, note FROM orders ORDER BY id", limits=QueryLimits(max_rows=3, max_cell_characters=4)
    )
    assert result.rows == ((1, "firs…"), (2, None), (3, "50% …"))
    assert (result.truncated, result.truncated_cells) == (True, 2)
    assert (await shop.run("SELECT id FROM orders", limits=QueryLimits(max_rows=4))).truncated is False


async def test_invalid_text_and_blobs_in_sqlite_are_converted(tmp_path):
    with closing(sqlite3.connect(tmp_path / "odd.db")) as connection, connection:
        connection.execute("CREATE TABLE t (a TEXT, b BLOB, c)")
        connection.execute("INSERT INTO t VALUES (CAST(x'ff41' AS TEXT), x'0001', 9223372036854775807)")
    connection.close()
    database = await open_database(str(tmp_path / "odd.db"))
    assert (await database.run("SELECT * FROM t")).rows == (("\ufffdA", "<blob 2 bytes>", "9223372036854775807"),)
    await database.close()


async def test_only_cells_larger_than_the_sqlite_limit_are_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "big.db")) as connection, connection:
        connection.execute("CREATE TABLE t (id INTEGER, photo BLOB, name TEXT)")
        connection.execute("INSERT INTO t VALUES (1, zeroblob(3000000), 'x')")
    connection.close()
    database = await open_database(str(tmp_path / "big.db"))
    assert (await database.run("SELECT id, length(photo), name FROM t")).rows == ((1, 3000000, "x"),)
    with pytest.raises(Exception, match=r"string or blob too big. Hint: leave very large texts or blobs out"):
        await database.run("SELECT photo FROM t")
    await database.close()


def test_a_list_or_an_object_is_truncated_as_json():
    assert truncate_cell({"name": "李雷", "is_new": True, "city": None}, 30) == (
        '{"name":"李雷","is_new":true,"ci…',
        True,
    )


@pytest.mark.parametrize("levels", [260, 600, 1_100, 5_000])
def test_deeply_nested_json_is_text(levels):
    text = "[" * levels + "]" * levels
    decoded = decode_cell(text, "nested", 20_000)
    assert truncate_cell(to_json_value(decoded), 20_000) == (text, False)
    assert truncate_cell(to_json_value(decoded), 100) == (text[:100] + "…", True)
