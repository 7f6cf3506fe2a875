"""Confirmed questions are stored per database."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.store.records import START

from opposable.domain.records import QueryExample

pytestmark = pytest.mark.anyio


async def test_an_example_replaces_the_one_of_the_same_question(store):
    first = QueryExample("a1", "shop", "有多少客户？", "SELECT 1", START)
    second = QueryExample("a2", "shop", "How many?", "SELECT '\x00'", START + timedelta(seconds=1))
    other = QueryExample("a3", "firm", "How many?", "SELECT 3", START)
    await store.query_examples.add([first, second, other])
    assert [one.example_id for one in await store.query_examples.list_for_database("shop")] == ["a2", "a1"]
    newer = replace(first, example_id="a4", sql="SELECT 4", created_at=START + timedelta(seconds=2))
    await store.query_examples.add([newer])
    assert (await store.query_examples.list_for_database("shop"))[0] == newer
    assert [await store.query_examples.delete("a4"), await store.query_examples.delete("a4")] == [True, False]
    assert [one.example_id for one in await store.query_examples.list_for_database("shop")] == ["a2"]
    assert await store.query_examples.list_for_database("firm") == (other,)
    assert await store.query_examples.list_for_database("x") == ()
