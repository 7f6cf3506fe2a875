"""The catalogue of one database: gathered once, kept on disk, asked for the part of it that a question needs."""

import asyncio
import hashlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opposable.ask.catalog.schema_linking import SchemaLinker
from opposable.ask.catalog.schema_pruning import prune_schema
from opposable.ask.catalog.schema_view import SchemaView
from opposable.ask.catalog.value_index import FORMAT_VERSION, ValueIndex
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


@dataclass(frozen=True, slots=True)
class CatalogLimits:
    """What gathering may take: seconds in all, values of one column and of all, samples shown of a column.

    `keep_seconds` is how long values are kept although the data has changed since.
    """

    max_seconds: float = 20.0
    max_values_per_column: int = 2_000_000
    max_values: int = 5_000_000
    samples_per_column: int = 3
    cache_seconds: float = 600.0


@dataclass(slots=True)
class Catalog:
    """What is known of a database. `complete` says whether every column's values were gathered."""

    schema: DatabaseSchema
    samples: Samples
    is_complete: bool
    _index: ValueIndex
    _linker: SchemaLinker = field(repr=False)

    async def match_values(self, question: str, limit: int = 12) -> tuple[ValueMatch, ...]:
        """The real values that the question names, the surest first."""
        return await asyncio.to_thread(match_values, question, self._index, self._linker.name_words, limit)

    async def select_schema(self, question: str, budget_tokens: int = 3_000) -> SchemaView:
        """The tables and columns the question is about, in at most about `budget_tokens` tokens of DDL.

        A schema that fits is kept whole. Of a table that is kept, its keys are, too.
        """
        matches = await self.match_values(question)
        return await asyncio.to_thread(
            prune_schema, self.schema, self._linker, self.samples, question, matches, budget_tokens
        )

    async def count_values(self) -> int:
        """How many values can be found."""
        return await asyncio.to_thread(self._index.count_values)

    async def count_values_by_column(self) -> Mapping[tuple[str, str], int]:
        """How many different values each column has, as (table, column), where they were gathered."""
        return await asyncio.to_thread(self._index.count_values_by_column)

    async def close(self) -> None:
        """Closes the index; the database stays open."""
        await asyncio.to_thread(self._index.close)


async def open_catalog(
    database: Database,
    cache_dir: Path | None = None,
    limits: CatalogLimits | None = None,
    synonyms: Mapping[str, Sequence[str]] | None = None,
    on_progress: Callable[[IndexingProgress], None] | None = None,
) -> Catalog:
    """The catalogue of `database`; what earlier runs gathered is used, what is missing is gathered within `bounds`.

    `cache` is a folder to keep it in (None: memory only; `default_cache()` is the user's). `synonyms` are other words
    for a table ("orders") or a column ("orders.amount"). `progress` is told after each page of values.
    """
    limits = limits or CatalogLimits()
    end = time.monotonic() + limits.max_seconds
    schema = await database.get_schema()
    samples = {
        table.full_name: await read_samples(database, table, limits.samples_per_column)
        if time.monotonic() < end
        else {}
        for table in schema.tables
    }
    index = await _open_index(database, schema, cache_dir, limits)
    try:
        complete = await _index_values(database, schema, index, limits, end, on_progress)
    except BaseException:
        await asyncio.to_thread(index.close)
        raise
    ranking = await asyncio.to_thread(SchemaLinker, schema, samples, synonyms or {})
    return Catalog(schema, samples, complete, index, ranking)


def get_default_cache_dir() -> Path:
    """The folder for catalogues in the user's cache, as the system has it."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "opposable" / "catalogs"


def fingerprint_schema(schema: DatabaseSchema) -> str:
    """A mark of the schema's names and types: another one when a table or column was added, renamed or retyped."""
    told = repr([(t.full_name, t.kind, [(c.name, c.type) for c in t.columns]) for t in schema.tables])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


async def _open_index(
    database: Database, schema: DatabaseSchema, cache_dir: Path | None, limits: CatalogLimits
) -> ValueIndex:
    """The index of this database in the cache, begun anew when the data is no longer what was gathered."""
    if cache_dir is None:
        return await asyncio.to_thread(ValueIndex, None)
    who = hashlib.sha256(f"{FORMAT_VERSION}\n{database.identity}".encode()).hexdigest()[:16]
    path = cache_dir / f"{who}-{fingerprint_schema(schema)}.sqlite"
    version = await database.get_data_version()

    def work() -> ValueIndex:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in path.parent.glob(f"{who}-*"):
            if not old.name.startswith(path.stem):
                old.unlink(missing_ok=True)
        path.touch(mode=0o600)
        index = ValueIndex(path)
        young = time.time() - float(index.get_metadata("begun") or 0) < limits.cache_seconds
        if index.get_metadata("version") != version and not young:
            index.close()
            for part in path.parent.glob(f"{path.name}*"):
                part.unlink(missing_ok=True)
            path.touch(mode=0o600)
            index = ValueIndex(path)
        if not index.get_metadata("begun"):
            index.set_metadata("begun", str(time.time()))
            index.set_metadata("version", version)
        return index

    return await asyncio.to_thread(work)


async def _index_values(
    database: Database,
    schema: DatabaseSchema,
    index: ValueIndex,
    limits: CatalogLimits,
    deadline: float,
    on_progress: Callable[[IndexingProgress], None] | None,
) -> bool:
    """Reads what the index lacks; whether it lacks nothing any more."""
    columns = select_indexed_columns(schema)
    finished = await asyncio.to_thread(index.get_completed_columns)
    kept = await asyncio.to_thread(index.count_values)
    complete = True
    for done, (table, column, kind) in enumerate(columns, 1):
        if (table.full_name, column.name) in finished:
            continue
        if time.monotonic() > deadline or kept >= limits.max_values:
            return False
        try:
            most = min(limits.max_values_per_column, limits.max_values - kept)
            async for values, last in iter_value_pages(database, table, column, kind, most, deadline):
                kept += await asyncio.to_thread(index.add_values, table.full_name, column.name, values)
                if on_progress is not None:
                    on_progress(
                        IndexingProgress(f"{table.full_name}.{column.name}", done - (not last), len(columns), kept)
                    )
                if time.monotonic() > deadline and not last:
                    return False
            await asyncio.to_thread(index.mark_completed, table.full_name, column.name)
        except TimeoutError:
            complete = False
        except ToolError:  # a view that does not run, a column that may not be read: there is nothing to gather
            await asyncio.to_thread(index.mark_completed, table.full_name, column.name)
    return complete
