import pytest
from tests.ask.catalog.databases import build_many_tables, open_sqlite

from opposable.ask.catalog.catalog import Catalog, open_catalog
from opposable.ask.catalog.schema_view import TableView, estimate_tokens
from opposable.sql.schema import DatabaseSchema

pytestmark = pytest.mark.anyio


async def test_a_wide_table_is_shown_by_its_keys_and_the_named_columns(shop):
    catalog = await open_catalog(shop)
    view = await catalog.select_schema("average of measure 77 in wide", 200)
    wide = next(t for t in view.tables if t.table.name == "wide")
    names = [column.name for column in wide.columns]
    assert {"id", "measure_77"} <= set(names)
    assert 152 - len(names) > 100
    assert f"-- and {152 - len(names)} more columns" in view.to_ddl()


async def test_of_many_tables_the_named_ones_are_selected_with_the_joins_between_them(tmp_path):
    database = await open_sqlite(tmp_path, *build_many_tables())
    catalog = await open_catalog(database)
    view = await catalog.select_schema("How many orders hold something supplied by Exotic Liquids?", 400)
    selected = {table.table.name for table in view.tables}
    assert selected >= {"orders", "suppliers", "order_items", "products"}
    assert view.omitted_tables == 250 - len(selected) > 200
    assert estimate_tokens(view.to_ddl()) <= 440
    chinese = await catalog.select_schema("每个客户的合同金额是多少？", 300)
    assert {table.table.name for table in chinese.tables} >= {"客户", "合同"}
    await database.close()


async def test_synonyms_select_their_tables(tmp_path):
    database = await open_sqlite(tmp_path, *build_many_tables())
    catalog = await open_catalog(database, synonyms={"archive_77": ("流水",), "archive_78.remark": ("turnover",)})
    assert "archive_77" in {t.table.name for t in (await catalog.select_schema("今年流水是多少", 300)).tables}
    assert "archive_78" in {t.table.name for t in (await catalog.select_schema("Show the turnover", 300)).tables}
    await database.close()


def test_the_score_of_a_table_does_not_depend_on_the_order_of_the_words():
    catalog = Catalog(DatabaseSchema(()), {}, {})
    weights = {"a": 0.1, "b": 0.2, "c": 0.3}
    catalog._rarity = dict.fromkeys(weights, 1.0)
    assert catalog._sum_weights(weights, ["a", "b", "c"]) == catalog._sum_weights(weights, ["c", "b", "a"])


async def test_tables_that_cannot_fit_any_more_are_not_measured_for_each_question(tmp_path, monkeypatch):
    database = await open_sqlite(tmp_path, *build_many_tables())
    catalog = await open_catalog(database)
    measured: list[str] = []
    to_ddl = TableView.to_ddl
    monkeypatch.setattr(TableView, "to_ddl", lambda view, dialect: measured.append(view) or to_ddl(view, dialect))
    view = await catalog.select_schema("Show field a and the remark of the archive", 400)
    assert len(view.tables) > 3
    assert len(measured) < 100
    await database.close()
