"""The catalog of a database: finds its values and tables for a question."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opposable.ask.catalog.index_cache import open_index
from opposable.ask.catalog.schema_linking import SchemaLinker
from opposable.ask.catalog.schema_pruning import prune_schema
from opposable.ask.catalog.schema_view import SchemaView
from opposable.ask.catalog.value_index import ValueIndex
from opposable.ask.catalog.value_matching import ValueMatch, match_values
from opposable.ask.catalog.value_sampling import (
    IndexingProgress,
    iter_value_pages,
    read_samples,
    select_indexed_columns,
)
from opposable.domain.errors import ToolError
from opposable.sql.database import Database
from opposable.sql.schema import DatabaseSchema

Samples = Mapping[str, Mapping[str, tuple[str, ...]]]
"""A few values of each column, by the full name of the table and the name of the column."""


@dataclass(frozen=True, slots=True)
class CatalogLimits:
    """Limits on reading the values of a database.

    Attributes:
        max_seconds: The time for reading all samples and values.
        max_values_per_column: The most distinct values of one column to index.
        max_values: The most values to index in all.
        samples_per_column: The number of sample values per column.
        cache_seconds: How long a cached index is used although the data has changed.
    """

    max_seconds: float = 20.0
    max_values_per_column: int = 2_000_000
    max_values: int = 5_000_000
    samples_per_column: int = 3
    cache_seconds: float = 600.0


@dataclass(slots=True)
class Catalog:
    """The schema, sample values and value index of a database.

    `is_complete` says whether the values of every column are indexed.
    """

    schema: DatabaseSchema
    samples: Samples
    is_complete: bool
    _index: ValueIndex
    _linker: SchemaLinker = field(repr=False)

    async def match_values(self, question: str, limit: int = 12) -> tuple[ValueMatch, ...]:
        """Return the values that a question names, best first."""
        return await asyncio.to_thread(match_values, question, self._index, self._linker.name_words, limit)

    async def select_schema(self, question: str, budget_tokens: int = 3_000) -> SchemaView:
        """Select the tables and columns that a question needs.

        Args:
            question: The question.
            budget_tokens: About how many tokens the DDL may have. A schema that fits is shown whole.
        """
        matches = await self.match_values(question)
        return await asyncio.to_thread(
            prune_schema, self.schema, self._linker, self.samples, question, matches, budget_tokens
        )

    async def count_values(self) -> int:
        """Return the number of indexed values."""
        return await asyncio.to_thread(self._index.count_values)

    async def count_values_by_column(self) -> Mapping[tuple[str, str], int]:
        """Return the number of distinct values of each indexed column, by (table, column)."""
        return await asyncio.to_thread(self._index.count_values_by_column)

    async def close(self) -> None:
        """Close the index; the database stays open."""
        await asyncio.to_thread(self._index.close)


async def open_catalog(
    database: Database,
    cache_dir: Path | None = None,
    limits: CatalogLimits | None = None,
    synonyms: Mapping[str, Sequence[str]] | None = None,
    on_progress: Callable[[IndexingProgress], None] | None = None,
) -> Catalog:
    """Open the catalog of a database and index the values the cache lacks.

    Args:
        database: The database.
        cache_dir: The folder of the cache, such as `get_default_cache_dir()`; None keeps the index in memory.
        limits: Limits on reading values.
        synonyms: Other names of tables ("orders") and columns ("orders.amount").
        on_progress: Called after each page of values.
    """
    limits = limits or CatalogLimits()
    deadline = time.monotonic() + limits.max_seconds
    schema = await database.get_schema()
    samples = {
        table.full_name: await read_samples(database, table, limits.samples_per_column)
        if time.monotonic() < deadline
        else {}
        for table in schema.tables
    }
    index = await open_index(database, schema, cache_dir, limits.cache_seconds)
    try:
        is_complete = await _index_values(database, schema, index, limits, deadline, on_progress)
    except BaseException:
        await asyncio.to_thread(index.close)
        raise
    linker = await asyncio.to_thread(SchemaLinker, schema, samples, synonyms or {})
    return Catalog(schema, samples, is_complete, index, linker)


async def _index_values(
    database: Database,
    schema: DatabaseSchema,
    index: ValueIndex,
    limits: CatalogLimits,
    deadline: float,
    on_progress: Callable[[IndexingProgress], None] | None,
) -> bool:
    """Index the values that the index lacks; return whether it is complete."""
    columns = select_indexed_columns(schema)
    completed = await asyncio.to_thread(index.get_completed_columns)
    count = await asyncio.to_thread(index.count_values)
    is_complete = True
    for position, (table, column, kind) in enumerate(columns, 1):
        if (table.full_name, column.name) in completed:
            continue
        if time.monotonic() > deadline or count >= limits.max_values:
            return False
        try:
            remaining = min(limits.max_values_per_column, limits.max_values - count)
            async for values, is_last in iter_value_pages(database, table, column, kind, remaining, deadline):
                count += await asyncio.to_thread(index.add_values, table.full_name, column.name, values)
                if on_progress is not None:
                    column_name = f"{table.full_name}.{column.name}"
                    on_progress(IndexingProgress(column_name, position - (not is_last), len(columns), count))
                if time.monotonic() > deadline and not is_last:
                    return False
            await asyncio.to_thread(index.mark_completed, table.full_name, column.name)
        except TimeoutError:
            is_complete = False
        except ToolError:  # a broken view, or a column without permission: it has no values to index
            await asyncio.to_thread(index.mark_completed, table.full_name, column.name)
    return is_complete
