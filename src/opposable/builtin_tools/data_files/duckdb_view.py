"""DuckDB view of one data file. The connection can access this file only."""

import codecs
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from opposable.builtin_tools.data_files import sheet_to_csv
from opposable.builtin_tools.data_files.table_text import to_json_value
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolUnavailable
from opposable.domain.text_normalization import find_close_names, remove_separators
from opposable.safety.filesystem.allowed_roots import AllowedRoots
from opposable.safety.filesystem.text_decoding import detect_encoding
from opposable.sql.duckdb.options import RESTRICTED_OPTIONS
from opposable.sql.schema import quote_identifier

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
SPREADSHEET_TIMEOUT_SECONDS = 60.0
COPY_OPTIONS = RESTRICTED_OPTIONS | {"max_execution_time": "0", "memory_limit": "2GB"}
"""Options of a connection that copies a file to a database. 120,000 rows must fit into the memory."""
CREATE_VIEW = "CREATE OR REPLACE TEMP VIEW data AS SELECT * FROM"
PADDING_OPTIONS = ", null_padding = true, parallel = false"
"""Options of `read_csv` that fill short rows with nulls; in parallel DuckDB would reject line breaks in cells."""
LINE_OPTIONS = ", comment = '', max_line_size = 16000000, buffer_size = 32000000"
"""Options of `read_csv`: no row is a comment, such as `#1,Ann`, which DuckDB would drop; bytes of a row, of which DuckDB
has 2 MB, and of a part of the file in memory."""
_OTHER_DATE_ORDERS = {"dmY": ("mdY",), "dmy": ("mdy",), "ymd": ("dmy", "mdy")}
"""Orders of day, month and year that dates may have too, by the one that DuckDB detects first."""
_SEPARATOR_LINE = re.compile(r"sep=[;,|\t]\r?\n", re.IGNORECASE)
TEXT_OPTIONS = """, all_varchar = true, quote = '"', escape = '"'"""
"""Options of `read_csv` for any cells. The sniffer expects no quotes if its sample has none."""


@dataclass(frozen=True, slots=True)
class DataFileColumn:
    """A column, with its DuckDB type."""

    name: str
    type: str

    @property
    def is_numeric(self) -> bool:
        """Whether the column holds numbers."""
        return re.fullmatch(r"U?(?:TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*\)", self.type) is not None

    @property
    def quoted_name(self) -> str:
        """The name as a quoted SQL identifier."""
        return quote_identifier(self.name)


class EmptySheet(ToolFailed):
    """A sheet has no rows. `sheets` are the names of all sheets of the file."""

    def __init__(self, message: str, sheets: tuple[str, ...]) -> None:
        super().__init__(message)
        self.sheets = sheets


class DataFileTable:
    """An open data file, queried as the view `data`."""

    def __init__(self, connection: Any, display_path: str, sheets: tuple[str, ...] = ()) -> None:
        self._connection = connection
        self.display_path = display_path
        self.sheets = sheets
        described = self.fetch_rows("DESCRIBE data")
        self.columns = tuple(DataFileColumn(str(row[0]), str(row[1])) for row in described)

    def fetch_rows(self, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
        """Return all rows of a query as JSON values.

        Raises:
            ToolFailed: DuckDB rejected the query.
        """
        with translate_duckdb_errors(self.display_path):
            rows = self._connection.execute(sql, parameters).fetchall()
        return [tuple(to_json_value(value) for value in row) for row in rows]

    def execute(self, sql: str) -> Any:
        """Return a cursor over the rows of a query as Python values.

        Raises:
            ToolFailed: DuckDB rejected the query.
        """
        with translate_duckdb_errors(self.display_path):
            return self._connection.execute(sql)

    def count_rows(self) -> int:
        """Return the number of rows."""
        return int(self.fetch_rows("SELECT count(*) FROM data")[0][0])

    def find_column(self, name: str, argument_name: str = "column") -> DataFileColumn:
        """Return the column with this name, ignoring case.

        Raises:
            InvalidArguments: There is no such column. The error suggests similar names.
        """
        for column in self.columns:
            if column.name == name:
                return column
        folded_name = name.strip().casefold()
        matches = [column for column in self.columns if column.name.strip().casefold() == folded_name]
        if len(matches) == 1:
            return matches[0]
        names = [column.name for column in self.columns]
        similar_names = find_close_names(name, names, remove_separators) or [
            column_name for column_name in names if name and (name in column_name or column_name in name)
        ]
        suggestion = f"Did you mean {' or '.join(similar_names[:3])}? " if similar_names else ""
        problem = f"there is no such column. {suggestion}The columns are {', '.join(names[:40])}"
        raise InvalidArguments((FieldProblem(argument_name, problem, repr(name[:60])),))


@contextmanager
def open_table(
    roots: AllowedRoots, path: str, sheet: str | None = None, writable_stream: BinaryIO | None = None
) -> Iterator[DataFileTable]:
    """Open a data file.

    Args:
        roots: The allowed folders.
        path: The file.
        sheet: The sheet of a spreadsheet. None opens the first.
        writable_stream: An open file that the connection may write, at `get_descriptor_path`.

    Raises:
        ToolFailed: The content does not match the file's suffix.
        ToolRefused, InvalidArguments: As `AllowedRoots.find`.
    """
    rooted_path = roots.find(path)
    display_path = roots.format_path(rooted_path)
    suffix = get_suffix(display_path)
    if suffix not in READER_FUNCTIONS and suffix not in SPREADSHEET_SUFFIXES:
        suffixes = ", ".join((*READER_FUNCTIONS, *SPREADSHEET_SUFFIXES))
        raise ToolFailed(f"{display_path} is not a file of rows; those end in {suffixes}.")
    with (
        roots.open_file(rooted_path) as file,
        open_stream(file.stream, display_path, sheet, writable_stream=writable_stream) as table,
    ):
        yield table


@contextmanager
def open_stream(
    file: BinaryIO,
    display_path: str,
    sheet: str | None = None,
    *,
    writable_stream: BinaryIO | None = None,
    database: Path | None = None,
) -> Iterator[DataFileTable]:
    """Open a data file that is open for reading bytes.

    Args:
        file: The file.
        display_path: Its path in messages. The suffix is the format.
        sheet: As for `open_table`.
        writable_stream: As for `open_table`.
        database: A DuckDB file that the connection may write, with `COPY_OPTIONS`.

    Raises:
        ToolFailed, InvalidArguments: As `open_table`.
    """
    suffix = get_suffix(display_path)
    with contextlib.ExitStack() as stack:
        sheets: tuple[str, ...] = ()
        if suffix in SPREADSHEET_SUFFIXES:
            source, sheets = _convert_sheet_to_csv(stack, file, display_path, sheet)
            reader = "read_csv"
        else:
            source = _convert_to_utf8(stack, file, display_path) if suffix != ".parquet" else file
            reader = READER_FUNCTIONS[suffix]
        streams = [source] if writable_stream is None else [source, writable_stream]
        connection = _connect([get_descriptor_path(stream) for stream in streams], database, display_path)
        stack.callback(connection.close)
        _create_view(connection, reader, source, display_path)
        yield DataFileTable(connection, display_path, sheets)


def get_suffix(name: str) -> str:
    """Return the suffix of a file name in lower case."""
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 - a display path is text


def get_descriptor_path(stream: BinaryIO) -> str:
    """Return the path of an open file within this process, so that the checked file is the one that is read."""
    return f"/dev/fd/{stream.fileno()}"


@contextmanager
def translate_duckdb_errors(display_path: str) -> Iterator[None]:
    """Translate errors of DuckDB to `ToolFailed`, without the internal path."""
    import duckdb

    try:
        yield
    except (duckdb.Error, OverflowError, UnicodeDecodeError) as error:
        first_line, *lines = str(error).strip().partition("\n\n")[0].splitlines()
        if isinstance(error, duckdb.InterruptException) or "execution time" in first_line:
            raise ToolFailed(f"Reading {display_path} took too long and was stopped.") from error
        reason = f"{first_line}: {lines[-1]}" if lines and "CSV Error" in first_line else first_line
        message = " ".join(
            display_path if word.strip("\"'.,:;").startswith("/dev/fd/") else word for word in reason.split()
        )
        raise ToolFailed(f"{display_path} cannot be read so: {message[:500]}") from error


def _connect(allowed_paths: list[str], database: Path | None, display_path: str) -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise ToolUnavailable('Files of rows need the extra "files": pip install "opposable[files]".') from error
    with translate_duckdb_errors(display_path):  # such as a full disk
        connection = duckdb.connect(database or ":memory:", config=COPY_OPTIONS if database else RESTRICTED_OPTIONS)
    paths_sql = ", ".join(f"'{path}'" for path in allowed_paths)
    connection.execute(f"SET allowed_paths = [{paths_sql}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _create_view(connection: Any, reader_function: str, source: BinaryIO, display_path: str) -> None:
    """Create the view `data`. A CSV file whose cells do not fit the detected types is read as text."""
    import duckdb

    path = get_descriptor_path(source)
    with translate_duckdb_errors(display_path):
        reader = f"{reader_function}('{path}'"
        if reader_function == "read_parquet":  # the file has the types of its columns
            connection.execute(f"{CREATE_VIEW} {reader})")
            return
        if reader_function != "read_csv":
            connection.execute(f"{CREATE_VIEW} {_choose_reader(connection, reader)[0]}")
            return
        reader += LINE_OPTIONS
        padding = PADDING_OPTIONS if _has_ragged_rows(connection, reader, source) else ""
        for options in (padding, padding + TEXT_OPTIONS):
            try:
                connection.execute(f"{CREATE_VIEW} {_choose_csv_reader(connection, reader + options)}")
                connection.execute("SELECT count(COLUMNS(*)) FROM data").fetchall()
            except (duckdb.InvalidInputException, duckdb.ConversionException) as error:
                if "Maximum line size" in str(error):  # a tolerant reader would split the row
                    raise
            else:
                return
        connection.execute(f"{CREATE_VIEW} {reader}, all_varchar = true, strict_mode = false{PADDING_OPTIONS})")


def _choose_reader(connection: Any, call: str) -> tuple[str, dict[str, str]]:
    """Complete the call of a function that reads CSV or JSON, and return it with the types of its columns.

    DuckDB detects the columns from the first 20,480 rows. If all rows have others, it would read 1.5 as 2, 01234 as
    1234, and no keys that JSON objects have later.
    """
    sampled, complete = [(reader, _describe_columns(connection, reader)) for reader in _list_readers(call)]
    return sampled if sampled[1] == complete[1] else complete


def _choose_csv_reader(connection: Any, call: str) -> str:
    """Complete the call of `read_csv`. Dates that fit more than one order of day, month and year are text.

    DuckDB reads 02/01/2025 as 2 January, and 01.02.25 as 25 February 2001.
    """
    reader, types = _choose_reader(connection, call)
    if "column0" in types and _begins_with_years(connection.execute(f"FROM {reader} LIMIT 2").fetchall()):
        return _choose_csv_reader(connection, f"{call}, header = true")
    if not {"DATE", "TIMESTAMP"}.intersection(types.values()):
        return reader
    sniff = f"FROM sniff_csv{call.removeprefix('read_csv')})"
    [(has_header, *formats)] = connection.execute(f"SELECT HasHeader, DateFormat, TimestampFormat {sniff}").fetchall()
    text_columns: list[str] = []
    for option, column_type, date_format in zip(
        ("dateformat", "timestampformat"), ("DATE", "TIMESTAMP"), formats, strict=True
    ):
        columns = {name: column_type for name in types if types[name] == column_type}
        for other_format in _list_other_date_orders(date_format or ""):
            readers = _list_readers(f"{call}, {option} = '{other_format}'")  # the first rows decide about most files
            if all(columns.items() <= _describe_columns(connection, other).items() for other in readers):
                text_columns += columns
    if not text_columns:
        return reader
    text_types = ", ".join(f"{quote_identifier(name)}: 'VARCHAR'" for name in dict.fromkeys(text_columns))
    options = f"types = {{{text_types}}}" + ("" if "header =" in call else f", header = {has_header}")
    return f"{reader.removesuffix(')')}, {options})"  # without a date, another header would be detected


def _begins_with_years(rows: Sequence[Sequence[Any]]) -> bool:
    """Return whether the first row alone has consecutive years: DuckDB reads the header `name,2023,2024` as a row."""
    years = [[cell for cell in row if isinstance(cell, int | float) and 1900 <= cell <= 2100] for row in rows]
    are_consecutive = [len(row) > 1 and sorted(row) == [min(row) + n for n in range(len(row))] for row in years]
    return are_consecutive == [True, False]


def _list_other_date_orders(date_format: str) -> list[str]:
    """Return `%m/%d/%Y` for `%d/%m/%Y`. With dots, the day is first."""
    if date_format.startswith("%d."):
        return []
    order = date_format[1:8:3]
    return [
        date_format[:8].translate(str.maketrans(order, other)) + date_format[8:]
        for other in _OTHER_DATE_ORDERS.get(order, ())
    ]


def _list_readers(call: str) -> list[str]:
    """Return a call that detects the columns from the first rows, and one that detects them from all rows."""
    return [f"{call})", f"{call}, sample_size = -1)"]


def _describe_columns(connection: Any, reader: str) -> dict[str, str]:
    """Return the type of each column that a reader returns."""
    return {name: column_type for name, column_type, *_ in connection.execute(f"DESCRIBE FROM {reader}").fetchall()}


def _has_ragged_rows(connection: Any, call: str, source: BinaryIO) -> bool:
    """Return whether DuckDB would skip rows, or read all cells as one, because rows differ in their number of cells."""
    import duckdb

    sniff = f"FROM sniff_csv{call.removeprefix('read_csv')}"
    try:
        [(skipped_count, columns)] = connection.execute(f"SELECT SkipRows, Columns {sniff})").fetchall()
        if not skipped_count and len(columns) > 1:
            return False
        [(delimiter,)] = connection.execute(f"SELECT Delimiter {sniff}{PADDING_OPTIONS})").fetchall()
    except duckdb.Error:
        return False
    source.seek(0)
    split_count = sum(delimiter.encode() in source.readline() for _ in range(skipped_count))
    source.seek(0)
    return split_count > 1 or (len(columns) == 1 and delimiter in columns[0]["name"])  # one line may be a title


def _convert_to_utf8(stack: contextlib.ExitStack, file: BinaryIO, display_path: str) -> BinaryIO:
    """Return the file itself if it is UTF-8 without a byte-order mark, otherwise a private copy in UTF-8.

    The copy does not have a first line such as `sep=;`, which is for Excel.
    """
    beginning = file.read(65536)
    file.seek(0)
    chunks = iter(lambda: file.read(65536), b"")
    sample = next((chunk for chunk in chunks if not chunk.isascii()), b"")
    file.seek(0)
    encoding = detect_encoding(sample)
    if detect_encoding(beginning) is None and beginning.count(0) * 10 > len(beginning):  # a text may have a few
        raise ToolFailed(
            f"{display_path} is not a text file, or it is UTF-16 without a byte-order mark. Save it as UTF-8."
        )
    first_line = _SEPARATOR_LINE.match(beginning.decode(encoding or "utf-8", "replace"))
    if encoding in ("utf-8", None) and first_line is None:
        return file
    copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    reader = codecs.getreader(encoding or "utf-8")(file, "replace")
    if first_line is not None:
        reader.readline()
    while chunk := reader.read(1_000_000):
        copy.write(chunk.encode())
    copy.flush()
    return copy


def _convert_sheet_to_csv(
    stack: contextlib.ExitStack, file: BinaryIO, display_path: str, sheet: str | None
) -> tuple[BinaryIO, tuple[str, ...]]:
    """Return a sheet as CSV, and the names of all sheets. See `sheet_to_csv`."""
    library = find_spec("python_calamine")
    if library is None or library.origin is None:
        raise ToolUnavailable('Excel files need the extra "files": pip install "opposable[files]".')
    if os.fstat(file.fileno()).st_size > MAX_SPREADSHEET_BYTES:
        raise ToolFailed(
            f"{display_path} is larger than {MAX_SPREADSHEET_BYTES // 1_000_000} MB; save it as CSV first."
        )
    copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    library_folder = str(Path(library.origin).parents[1])  # the isolated process ignores PYTHONPATH
    command = [sys.executable, "-I", sheet_to_csv.__file__, library_folder, json.dumps(sheet)]
    try:
        process = subprocess.run(  # noqa: S603 - the command is fixed
            command,
            stdin=file,
            stdout=copy,
            stderr=subprocess.PIPE,
            timeout=SPREADSHEET_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolFailed(f"Reading {display_path} took too long and was stopped; save it as CSV first.") from error
    last_line = (process.stderr.splitlines() or [b""])[-1].decode(errors="replace")
    if process.returncode < 0 or last_line.startswith("MemoryError"):  # a failed allocation of the library aborts
        raise ToolFailed(
            f"{display_path} cannot be read: it needs too much memory, perhaps because its cells are far apart. "
            "Save it as CSV first."
        )
    if process.returncode != 0:
        raise ToolFailed(f"{display_path} cannot be read: {last_line[:500]}. Save it as CSV first.")
    report = json.loads(last_line)
    sheet_names = tuple(report["sheets"])
    if report["error"]:
        raise ToolFailed(f"{display_path} is not a spreadsheet that can be read: {report['error']}.")
    if sheet is not None and sheet not in sheet_names:
        problem = f"there is no such sheet; the sheets are {', '.join(sheet_names)}"
        raise InvalidArguments((FieldProblem("sheet", problem, repr(sheet)),))
    if not report["rows"]:
        raise EmptySheet(f"The sheet {sheet or sheet_names[0]} of {display_path} is empty.", sheet_names)
    return copy, sheet_names
