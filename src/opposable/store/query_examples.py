"""Repository of query examples: questions whose SQL a person confirmed."""

from collections.abc import Sequence

from sqlalchemy import delete, select

from opposable.domain.records import QueryExample
from opposable.store.database import StoreDatabase
from opposable.store.tables import query_examples

MAX_EXAMPLES = 1_000
"""The limit of examples of a database that are read; the latest are used."""


class QueryExampleRepository:
    """Confirmed questions of each database."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database

    async def add(self, examples: Sequence[QueryExample]) -> None:
        """Store examples. An example replaces the one of the same question."""
        async with self._database.begin_write() as connection:
            for example in examples:
                table = query_examples.c
                is_same = (table.database == example.database) & (table.question == example.question)
                await connection.execute(delete(query_examples).where(is_same))
                await connection.execute(
                    query_examples.insert().values(
                        id=example.example_id,
                        database=example.database,
                        question=example.question,
                        sql=example.sql,
                        created_at=example.created_at,
                    )
                )

    async def list_for_database(self, database: str) -> tuple[QueryExample, ...]:
        """Return the examples of a database, the latest first."""
        table = query_examples.c
        query = select(query_examples).where(table.database == database)
        query = query.order_by(table.created_at.desc(), table.id).limit(MAX_EXAMPLES)
        async with self._database.begin_read() as connection:
            rows = (await connection.execute(query)).all()
        return tuple(QueryExample(row.id, row.database, row.question, row.sql, row.created_at) for row in rows)

    async def delete(self, example_id: str) -> bool:
        """Delete an example and return whether it existed."""
        async with self._database.begin_write() as connection:
            result = await connection.execute(delete(query_examples).where(query_examples.c.id == example_id))
        return result.rowcount > 0
