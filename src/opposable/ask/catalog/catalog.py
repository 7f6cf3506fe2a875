"""The catalogue of one database: gathered once, kept on disk, asked for the part of it that a question needs."""

import asyncio
import hashlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opposable.ask.catalog.schema_linking import Ranking
from opposable.ask.catalog.schema_pruning import narrowed
from opposable.ask.catalog.schema_view import SchemaView
from opposable.ask.catalog.value_index import FORMAT, ValueIndex
from opposable.ask.catalog.value_matching import ValueMatch, match_values
from opposable.ask.catalog.value_sampling import Progress, pages, read_samples, wanted_columns
from opposable.domain.errors import ToolError
from opposable.sql.database import Database
from opposable.sql.schema import Schema

Samples = Mapping[str, Mapping[str, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What gathering may take: seconds in all, values of one column and of all, samples shown of a column.

    `keep_seconds` is how long values are kept although the data has changed since.
    """

    seconds: float = 20.0
    values_per_column: int = 2_000_000
    values: int = 5_000_000
    samples: int = 3
    keep_seconds: float = 600.0


@dataclass(slots=True)
class Catalog:
    """What is known of a database. `complete` says whether every column's values were gathered."""

    schema: Schema
    samples: Samples
    complete: bool
    _index: ValueIndex
    _ranking: Ranking = field(repr=False)

    async def matches(self, question: str, most: int = 12) -> tuple[ValueMatch, ...]:
        """The real values that the question names, the surest first."""
        return await asyncio.to_thread(match_values, question, self._index, self._ranking.names, most)

    async def for_question(self, question: str, budget_tokens: int = 3_000) -> SchemaView:
        """The tables and columns the question is about, in at most about `budget_tokens` tokens of DDL.

        A schema that fits is kept whole. Of a table that is kept, its keys are, too.
        """
        matches = await self.matches(question)
        return await asyncio.to_thread(
            narrowed, self.schema, self._ranking, self.samples, question, matches, budget_tokens
        )

    async def values(self) -> int:
        """How many values can be found."""
        return await asyncio.to_thread(self._index.count)

    async def sizes(self) -> Mapping[tuple[str, str], int]:
        """How many different values each column has, as (table, column), where they were gathered."""
        return await asyncio.to_thread(self._index.sizes)

    async def close(self) -> None:
        """Closes the index; the database stays open."""
        await asyncio.to_thread(self._index.close)


async def open_catalog(
    database: Database,
    cache: Path | None = None,
    bounds: Bounds | None = None,
    synonyms: Mapping[str, Sequence[str]] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Catalog:
    """The catalogue of `database`; what earlier runs gathered is used, what is missing is gathered within `bounds`.

    `cache` is a folder to keep it in (None: memory only; `default_cache()` is the user's). `synonyms` are other words
    for a table ("orders") or a column ("orders.amount"). `progress` is told after each page of values.
    """
    limits = bounds or Bounds()
    end = time.monotonic() + limits.seconds
    schema = await database.schema()
    samples = {
        table.full_name: await read_samples(database, table, limits.samples) if time.monotonic() < end else {}
        for table in schema.tables
    }
    index = await _opened(database, schema, cache, limits)
    try:
        complete = await _gather(database, schema, index, limits, end, progress)
    except BaseException:
        await asyncio.to_thread(index.close)
        raise
    ranking = await asyncio.to_thread(Ranking, schema, samples, synonyms or {})
    return Catalog(schema, samples, complete, index, ranking)


def default_cache() -> Path:
    """The folder for catalogues in the user's cache, as the system has it."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "opposable" / "catalogs"


def fingerprint(schema: Schema) -> str:
    """A mark of the schema's names and types: another one when a table or column was added, renamed or retyped."""
    told = repr([(t.full_name, t.kind, [(c.name, c.type) for c in t.columns]) for t in schema.tables])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


async def _opened(database: Database, schema: Schema, cache: Path | None, limits: Bounds) -> ValueIndex:
    """The index of this database in the cache, begun anew when the data is no longer what was gathered."""
    if cache is None:
        return await asyncio.to_thread(ValueIndex, None)
    who = hashlib.sha256(f"{FORMAT}\n{database.identity}".encode()).hexdigest()[:16]
    path = cache / f"{who}-{fingerprint(schema)}.sqlite"
    version = await database.version()

    def work() -> ValueIndex:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in path.parent.glob(f"{who}-*"):
            if not old.name.startswith(path.stem):
                old.unlink(missing_ok=True)
        path.touch(mode=0o600)
        index = ValueIndex(path)
        young = time.time() - float(index.fact("begun") or 0) < limits.keep_seconds
        if index.fact("version") != version and not young:
            index.close()
            for part in path.parent.glob(f"{path.name}*"):
                part.unlink(missing_ok=True)
            path.touch(mode=0o600)
            index = ValueIndex(path)
        if not index.fact("begun"):
            index.note("begun", str(time.time()))
            index.note("version", version)
        return index

    return await asyncio.to_thread(work)


async def _gather(
    database: Database,
    schema: Schema,
    index: ValueIndex,
    limits: Bounds,
    end: float,
    progress: Callable[[Progress], None] | None,
) -> bool:
    """Reads what the index lacks; whether it lacks nothing any more."""
    columns = wanted_columns(schema)
    finished = await asyncio.to_thread(index.finished)
    kept = await asyncio.to_thread(index.count)
    complete = True
    for done, (table, column, kind) in enumerate(columns, 1):
        if (table.full_name, column.name) in finished:
            continue
        if time.monotonic() > end or kept >= limits.values:
            return False
        try:
            most = min(limits.values_per_column, limits.values - kept)
            async for values, last in pages(database, table, column, kind, most, end):
                kept += await asyncio.to_thread(index.add, table.full_name, column.name, values)
                if progress is not None:
                    progress(Progress(f"{table.full_name}.{column.name}", done - (not last), len(columns), kept))
                if time.monotonic() > end and not last:
                    return False
            await asyncio.to_thread(index.finish, table.full_name, column.name)
        except TimeoutError:
            complete = False
        except ToolError:  # a view that does not run, a column that may not be read: there is nothing to gather
            await asyncio.to_thread(index.finish, table.full_name, column.name)
    return complete
