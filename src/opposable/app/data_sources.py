"""Data sources of questions: a database, a data file, or a folder of data files."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from itertools import chain, count
from pathlib import Path

from opposable.builtin_tools.data_files.duckdb_view import (
    READER_FUNCTIONS,
    SPREADSHEET_SUFFIXES,
    EmptySheet,
    get_suffix,
    open_stream,
)
from opposable.domain.errors import BadInput, ToolError, ToolUnavailable
from opposable.safety.filesystem.allowed_roots import to_printable
from opposable.sql.database import Database
from opposable.sql.duckdb.engine import open_duckdb
from opposable.sql.factory import detect_file_kind, expand_home, open_database
from opposable.sql.schema import fold_name, quote_identifier

_SUFFIXES = (*READER_FUNCTIONS, *SPREADSHEET_SUFFIXES)


@asynccontextmanager
async def open_data_source(location: str) -> AsyncIterator[Database]:
    """Open a database, or a copy of data files, whose tables have the names of the files and sheets.

    Args:
        location: URL or path of a database, path of a CSV, TSV, JSON, NDJSON, Parquet or spreadsheet file, or path of a
            folder of such files.

    Raises:
        BadInput: Nothing can be read there.
    """
    path = expand_home(location.strip())
    files = await asyncio.to_thread(_list_data_files, path)
    if not files:
        if await asyncio.to_thread(os.path.isdir, path):
            raise BadInput(
                f"`{path}` is a folder without data files ({', '.join(_SUFFIXES)}). Pass a folder that directly contains "
                "some, a data file, or a database file."
            )
        async with closing_database(await open_database(location)) as database:
            yield database
        return
    with tempfile.TemporaryDirectory(prefix="opposable-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "data.duckdb"
        await asyncio.to_thread(_copy_to_duckdb, files, copy)
        duckdb_database = await open_duckdb(copy)
        source = await asyncio.to_thread(path.resolve)  # the path may be `.`
        duckdb_database.name, duckdb_database.identity = source.name, str(source)
        async with closing_database(duckdb_database) as database:
            yield database


@asynccontextmanager
async def closing_database(database: Database) -> AsyncIterator[Database]:
    """Close the database at the end."""
    try:
        yield database
    finally:
        await database.close()


def _list_data_files(path: Path) -> list[Path]:
    """Return the data file that a path names, or those directly in the folder. The path may be anything else."""
    try:
        candidates = sorted(path.iterdir()) if path.is_dir() else [path]
        files = [
            file
            for file in candidates
            if get_suffix(file.name) in _SUFFIXES and not file.name.startswith((".", "~$")) and file.is_file()
        ]
    except (OSError, ValueError):
        return []
    return [] if files == [path] and _is_database(path) else files


def _is_database(file: Path) -> bool:
    """Return whether a file is a database, whatever its suffix."""
    try:
        return bool(detect_file_kind(file))
    except BadInput:
        return False


def _copy_to_duckdb(files: Collection[Path], target: Path) -> None:
    """Copy each file and each sheet with rows to a table of a new DuckDB file."""
    names: set[str] = set()
    for file in files:
        try:
            if not file.stat().st_size:
                raise BadInput(f"`{file}` is empty. Pass a file with rows.")
            sheets = _copy_table(target, file, None, names)
            for sheet in sheets[1:]:
                _copy_table(target, file, sheet, names)
        except ToolUnavailable as error:
            raise BadInput(
                'Data files need the extras "ask" and "files": pip install "opposable[ask,files]".'
            ) from error
        except ToolError as error:
            raise BadInput(str(error)) from error
        except OSError as error:  # such as a full disk
            raise BadInput(f"`{file}` cannot be copied: {error}") from error
    if not names:
        raise BadInput(f"`{file}` has no rows. Pass a file with rows.")


def _copy_table(target: Path, file: Path, sheet: str | None, names: set[str]) -> tuple[str, ...]:
    """Copy a file, or a sheet of it with rows (None: the first). Return the names of its sheets."""
    try:
        with (
            file.open("rb") as stream,
            open_stream(stream, to_printable(file.name), sheet, database=target) as table,
        ):
            name = _choose_name(table.display_path, (sheet or table.sheets[0]) if len(table.sheets) > 1 else "", names)
            names.add(fold_name(name))
            table.execute(f"CREATE TABLE {quote_identifier(name)} AS FROM data").fetchall()
            return table.sheets
    except EmptySheet as error:
        return error.sheets


def _choose_name(file_name: str, sheet: str, names: Collection[str]) -> str:
    """Return the first name that no table has."""
    long_name = f"{file_name} {sheet}".strip()
    candidates = chain([sheet or Path(file_name).stem, long_name], (f"{long_name} {number}" for number in count(2)))
    return next(name for name in candidates if fold_name(name) not in names)
