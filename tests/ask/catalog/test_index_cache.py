import pytest
from tests.ask.catalog.databases import open_sqlite

from opposable.ask.catalog import CatalogLimits, open_catalog

pytestmark = pytest.mark.anyio


async def test_an_index_is_cached_until_the_data_changes(tmp_path):
    database = await open_sqlite(tmp_path, "CREATE TABLE t (name TEXT)", "INSERT INTO t VALUES ('Zanzibar')")
    cache = tmp_path / "cache"
    progress = []
    first = await open_catalog(database, cache, on_progress=progress.append)
    assert [(p.column, p.columns_done, p.total_columns, p.indexed_values) for p in progress] == [("t.name", 1, 1, 1)]
    await first.close()
    again = await open_catalog(database, cache, CatalogLimits(cache_seconds=0), on_progress=progress.append)
    assert (len(progress), await again.count_values()) == (1, 1)
    await again.close()
    await database.close()
    changed = await open_sqlite(tmp_path, "INSERT INTO t VALUES ('Ouagadougou')")
    cached = await open_catalog(changed, cache)
    assert await cached.match_values("Ouagadougou") == ()
    await cached.close()
    rebuilt = await open_catalog(changed, cache, CatalogLimits(cache_seconds=0))
    assert [match.value for match in await rebuilt.match_values("Ouagadougou")] == ["Ouagadougou"]
    await rebuilt.close()
    await changed.close()
    wider = await open_sqlite(tmp_path, "ALTER TABLE t ADD COLUMN more TEXT")
    await (await open_catalog(wider, cache)).close()
    assert len(list(cache.glob("*.sqlite"))) == 1
    assert oct(next(cache.glob("*.sqlite")).stat().st_mode & 0o777) == "0o600"
    await wider.close()
