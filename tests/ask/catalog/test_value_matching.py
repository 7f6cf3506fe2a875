import pytest
from tests.ask.catalog.databases import open_sqlite

from opposable.ask.catalog import open_catalog

pytestmark = pytest.mark.anyio


QUESTIONS = [
    ("Who works in 上海?", "部门", "城市", "上海", "exact"),
    ("行政部门有多少人？", "部门", "名称", "行政管理部", "part"),
    ("行政管理部的预算", "部门", "名称", "行政管理部", "exact"),
    ("abc事业部有谁", "部门", "名称", "ＡＢＣ事业部", "exact"),
    ("ＡＢＣ事业部有谁", "部门", "名称", "ＡＢＣ事业部", "exact"),
    ("李雷什么时候入职？", "employees", "full_name", "李雷", "exact"),
    ("salary of BRUNO FERNANDEZ", "employees", "full_name", "Bruno Fernandez", "exact"),
    ("salary of Bruno Fernadez", "employees", "full_name", "Bruno Fernandez", "fuzzy"),
    ("when was fernandez hired", "employees", "full_name", "Bruno Fernandez", "part"),
    ("streets of San Fransisco", "cities", "title", "San Francisco", "fuzzy"),
    ("how many Californias are there", "cities", "title", "California", "exact"),
    ("people in New York", "cities", "title", "New York City", "part"),
    ("which city has zip 94103", "cities", "zip", "94103", "exact"),
    ("who was hired on 2024-02-29?", "employees", "hired", "2024-02-29", "exact"),
    ("2024年2月29日入职的员工", "employees", "hired", "2024-02-29", "exact"),
    ("who earns 7200", "employees", "salary", "7200", "exact"),
]


async def test_words_of_a_question_are_matched_to_real_values(shop):
    catalog = await open_catalog(shop)
    missed = []
    for question, table, column, value, kind in QUESTIONS:
        matches = await catalog.match_values(question)
        if (table, column, value, kind) not in [(m.table, m.column, m.value, m.kind) for m in matches]:
            missed.append((question, matches))
    assert missed == []
    assert catalog.is_complete
    await catalog.close()


@pytest.mark.parametrize(
    "question", ["How many are there of each?", "列出所有的名称", "", "'; DROP TABLE employees; --", '"*" ^ NEAR(']
)
async def test_a_question_that_names_nothing_matches_nothing(shop, question):
    catalog = await open_catalog(shop)
    assert [m for m in await catalog.match_values(question) if m.kind != "part"] == []
    await catalog.close()


async def test_names_of_tables_and_columns_are_not_misspelled_values(tmp_path):
    database = await open_sqlite(
        tmp_path, "CREATE TABLE genre (title TEXT)", "INSERT INTO genre VALUES ('Gene Krupa'), ('Genra')"
    )
    catalog = await open_catalog(database)
    assert await catalog.match_values("How many genres are there?") == ()
    await catalog.close()
    await database.close()
