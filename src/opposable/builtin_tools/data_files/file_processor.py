"""Tool that reads, describes and converts files in allowed folders."""

import io
import itertools
from pathlib import Path
from typing import Any, BinaryIO

from opposable.builtin_tools.data_files.duckdb_view import (
    READER_FUNCTIONS,
    SPREADSHEET_SUFFIXES,
    DataFileTable,
    get_descriptor_path,
    get_suffix,
    open_table,
    translate_duckdb_errors,
)
from opposable.builtin_tools.data_files.table_text import format_table
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolRefused, ToolUnavailable
from opposable.safety.filesystem.allowed_roots import AllowedRoots, RootedPath
from opposable.safety.filesystem.text_decoding import detect_encoding, truncate_line

_MAX_ROWS = 500
_MAX_LINE_CHARACTERS = 1000
_MAX_PAGE_CHARACTERS = 15_000
_MAX_CELL_CHARACTERS = 500
_MAX_SPREADSHEET_ROWS = 200_000
_COPY_OPTIONS = {
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".json": "FORMAT json, ARRAY true",
    ".ndjson": "FORMAT json",
    ".jsonl": "FORMAT json",
    ".parquet": "FORMAT parquet",
}
_WRITABLE_SUFFIXES = (*_COPY_OPTIONS, ".xlsx")


class FileProcessor:
    """Processing of files: text, CSV, JSON, NDJSON, Parquet and Excel.

    Args:
        roots: The only folders that are read, and written by `convert`.
        allow_overwrite: Whether `convert` may replace a file on request.
    """

    def __init__(self, roots: list[Path], *, allow_overwrite: bool = False) -> None:
        self._roots = AllowedRoots([Path(root) for root in roots])
        self._allow_overwrite = allow_overwrite

    def read(self, path: str, offset: int = 0, limit: int = 50, sheet: str | None = None) -> dict[str, Any]:
        """Read rows of a CSV, JSON, Parquet or Excel file, or lines of a text file.

        Args:
            path: the file, such as data/sales.csv.
            offset: how many rows or lines to pass over first.
            limit: how many rows or lines to read.
            sheet: the sheet of an Excel file; the first when left out.
        """
        first_row, max_rows = max(0, offset), max(1, min(limit, _MAX_ROWS))
        if get_suffix(path.strip().strip("\"'")) not in (*READER_FUNCTIONS, *SPREADSHEET_SUFFIXES):
            return self._read_lines(path, first_row, max_rows)
        with open_table(self._roots, path, sheet) as table:
            rows = table.fetch_rows("SELECT * FROM data LIMIT ? OFFSET ?", [max_rows + 1, first_row])
            columns = [column.name for column in table.columns]
            result: dict[str, Any] = {"path": table.display_path, "offset": first_row, "columns": columns}
            clipped_rows = [[_clip_value(value) for value in row] for row in rows[:max_rows]]
            if len(rows) > max_rows:
                result["more"] = f"There are more rows; read on with offset={first_row + max_rows}."
            return result | {"rows": clipped_rows}

    def head(self, path: str, rows: int = 5) -> dict[str, Any]:
        """Show the first rows of a file as a table, or its first lines.

        Args:
            path: the file, such as data/sales.csv.
            rows: how many rows or lines.
        """
        content = self.read(path, 0, rows)
        if "rows" not in content:
            return content
        return {"path": content["path"], "table": format_table(content["columns"], content["rows"])}

    def info(self, path: str, sheet: str | None = None) -> dict[str, Any]:
        """Tell a file's size, kind, encoding, columns with their types, and number of rows or lines.

        Args:
            path: the file, such as data/sales.csv.
            sheet: the sheet of an Excel file; the first when left out.
        """
        rooted_path = self._roots.find(path)
        display_path = self._roots.format_path(rooted_path)
        with self._roots.open_file(rooted_path) as file:
            result: dict[str, Any] = {"path": display_path, "bytes": file.size}
            encoding = detect_encoding(file.stream.read(65536))
        if encoding is not None:
            result["encoding"] = encoding
        if get_suffix(display_path) not in (*READER_FUNCTIONS, *SPREADSHEET_SUFFIXES):
            if encoding is None:
                return result | {"kind": "binary"}
            return result | {"kind": "text", "lines": self._count_lines(rooted_path, display_path)}
        with open_table(self._roots, path, sheet) as table:
            result |= {"kind": get_suffix(display_path)[1:], "rows": table.count_rows()}
            result["columns"] = {column.name: column.type for column in table.columns}
            return result | ({"sheets": list(table.sheets)} if table.sheets else {})

    def convert(self, path: str, target: str, sheet: str | None = None, overwrite: bool = False) -> dict[str, Any]:
        """Convert a file of rows into another format, told by the target's ending: csv, tsv, json, ndjson, parquet, xlsx.

        Args:
            path: the file to read, such as data/sales.xlsx.
            target: the new file, such as data/sales.parquet.
            sheet: the sheet of an Excel file; the first when left out.
            overwrite: replace the target when it is there already.
        """
        suffix = get_suffix(target.strip().strip("\"'"))
        if suffix not in _WRITABLE_SUFFIXES:
            problem = f"its ending must be one of {', '.join(_WRITABLE_SUFFIXES)}"
            raise InvalidArguments((FieldProblem("target", problem, repr(target[:60])),))
        if overwrite and not self._allow_overwrite:
            raise ToolRefused("Files may not be overwritten here; give the name of a new file.")
        rooted_path = self._roots.resolve_new_path(target, "target")
        with (
            self._roots.create_file(rooted_path, overwrite) as stream,
            open_table(self._roots, path, sheet, stream) as table,
        ):
            rows = _write_spreadsheet(table, stream) if suffix == ".xlsx" else _write_with_duckdb(table, stream, suffix)
        columns = [column.name for column in table.columns]
        return {"path": self._roots.format_path(rooted_path), "rows": rows, "columns": columns}

    def _read_lines(self, path: str, offset: int, limit: int) -> dict[str, Any]:
        rooted_path = self._roots.find(path)
        display_path = self._roots.format_path(rooted_path)
        with self._roots.open_file(rooted_path) as file:
            reader = self._open_text_reader(file.stream, display_path)
            page_lines = [
                truncate_line(line.rstrip("\r\n"), _MAX_LINE_CHARACTERS)
                for line in itertools.islice(reader, offset, offset + limit)
            ]
            has_more = bool(reader.readline(1))
        if not page_lines and offset:
            raise ToolFailed(f"{display_path} has no line after the first {offset}.")
        result: dict[str, Any] = {"path": display_path, "offset": offset}
        while len(page_lines) > 1 and sum(map(len, page_lines)) > _MAX_PAGE_CHARACTERS:
            page_lines.pop()
            has_more = True
        if has_more:
            result["more"] = f"There are more lines; read on with offset={offset + len(page_lines)}."
        return result | {"text": "\n".join(page_lines)}

    def _count_lines(self, rooted_path: RootedPath, display_path: str) -> int:
        lines, last = 0, "\n"
        with self._roots.open_file(rooted_path) as file:
            reader = self._open_text_reader(file.stream, display_path)
            while chunk := reader.read(1_000_000):
                lines, last = lines + chunk.count("\n"), chunk[-1]
        return lines + (last != "\n")

    def _open_text_reader(self, stream: BinaryIO, display_path: str) -> io.TextIOWrapper:
        sample = stream.read(65536)
        stream.seek(0)
        encoding = detect_encoding(sample)
        if encoding is None:
            raise ToolRefused(f"{display_path} is not a text file.")
        return io.TextIOWrapper(stream, encoding, "replace")


def _clip_value(value: Any) -> Any:
    if isinstance(value, list | dict) and len(str(value)) > _MAX_CELL_CHARACTERS:
        value = str(value)
    return truncate_line(value, _MAX_CELL_CHARACTERS) if isinstance(value, str) else value


def _write_with_duckdb(table: DataFileTable, stream: BinaryIO, suffix: str) -> int:
    copied_rows = table.execute(
        f"COPY data TO '{get_descriptor_path(stream)}' ({_COPY_OPTIONS[suffix]}, USE_TMP_FILE false)"
    ).fetchall()
    return int(copied_rows[0][0])


def _write_spreadsheet(table: DataFileTable, stream: BinaryIO) -> int:
    """Write a spreadsheet. Text stays text: a cell that starts with = is not a formula."""
    try:
        import openpyxl
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    except ImportError as error:
        raise ToolUnavailable('Excel files need the extra "files": pip install "opposable[files]".') from error
    if (count := table.count_rows()) > _MAX_SPREADSHEET_ROWS:
        raise ToolFailed(
            f"{table.display_path} has {count:,} rows; a sheet may get {_MAX_SPREADSHEET_ROWS:,}. Convert it to CSV."
        )
    workbook = openpyxl.Workbook(write_only=True)
    sheet = workbook.create_sheet("data")

    def to_cell(value: Any) -> Any:
        if getattr(value, "tzinfo", None) is not None:  # spreadsheets have no time zones
            value = value.isoformat()
        if not isinstance(value, str):
            return value if isinstance(value, int | float | None) or hasattr(value, "isoformat") else str(value)
        cell = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("", value)[:32_767])
        cell.data_type = "s"
        return cell

    sheet.append([to_cell(column.name) for column in table.columns])
    cursor = table.execute("SELECT * FROM data")
    with translate_duckdb_errors(table.display_path):
        while rows := cursor.fetchmany(1000):
            for row in rows:
                sheet.append([to_cell(value) for value in row])
    workbook.save(stream)
    return count
