"""Data files are a read-only database with a table for each file and sheet."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pytest

from opposable.app.data_sources import open_data_source
from opposable.domain.errors import BadInput, ToolError
from opposable.sql.tools import SqlTools

pytestmark = pytest.mark.anyio
SALES = "城市,交易金额,日期\n上海,10.5,2024-01-02\n北京,20,2024-02-03\n上海,30,2024-03-04\n"


def write_workbook(path: Path, sheets: Mapping[str, Sequence[Sequence[Any]]]) -> None:
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.worksheets[0])
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    workbook.save(path)


async def list_tables(location: Path) -> dict[str, int | None]:
    async with open_data_source(str(location)) as database:
        return {table.name: table.row_count for table in (await database.get_schema()).tables}


async def test_a_file_is_a_table_with_its_name(tmp_path: Path) -> None:
    file = tmp_path / "销售.csv"
    file.write_text(SALES, encoding="gb18030")
    async with open_data_source(str(file)) as database:
        result = await database.run(
            "SELECT 城市, sum(交易金额) FROM 销售 WHERE 日期 > DATE '2024-01-05' GROUP BY 1 ORDER BY 1"
        )
        assert (database.name, database.identity) == ("销售.csv", str(file))
    assert result.rows == (("上海", 30.0), ("北京", 20.0))


async def test_files_of_a_folder_are_tables_of_one_database(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id,customer\n1,7\n2,7\n", encoding="utf-8")
    (tmp_path / "customers.JSON").write_text(json.dumps([{"id": 7, "name": "Ada"}]), encoding="utf-8")
    (tmp_path / "orders.ndjson").write_text('{"id": 3}\n', encoding="utf-8")
    (tmp_path / ".hidden.csv").write_text("a\n1\n", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not a table", encoding="utf-8")
    assert await list_tables(tmp_path) == {"customers": 1, "orders": 2, "orders.ndjson": 1}
    async with open_data_source(str(tmp_path)) as database:
        joined = await database.run("SELECT name, count(*) FROM orders JOIN customers c ON c.id = customer GROUP BY 1")
    assert joined.rows == (("Ada", 2),)


@pytest.mark.parametrize(
    ("name", "table"),
    [(" a.csv", " a"), ("`a`.csv", "`a`"), ("x\\a.csv", "x\\a"), ("~a.csv", "~a"), ("\udcff.csv", "�")],
)
async def test_a_file_may_have_any_name(tmp_path: Path, name: str, table: str) -> None:
    (tmp_path / name).write_text("a\n1\n", encoding="utf-8")
    assert await list_tables(tmp_path / name) == {table: 1}


async def test_a_relative_folder_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sales.csv").write_text(SALES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    async with open_data_source(".") as database:
        assert database.name == tmp_path.name


async def test_a_link_is_a_table_with_its_name(tmp_path: Path) -> None:
    (tmp_path / ".version-2").write_text("a\n1\n", encoding="utf-8")
    (tmp_path / "sales.csv").symlink_to(".version-2")
    assert await list_tables(tmp_path) == {"sales": 1}


async def test_whole_numbers_of_any_size_are_exact(tmp_path: Path) -> None:
    (tmp_path / "ids.json").write_text('[{"id": 18446744073709551615}]', encoding="utf-8")
    async with open_data_source(str(tmp_path)) as database:
        assert (await database.run("SELECT id FROM ids")).rows == (("18446744073709551615",),)


async def test_nanoseconds_of_times_with_a_zone_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    duckdb.sql(f"COPY (SELECT TIMESTAMPTZ_NS '2024-01-01 10:00:00.123456789+00' AS at) TO '{path}'")
    async with open_data_source(str(path)) as database:
        [[at]] = (await database.run('SELECT "at" FROM events')).rows
    assert ".123456789" in at


async def test_a_database_may_have_the_suffix_of_a_data_file(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old.json")) as connection:
        connection.execute("CREATE TABLE t (a)")
    async with open_data_source(str(tmp_path / "old.json")) as database:
        assert database.dialect == "sqlite"


async def test_sheets_with_rows_are_tables(tmp_path: Path) -> None:
    write_workbook(tmp_path / "shop.xlsx", {"Cover": [], "Orders": [["id"], [1], [2]], "客户": [["name"], ["张三"]]})
    assert await list_tables(tmp_path / "shop.xlsx") == {"Orders": 2, "客户": 1}
    write_workbook(tmp_path / "one.xlsx", {"Sheet1": [["id"], [1]]})
    write_workbook(tmp_path / "other.xlsx", {"ORDERS": [["id"], [1]], "more": [["id"], [1]]})
    assert await list_tables(tmp_path) == {"one": 1, "ORDERS": 1, "more": 1, "shop.xlsx Orders": 2, "客户": 1}


@pytest.mark.parametrize(
    "sql", ["DROP TABLE sales", "COPY sales TO '/tmp/x.csv'", "FROM read_csv('/etc/passwd')", "FROM '/etc/passwd'"]
)
async def test_only_the_tables_can_be_read(tmp_path: Path, sql: str) -> None:
    (tmp_path / "sales.csv").write_text(SALES, encoding="utf-8")
    async with open_data_source(str(tmp_path)) as database:
        with pytest.raises(ToolError):
            await SqlTools(database).execute(sql)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "`{}/empty.csv` is empty. Pass a file with rows."),
        ("bad.json", b"{bad", "bad.json cannot be read so: Invalid Input Error: Malformed JSON in file bad.json"),
        ("bad.parquet", b"PAR1", "bad.parquet cannot be read so: Invalid Input Error: File bad.parquet too small"),
        (
            "wide.csv",
            "Köln,1\n".encode("utf-16-le"),
            "wide.csv is not a text file, or it is UTF-16 without a byte-order",
        ),
        ("bad.xlsx", b"PK", "bad.xlsx is not a spreadsheet that can be read"),
        ("notes.txt", b"text", "`{}/notes.txt` is not a DuckDB or SQLite database"),
    ],
)
async def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput) as caught:
        await list_tables(tmp_path / name)
    assert str(caught.value).startswith(message.format(tmp_path))


async def test_a_folder_without_data_files_is_an_error_with_their_suffixes(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("text")
    with pytest.raises(BadInput, match=r"is a folder without data files \(\.csv, \.tsv, .*\.ods\)"):
        await list_tables(tmp_path)


async def test_a_workbook_without_rows_is_an_error(tmp_path: Path) -> None:
    write_workbook(tmp_path / "shop.xlsx", {"Cover": [], "Other": []})
    with pytest.raises(BadInput, match="has no rows"):
        await list_tables(tmp_path / "shop.xlsx")
