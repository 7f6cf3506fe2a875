"""Measures the time of an answer about data without the model's time: 300 tables, or 10,000,000 rows.

python benchmarks/ask.py [ROWS]
"""

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import duckdb

from opposable.ask.team.factory import open_team
from opposable.ask.team.team import Team
from opposable.domain.events import ModelEvent
from opposable.models.scripted import ScriptedModel
from opposable.sql.factory import open_database

TABLE_COUNT = 300
ROW_COUNT = 10_000_000


class TimedModel:
    """A scripted model that counts its own seconds, to subtract them."""

    def __init__(self, *lines: str) -> None:
        self.wrapped_model = ScriptedModel(*lines)
        self.name = self.wrapped_model.name
        self.seconds = 0.0
        self.characters = 0

    async def stream(self, messages, tools=(), options=None) -> AsyncGenerator[ModelEvent, None]:
        """Yield one reply and count its seconds."""
        self.characters = sum(len(message.content) for message in messages)
        started_at = time.perf_counter()
        async with contextlib.aclosing(self.wrapped_model.stream(messages, tools, options)) as events:
            async for event in events:
                yield event
        self.seconds += time.perf_counter() - started_at

    async def aclose(self) -> None:
        """Do nothing: no resource is open."""


def create_many_tables(path: Path) -> None:
    """Create 300 tables of ten columns and 100 rows each."""
    with duckdb.connect(str(path)) as connection:
        for n in range(TABLE_COUNT):
            columns = ", ".join(f"'value {n} ' || (i % 7) AS field_{n}_{c}" for c in range(9))
            connection.execute(f"CREATE TABLE area_{n} AS SELECT i AS id, {columns} FROM range(100) t(i)")


def create_large_table(path: Path, row_count: int) -> None:
    """Create one table of sales."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE sales AS SELECT i AS id, 'customer ' || (i % 100000) AS customer, "
            "['North', 'South', 'East', 'West'][1 + i % 4] AS region, (i * 7919 % 100000) / 100.0 AS amount, "
            f"DATE '2020-01-01' + CAST(i % 2000 AS INTEGER) AS day FROM range({row_count}) t(i)"
        )


async def measure_team(name: str, path: Path, question: str, sql: str) -> None:
    """Measure the first answer and the next one."""
    model = TimedModel(f"```sql\n{sql}\n```")
    database = await open_database(str(path))
    started_at = time.perf_counter()
    async with open_team(model, database) as team:
        first = await _time_answer(team, question, model, started_at)
        repeated = await _time_answer(team, question, model, time.perf_counter())
    started_at = time.perf_counter()
    await database.run(sql)
    query_seconds = time.perf_counter() - started_at
    await database.close()
    print(f"{name:22} {first:9.2f} {repeated:9.3f} {query_seconds:9.3f} {model.characters // 4:9}")


async def _time_answer(team: Team, question: str, model: TimedModel, started_at: float) -> float:
    model_seconds = model.seconds
    answer, _ = await team.answer(question)
    if not answer.rows:
        raise SystemExit(f"The answer has no rows: {answer.text}")
    return time.perf_counter() - started_at - (model.seconds - model_seconds)


async def main() -> None:
    """Print the table."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROW_COUNT
    print(f"{'seconds without model':22} {'first':>7} {'next':>9} {'SQL alone':>9} {'tokens':>9}")
    with tempfile.TemporaryDirectory() as folder:
        tables, sales = Path(folder, "tables.duckdb"), Path(folder, "sales.duckdb")
        create_many_tables(tables)
        create_large_table(sales, rows)
        question = "How many rows of area 217 have the field 217 3 value 217 5?"
        sql = "SELECT count(*) FROM area_217 WHERE field_217_3 = 'value 217 5'"
        await measure_team(f"{TABLE_COUNT} tables", tables, question, sql)
        sql = "SELECT region, sum(amount) FROM sales GROUP BY region"
        await measure_team(f"{rows:,} rows", sales, "Total amount by region?", sql)


if __name__ == "__main__":
    asyncio.run(main())
