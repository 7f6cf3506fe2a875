import pytest
from tests.ask.catalog.databases import open_sqlite

from opposable.ask.catalog import catalog as catalog_module
from opposable.ask.catalog import open_catalog

pytestmark = pytest.mark.anyio


async def test_tables_beyond_the_time_limit_have_no_samples(tmp_path, monkeypatch):
    database = await open_sqlite(tmp_path, "CREATE TABLE t (a TEXT)", "INSERT INTO t VALUES ('Rome')")
    assert "e.g. 'Rome'" in (await (await open_catalog(database)).select_schema("a")).to_ddl()
    monkeypatch.setattr(catalog_module, "MAX_READING_SECONDS", 0.0)
    catalog = await open_catalog(database)
    assert (await catalog.select_schema("a")).to_ddl() == "CREATE TABLE t ( -- 1 rows\n  a TEXT\n);"
    await database.close()
