"""The catalog of a database: its schema and samples of its values."""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from opposable.ask.catalog.schema_selection import Samples, SchemaSelector
from opposable.ask.catalog.schema_view import SchemaView
from opposable.ask.catalog.table_samples import read_samples
from opposable.sql.database import Database
from opposable.sql.schema import DatabaseSchema

MAX_READING_SECONDS = 20.0
"""The time for reading samples; later tables have none."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """The schema of a database, and a few values of the columns that they explain."""

    schema: DatabaseSchema
    samples: Samples
    _selector: SchemaSelector

    async def select_schema(self, question: str, budget_tokens: int = 3_000) -> SchemaView:
        """Select the tables and columns that a question needs.

        Args:
            question: The question.
            budget_tokens: About how many tokens the DDL may have. A schema that fits is shown whole.
        """
        return await asyncio.to_thread(self._selector.select, question, budget_tokens)


async def open_catalog(
    database: Database, synonyms: Mapping[str, Sequence[str]] | None = None, private_columns: Collection[str] = ()
) -> Catalog:
    """Read the schema of a database, and samples from the first rows of its tables.

    Args:
        database: The database.
        synonyms: Other names of tables ("orders") and columns ("orders.amount").
        private_columns: The columns without samples: "email", "customers.email", or "*" for all.
    """
    schema = await database.get_schema()
    deadline = time.monotonic() + MAX_READING_SECONDS
    samples = {
        table.full_name: await read_samples(database, table, private_columns) if time.monotonic() < deadline else {}
        for table in schema.tables
    }
    return Catalog(schema, samples, await asyncio.to_thread(SchemaSelector, schema, samples, synonyms or {}))
