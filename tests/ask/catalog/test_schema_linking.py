import pytest
from tests.ask.catalog.databases import build_many_tables, open_sqlite

from opposable.ask.catalog import open_catalog

pytestmark = pytest.mark.anyio


async def test_synonyms_select_their_tables(tmp_path):
    database = await open_sqlite(tmp_path, *build_many_tables())
    catalog = await open_catalog(database, synonyms={"archive_77": ("流水",), "archive_78.remark": ("turnover",)})
    assert "archive_77" in {t.table.name for t in (await catalog.select_schema("今年流水是多少", 300)).tables}
    assert "archive_78" in {t.table.name for t in (await catalog.select_schema("Show the turnover", 300)).tables}
    await catalog.close()
    await database.close()
