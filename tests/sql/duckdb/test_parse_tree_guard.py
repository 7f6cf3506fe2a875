"""Sizes of texts that DuckDB compares without a way to interrupt it."""

import pytest

from opposable.domain.errors import ToolRefused
from opposable.sql.tools import SqlTools

pytestmark = pytest.mark.anyio

SHORTENED = "replace(" * 5 + "note" + ", 'Incorporated', 'Inc')" * 5


@pytest.mark.parametrize(
    ("sql", "is_allowed"),
    [
        ("SELECT levenshtein(repeat('ab', 5000), 'a')", False),
        ("SELECT jaro_similarity(s, 'a') FROM (SELECT repeat(repeat('a', 100), 100) AS s) q", False),
        (f"SELECT editdist3('{'a' * 6000}', note) FROM orders", False),
        ("SELECT count(levenshtein(replace(note, '%', ' off '), lpad('first order', 20, ' '))) FROM orders", True),
        (f"SELECT count(levenshtein({SHORTENED}, {SHORTENED})) FROM orders", True),
        ("SELECT levenshtein(replace('a', 'a', 'bbbbbbbbbb'), replace(repeat('a', 600), 'a', 'bbbbbbbbbb'))", False),
    ],
)
async def test_distance_functions_compare_only_short_texts(duckdb_shop, sql, is_allowed):
    if is_allowed:
        assert (await SqlTools(duckdb_shop).execute(sql))["rows"] == [[3]]
        return
    with pytest.raises(ToolRefused, match="may compare texts of at most 5000 characters"):
        await SqlTools(duckdb_shop).execute(sql)
