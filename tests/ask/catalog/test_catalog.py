import pytest
from tests.ask.catalog.databases import open_sqlite

from opposable.ask.catalog import CatalogLimits, open_catalog

pytestmark = pytest.mark.anyio


async def test_indexing_stops_at_its_limits_and_continues_the_next_time(tmp_path):
    rows = ",".join(f"('one {i}', 'two {i}')" for i in range(500))
    database = await open_sqlite(tmp_path, "CREATE TABLE t (a TEXT, b TEXT)", f"INSERT INTO t VALUES {rows}")
    part = await open_catalog(database, tmp_path / "cache", CatalogLimits(max_values=500))
    assert (part.is_complete, await part.count_values()) == (False, 500)
    await part.close()
    whole = await open_catalog(database, tmp_path / "cache")
    assert (whole.is_complete, await whole.count_values()) == (True, 1000)
    await whole.close()
    no_time = await open_catalog(database, limits=CatalogLimits(max_seconds=0))
    assert (no_time.is_complete, (await no_time.select_schema("a")).to_ddl()) == (
        False,
        "CREATE TABLE t ( -- 500 rows\n  a TEXT,\n  b TEXT\n);",
    )
    await no_time.close()
    await database.close()
