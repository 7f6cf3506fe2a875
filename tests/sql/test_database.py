"""Opening databases, their errors, cancellation and concurrency."""

import asyncio
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from tests.service.processes import wait_for
from tests.sql.conftest import get_slow_sql

from opposable.domain.errors import BadInput, ToolFailed, ToolUnavailable
from opposable.sql.database import QueryLimits
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("form", ["{path}", "{kind}:///{path}", "{kind}://{path}", "{kind}+aio:///{path}", " {path} "])
async def test_a_url_and_a_plain_path_open_the_same_file(shop_files, file_engine, form):
    database = await open_database(form.format(path=shop_files[file_engine], kind=file_engine))
    assert (database.dialect, database.name) == (file_engine, shop_files[file_engine].name)
    assert (await database.run("SELECT count(*) FROM orders")).rows == ((4,),)
    await database.close()


async def test_a_relative_url_is_relative(shop_files, file_engine, monkeypatch):
    monkeypatch.chdir(shop_files[file_engine].parent)
    database = await open_database(f"{file_engine}:///{shop_files[file_engine].name}")
    assert database.name == shop_files[file_engine].name
    await database.close()


async def test_the_engine_is_detected_by_the_first_bytes(shop_files, file_engine, tmp_path):
    path = tmp_path / "数据 库#%20.txt"
    path.write_bytes(shop_files[file_engine].read_bytes())
    database = await open_database(str(path))
    assert database.dialect == file_engine
    await database.close()


async def test_a_database_that_cannot_be_opened_is_reported_in_one_sentence(tmp_path, shop_files):
    (tmp_path / "text.db").write_text("just text, long enough to be read")
    (tmp_path / "empty.db").touch()
    (tmp_path / "broken.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    (tmp_path / "broken.duckdb").write_bytes(shop_files["duckdb"].read_bytes()[:3000])
    (tmp_path / "cut.sqlite").write_bytes(shop_files["sqlite"].read_bytes()[:4500])
    os.mkfifo(tmp_path / "pipe.db")
    cases = {
        "": "No database is given. Use ",
        f"{tmp_path}/pipe.db": f"`{tmp_path}/pipe.db` is not a regular file. Pass a database file.",
        f"{tmp_path}/none.db": f"File `{tmp_path}/none.db` does not exist. Use duckdb:///path/to/file, ",
        f"sqlite:///{tmp_path}/none.db": f"File `{tmp_path}/none.db` does not exist. Use ",
        "duckdb:///none.duckdb": "File `none.duckdb` does not exist. Use ",
        str(tmp_path): f"`{tmp_path}` is a directory. Pass the database file inside it.",
        f"{tmp_path}/text.db": f"`{tmp_path}/text.db` is not a DuckDB or SQLite database (unknown file format). "
        "Pass a database file, or load the data into a table of a new DuckDB file.",
        f"{tmp_path}/empty.db": f"`{tmp_path}/empty.db` is empty. ",
        f"{tmp_path}/broken.sqlite": f"SQLite cannot read `{tmp_path}/broken.sqlite`; the file may be damaged: ",
        f"{tmp_path}/broken.duckdb": f"This version of DuckDB cannot read `{tmp_path}/broken.duckdb`: ",
        f"{tmp_path}/cut.sqlite": f"SQLite cannot read `{tmp_path}/cut.sqlite`; the file may be damaged: ",
        f"duckdb:///{shop_files['sqlite']}": f"`{shop_files['sqlite']}` is a SQLite file. Use sqlite:///",
        f"sqlite:///{shop_files['duckdb']}": f"`{shop_files['duckdb']}` is a DuckDB file. Use duckdb:///",
        "oracle://host/db": "`oracle:` databases are not supported. Use ",
        "sqlite://": "`sqlite://` does not name a file. Use ",
        "duckdb:///:memory:": "`duckdb:///:memory:` does not name a file. Use ",
        "bad\0path": "`bad\0path` is not a valid path. Use ",
    }
    for url, sentence in cases.items():
        with pytest.raises(BadInput) as raised:
            await open_database(url)
        assert str(raised.value).startswith(sentence), url
        assert "\n" not in str(raised.value), url


async def test_a_sqlite_file_locked_by_a_writer_is_reported(shop_files, tmp_path):
    path = tmp_path / "locked.sqlite"
    path.write_bytes(shop_files["sqlite"].read_bytes())
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(BadInput, match=r"is locked by another program\. Close that program first"):
        await open_database(str(path))
    writer.execute("ROLLBACK")
    writer.close()


def hold_open_for_writing(path: Path) -> "subprocess.Popen[bytes]":
    code = f"import duckdb; c = duckdb.connect({str(path)!r}); print('open', flush=True); input()"
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


async def test_a_duckdb_file_open_for_writing_elsewhere_is_reported(shop_files, tmp_path):
    path = tmp_path / "locked.duckdb"
    path.write_bytes(shop_files["duckdb"].read_bytes())
    with hold_open_for_writing(path) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with pytest.raises(BadInput, match="is locked: another program has it open for writing"):
            await open_database(str(path))
        writer.kill()


async def test_a_duckdb_file_open_in_this_process_is_reported(shop_files, tmp_path):
    path = tmp_path / "open.duckdb"
    path.write_bytes(shop_files["duckdb"].read_bytes())
    with duckdb.connect(path, read_only=True), pytest.raises(BadInput, match="is open in this process"):
        await open_database(str(path))


async def test_one_file_can_be_opened_twice(shop_files, file_engine):
    first, second = [await open_database(str(shop_files[file_engine])) for _ in range(2)]
    await first.close()
    assert (await second.run("SELECT 1")).rows == ((1,),)
    await second.close()


async def test_a_closed_database_refuses_queries(shop_url):
    database = await open_database(shop_url)
    await database.close()
    await database.close()
    with pytest.raises(ToolUnavailable, match="is closed"):
        await database.run("SELECT 1")


async def test_a_query_for_intervals_may_end_with_a_semicolon(shop_files):
    database = await open_database(str(shop_files["duckdb"]))
    result = await database.run("SELECT INTERVAL 3 MONTH AS wait, 1 AS n;\n")
    assert (result.columns, result.rows) == (("wait", "n"), (("3 months", 1),))
    await database.close()


async def test_queries_run_concurrently(shop):
    results = await asyncio.gather(*(shop.run(f"SELECT count(*) + {i} FROM orders") for i in range(40)))
    assert [result.rows[0][0] for result in results] == [4 + i for i in range(40)]


async def test_cancelling_the_caller_stops_the_engine(shop):
    task = asyncio.create_task(shop.run(get_slow_sql(shop.dialect)))
    await asyncio.sleep(0.2)
    started = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.perf_counter() - started < 5
    await wait_for(is_idle, seconds=5)  # the query itself would run for 15 seconds


async def is_idle() -> bool:
    """Whether this process uses less than half a core."""
    before = time.process_time()
    await asyncio.sleep(0.5)
    return time.process_time() - before < 0.25


def count_threads():
    """Count the threads without the workers of asyncio, which stay for the next task."""
    return sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate())


async def test_time_outs_leave_no_thread_running(shop_url):
    before = count_threads()
    database = await open_database(shop_url)
    for _ in range(6):
        with pytest.raises(ToolFailed):
            await database.run(get_slow_sql(database.dialect), limits=QueryLimits(timeout_seconds=0.1))
    await database.close()
    ends_at = time.monotonic() + 10  # an engine interrupts its query a moment after the time-out
    while count_threads() > before and time.monotonic() < ends_at:  # noqa: ASYNC110 - threads set no event
        await asyncio.sleep(0.05)
    assert count_threads() <= before


async def test_reading_leaves_no_file_in_the_folder_of_the_database(tmp_path, file_engine):
    path = tmp_path / "db"
    if file_engine == "sqlite":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        connection.close()
    else:
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE t AS SELECT range AS a FROM range(1000)")
    database = await open_database(str(path))
    sql = "SELECT a.a FROM t a, t b, t c ORDER BY random() LIMIT 3"
    if file_engine == "sqlite":
        assert (await database.run(sql, limits=QueryLimits(timeout_seconds=1, max_rows=1))).rows == ((1,),)
    else:
        with pytest.raises(ToolFailed, match=r"Out of Memory|took longer"):
            await database.run(
                "SELECT a.a, b.a, random() r FROM t a, t b, t c ORDER BY r, 1, 2", limits=QueryLimits(timeout_seconds=2)
            )
    await database.close()
    assert sorted(p.name for p in tmp_path.iterdir() if not p.name.endswith(("-shm", "-wal"))) == ["db"]


def _open_and_query(path: str, results: "multiprocessing.Queue[int]") -> None:
    async def work() -> None:
        database = await open_database(path)
        results.put((await database.run("SELECT count(*) FROM orders")).rows[0][0])

    asyncio.run(work())


async def test_several_processes_read_one_file_at_once(shop, shop_url):
    if shop.dialect == "clickhouse":
        pytest.skip("ClickHouse locks its directory for one process")
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=_open_and_query, args=(shop_url, results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    assert await asyncio.to_thread(lambda: [results.get(timeout=30) for _ in workers]) == [4, 4]
    for worker in workers:
        worker.join()
