"""Cursors and limits are validated."""

import sqlite3

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from opposable.domain.errors import BadInput
from opposable.store.factory import open_store

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("cursor", ["x", "中", "W10", "eyJhIjoxfQ", "WyIyMDI2LTAxLTAxIiwgImEiXQ"])
async def test_invalid_cursor_or_limit_is_reported(store, cursor):
    with pytest.raises(BadInput, match="The cursor is not valid"):
        await store.executions.list(after=cursor)
    with pytest.raises(BadInput, match="Pass a number from 1 to 1000"):
        await store.executions.list(limit=0)


async def test_an_id_prefix_is_found_in_the_index_alone(tmp_path):
    statements = []

    def record_statement(connection, cursor, statement, parameters, *_):
        statements.append((statement, parameters))

    async with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        event.listen(Engine, "before_cursor_execute", record_statement)
        try:
            assert await store.runs.list_by_id_prefix("3fa9") == ()
        finally:
            event.remove(Engine, "before_cursor_execute", record_statement)
    [statement] = [each for each in statements if "LIKE" in each[0]]
    connection = sqlite3.connect(tmp_path / "store.db")
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement[0]}", statement[1])]
    connection.close()
    assert [step for step in plan if step.startswith("SCAN") and "COVERING INDEX" not in step] == []
