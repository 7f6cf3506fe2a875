"""Opens the catalog of a database: its schema, with samples of its values."""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence

from opposable.ask.catalog.schema_selection import Catalog
from opposable.ask.catalog.table_samples import read_samples
from opposable.sql.database import Database

MAX_READING_SECONDS = 20.0
"""The time for reading samples; later tables have none."""


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
    return await asyncio.to_thread(Catalog, schema, samples, synonyms or {})
