"""The cache of value indexes on disk, one file per database and schema."""

import asyncio
import hashlib
import os
import sys
import time
from pathlib import Path

from opposable.ask.catalog.value_index import FORMAT_VERSION, ValueIndex
from opposable.sql.database import Database
from opposable.sql.schema import DatabaseSchema


def get_default_cache_dir() -> Path:
    """Return the folder for catalogs in the user's cache folder."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "opposable" / "catalogs"


def fingerprint_schema(schema: DatabaseSchema) -> str:
    """Hash the names and types of all tables and columns."""
    names_and_types = repr([(t.full_name, t.kind, [(c.name, c.type) for c in t.columns]) for t in schema.tables])
    return hashlib.sha256(names_and_types.encode()).hexdigest()[:16]


async def open_index(
    database: Database, schema: DatabaseSchema, cache_dir: Path | None, cache_seconds: float
) -> ValueIndex:
    """Open the value index of a database.

    The index is empty where the cache has none for the current data.

    Args:
        database: The database.
        schema: Its schema; another schema has another index, and the index of the former schema is deleted.
        cache_dir: The folder of the cache; None keeps the index in memory.
        cache_seconds: How long an index is used although the data has changed.
    """
    if cache_dir is None:
        return await asyncio.to_thread(ValueIndex, None)
    database_key = hashlib.sha256(f"{FORMAT_VERSION}\n{database.identity}".encode()).hexdigest()[:16]
    path = cache_dir / f"{database_key}-{fingerprint_schema(schema)}.sqlite"
    data_version = await database.get_data_version()
    return await asyncio.to_thread(_open_file, path, database_key, data_version, cache_seconds)


def _open_file(path: Path, database_key: str, data_version: str, cache_seconds: float) -> ValueIndex:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for other in path.parent.glob(f"{database_key}-*"):
        if not other.name.startswith(path.stem):
            other.unlink(missing_ok=True)
    path.touch(mode=0o600)
    index = ValueIndex(path)
    is_recent = time.time() - float(index.get_metadata("begun") or 0) < cache_seconds
    if index.get_metadata("version") != data_version and not is_recent:
        index.close()
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink(missing_ok=True)
        path.touch(mode=0o600)
        index = ValueIndex(path)
    if not index.get_metadata("begun"):
        index.set_metadata("begun", str(time.time()))
        index.set_metadata("version", data_version)
    return index
