"""Repository of query examples: questions whose SQL a person confirmed."""

from collections.abc import Sequence

from sqlalchemy import delete, select

from opposable.domain.records import QueryExample
from opposable.store.database import Repository
from opposable.store.rows import to_record, to_row
from opposable.store.tables import query_examples

MAX_EXAMPLES = 1_000
"""The limit of examples of a database that are read; the latest are used."""


class QueryExampleRepository(Repository):
    """Confirmed questions of each database."""

    async def add(self, examples: Sequence[QueryExample]) -> None:
        """Store examples. An example replaces the one of the same question."""
        async with self._database.begin_write() as connection:
            for example in examples:
                table = query_examples.c
                is_same = (table.database == example.database) & (table.question == example.question)
                await connection.execute(delete(query_examples).where(is_same))
                row = to_row(example, "example_id") | {"id": example.example_id}
                await connection.execute(query_examples.insert().values(**row))

    async def list_for_database(self, database: str) -> tuple[QueryExample, ...]:
        """Return the examples of a database, the latest first."""
        table = query_examples.c
        query = select(query_examples).where(table.database == database)
        query = query.order_by(table.created_at.desc(), table.id).limit(MAX_EXAMPLES)
        rows = await self._database.fetch(query)
        return tuple(to_record(QueryExample, row, example_id=row.id) for row in rows)

    async def delete(self, example_id: str) -> bool:
        """Delete an example and return whether it existed."""
        return await self._database.execute(delete(query_examples).where(query_examples.c.id == example_id)) > 0
