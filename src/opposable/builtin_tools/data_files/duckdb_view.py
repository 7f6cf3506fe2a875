"""Files of rows (CSV, JSON, Parquet, Excel) as one DuckDB view that can read this one file and nothing else."""

import codecs
import contextlib
import csv
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from opposable.builtin_tools.data_files.table_text import to_json_value
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolUnavailable
from opposable.domain.text_normalization import find_close_names, remove_separators
from opposable.safety.filesystem.allowed_roots import AllowedRoots, OpenFile
from opposable.safety.filesystem.text_decoding import detect_encoding
from opposable.sql.duckdb.options import RESTRICTED_OPTIONS

READER_FUNCTIONS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".json": "read_json",
    ".ndjson": "read_ndjson",
    ".jsonl": "read_ndjson",
    ".parquet": "read_parquet",
}
SPREADSHEET_SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
MAX_SPREADSHEET_BYTES = 50_000_000


@dataclass(frozen=True, slots=True)
class DataFileColumn:
    """A column: its name and DuckDB's type."""

    name: str
    type: str

    @property
    def is_numeric(self) -> bool:
        """Whether it holds numbers."""
        return self.type.startswith(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "U", "FLOAT", "DOUBLE", "DECIMAL")) and not self.type.startswith(("UUID", "UNION"))  # fmt: skip

    @property
    def quoted_name(self) -> str:
        """Its name in SQL."""
        return quote_identifier(self.name)


class DataFileTable:
    """An open file of rows, as the view `data`."""

    def __init__(self, connection: Any, display_path: str, sheets: tuple[str, ...] = ()) -> None:
        self._connection = connection
        self.display_path = display_path
        self.sheets = sheets
        described = self.fetch_rows("DESCRIBE data")
        self.columns = tuple(DataFileColumn(str(row[0]), str(row[1])) for row in described)

    def fetch_rows(self, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
        """All rows of a query as JSON values. Raises: `ToolFailed` in the engine's words."""
        with translate_duckdb_errors(self.display_path):
            found = self._connection.execute(sql, parameters).fetchall()
        return [tuple(to_json_value(value) for value in row) for row in found]

    def execute(self, sql: str) -> Any:
        """A cursor over a query's rows as Python values. Raises: as `rows`."""
        with translate_duckdb_errors(self.display_path):
            return self._connection.execute(sql)

    def count_rows(self) -> int:
        """How many rows there are."""
        return int(self.fetch_rows("SELECT count(*) FROM data")[0][0])

    def find_column(self, name: str, argument_name: str = "column") -> DataFileColumn:
        """The column of that name; case does not matter. Raises: `InvalidArguments` with the nearest names."""
        for column in self.columns:
            if column.name == name:
                return column
        folded = [column for column in self.columns if column.name.strip().casefold() == name.strip().casefold()]
        if len(folded) == 1:
            return folded[0]
        names = [column.name for column in self.columns]
        near = find_close_names(name, names, remove_separators) or [
            one for one in names if name and (name in one or one in name)
        ]
        meant = f"Did you mean {' or '.join(near[:3])}? " if near else ""
        problem = f"there is no such column. {meant}The columns are {', '.join(names[:40])}"
        raise InvalidArguments((FieldProblem(argument_name, problem, repr(name[:60])),))


@contextmanager
def open_table(
    roots: AllowedRoots, path: str, sheet: str | None = None, writable_stream: BinaryIO | None = None
) -> Iterator[DataFileTable]:
    """Open a file of rows. With `writable`, the connection may write into that open file too (at `descriptor_path`).

    Raises: as `Roots.find`; `ToolFailed` for a file that is not of the kind its name says.
    """
    place = roots.find(path)
    shown = roots.format_path(place)
    suffix = get_suffix(shown)
    if suffix not in READER_FUNCTIONS and suffix not in SPREADSHEET_SUFFIXES:
        kinds = ", ".join((*READER_FUNCTIONS, *SPREADSHEET_SUFFIXES))
        raise ToolFailed(f"{shown} is no file of rows; those end in {kinds}.")
    with roots.open_file(place) as file, contextlib.ExitStack() as stack:
        sheets: tuple[str, ...] = ()
        if suffix in SPREADSHEET_SUFFIXES:
            source, sheets = _convert_sheet_to_csv(stack, file, shown, sheet)
            reader = "read_csv"
        else:
            source = _convert_to_utf8(stack, file) if suffix != ".parquet" else file.stream
            reader = READER_FUNCTIONS[suffix]
        connection = _connect([get_descriptor_path(one) for one in (source, writable_stream) if one is not None])
        stack.callback(connection.close)
        _create_view(connection, reader, source, shown)
        yield DataFileTable(connection, shown, sheets)


def get_suffix(name: str) -> str:
    """The end of a file's name that tells its kind, in lower case."""
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 - a shown path is text


def get_descriptor_path(stream: BinaryIO) -> str:
    """The path of an open file for this process alone: what was vetted when it was opened is what is read."""
    return f"/dev/fd/{stream.fileno()}"


def quote_identifier(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def translate_duckdb_errors(display_path: str) -> Iterator[None]:
    """Errors of the engine as `ToolFailed`, without the path it saw."""
    import duckdb

    try:
        yield
    except (duckdb.Error, OverflowError, UnicodeDecodeError) as error:
        first = str(error).strip().splitlines()[0]
        if isinstance(error, duckdb.InterruptException) or "execution time" in first:
            raise ToolFailed(f"Reading {display_path} took too long and was stopped.") from error
        words = " ".join(
            display_path if word.strip("\"'.,:;").startswith("/dev/fd/") else word for word in first.split()
        )
        raise ToolFailed(f"{display_path} cannot be read so: {words[:500]}") from error


def _connect(allowed_paths: list[str]) -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise ToolUnavailable('Files of rows need the extra "files": pip install "opposable[files]".') from error
    connection = duckdb.connect(":memory:", config=RESTRICTED_OPTIONS)
    listed = ", ".join(f"'{path}'" for path in allowed_paths)
    connection.execute(f"SET allowed_paths = [{listed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _create_view(connection: Any, reader_function: str, source: BinaryIO, display_path: str) -> None:
    """The view `data`; a CSV whose later rows do not fit the types of the first is read as text."""
    import duckdb

    path = get_descriptor_path(source)
    with translate_duckdb_errors(display_path):
        connection.execute(f"CREATE VIEW data AS SELECT * FROM {reader_function}('{path}')")  # noqa: S608 - a number of ours
        if reader_function != "read_csv":
            return
        try:
            connection.execute("SELECT count(COLUMNS(*)) FROM data").fetchall()
        except duckdb.Error:
            text = f"SELECT * FROM read_csv('{path}', all_varchar = true, null_padding = true, strict_mode = false)"  # noqa: S608
            connection.execute(f"CREATE OR REPLACE VIEW data AS {text}")


def _convert_to_utf8(stack: contextlib.ExitStack, file: OpenFile) -> BinaryIO:
    """The file itself where it is UTF-8, else a private copy that is."""
    sample = file.stream.read(65536)
    file.stream.seek(0)
    encoding = detect_encoding(sample)
    if encoding in ("utf-8", "utf-8-sig", None):
        return file.stream
    copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    reader = codecs.getreader(encoding)(file.stream, "replace")
    while piece := reader.read(1_000_000):
        copy.write(piece.encode())
    copy.flush()
    return copy


def _convert_sheet_to_csv(
    stack: contextlib.ExitStack, file: OpenFile, display_path: str, sheet: str | None
) -> tuple[BinaryIO, tuple[str, ...]]:
    try:
        import python_calamine
    except ImportError as error:
        raise ToolUnavailable('Excel files need the extra "files": pip install "opposable[files]".') from error
    if file.size > MAX_SPREADSHEET_BYTES:
        raise ToolFailed(
            f"{display_path} is larger than {MAX_SPREADSHEET_BYTES // 1_000_000} MB; save it as CSV first."
        )
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(file.stream.read()))
        names = tuple(book.sheet_names)
        if sheet is not None and sheet not in names:
            problem = f"there is no such sheet; the sheets are {', '.join(names)}"
            raise InvalidArguments((FieldProblem("sheet", problem, repr(sheet)),))
        rows = book.get_sheet_by_name(sheet or names[0]).to_python()
    except (python_calamine.CalamineError, OSError, IndexError) as error:
        raise ToolFailed(f"{display_path} is no spreadsheet that can be read: {error}.") from error
    if not rows:
        raise ToolFailed(f"The sheet {sheet or names[0]} of {display_path} is empty.")
    copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    writer = io.TextIOWrapper(copy, "utf-8", newline="", write_through=True)
    csv.writer(writer).writerows([[_to_csv_value(value) for value in row] for row in rows])
    writer.detach()
    copy.flush()
    return copy, names


def _to_csv_value(value: Any) -> Any:
    """A cell of a sheet for a CSV: whole numbers without .0, dates in ISO form."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value.isoformat() if hasattr(value, "isoformat") else value
