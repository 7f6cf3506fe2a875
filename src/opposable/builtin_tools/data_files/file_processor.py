"""Reads, describes and converts files inside the folders that are allowed."""

import io
import itertools
from pathlib import Path
from typing import Any, BinaryIO

from opposable.builtin_tools.data_files.duckdb_view import (
    READERS,
    SHEETS,
    Table,
    descriptor_path,
    opened_table,
    suffix_of,
    told,
)
from opposable.builtin_tools.data_files.table_text import text_table
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolRefused, ToolUnavailable
from opposable.safety.filesystem.allowed_roots import Place, Roots
from opposable.safety.filesystem.text_decoding import clipped, encoding_of

_MOST_ROWS = 500
_LINE = 1000
_PAGE = 15_000
_CELL = 500
_MOST_SHEET_ROWS = 200_000
_FORMATS = {
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".json": "FORMAT json, ARRAY true",
    ".ndjson": "FORMAT json",
    ".jsonl": "FORMAT json",
    ".parquet": "FORMAT parquet",
}
_WRITTEN = (*_FORMATS, ".xlsx")


class FileProcessor:
    """Works on files under `roots`: text, CSV, JSON, NDJSON, Parquet, Excel.

    Args:
        roots: the only folders that are read, and written by `convert`.
        allow_overwrite: whether `convert` may replace a file when it is asked to.
    """

    def __init__(self, roots: list[Path], *, allow_overwrite: bool = False) -> None:
        self._roots = Roots([Path(root) for root in roots])
        self._allow_overwrite = allow_overwrite

    def read(self, path: str, offset: int = 0, limit: int = 50, sheet: str | None = None) -> dict[str, Any]:
        """Read rows of a CSV, JSON, Parquet or Excel file, or lines of a text file.

        Args:
            path: the file, such as data/sales.csv.
            offset: how many rows or lines to pass over first.
            limit: how many rows or lines to read.
            sheet: the sheet of an Excel file; the first when left out.
        """
        first, most = max(0, offset), max(1, min(limit, _MOST_ROWS))
        if suffix_of(path.strip().strip("\"'")) not in (*READERS, *SHEETS):
            return self._lines(path, first, most)
        with opened_table(self._roots, path, sheet) as table:
            rows = table.rows("SELECT * FROM data LIMIT ? OFFSET ?", [most + 1, first])
            columns = [column.name for column in table.columns]
            result: dict[str, Any] = {"path": table.shown, "offset": first, "columns": columns}
            kept = [[_cut(value) for value in row] for row in rows[:most]]
            if len(rows) > most:
                result["more"] = f"There are more rows; read on with offset={first + most}."
            return result | {"rows": kept}

    def head(self, path: str, rows: int = 5) -> dict[str, Any]:
        """Show the first rows of a file as a table, or its first lines.

        Args:
            path: the file, such as data/sales.csv.
            rows: how many rows or lines.
        """
        told = self.read(path, 0, rows)
        if "rows" not in told:
            return told
        return {"path": told["path"], "table": text_table(told["columns"], told["rows"])}

    def info(self, path: str, sheet: str | None = None) -> dict[str, Any]:
        """Tell a file's size, kind, encoding, columns with their types, and number of rows or lines.

        Args:
            path: the file, such as data/sales.csv.
            sheet: the sheet of an Excel file; the first when left out.
        """
        place = self._roots.find(path)
        shown = self._roots.shown(place)
        with self._roots.opened(place) as file:
            result: dict[str, Any] = {"path": shown, "bytes": file.size}
            encoding = encoding_of(file.stream.read(65536))
        if encoding is not None:
            result["encoding"] = encoding
        if suffix_of(shown) not in (*READERS, *SHEETS):
            return result | ({"kind": "binary"} if encoding is None else {"kind": "text", "lines": self._count(place)})
        with opened_table(self._roots, path, sheet) as table:
            result |= {"kind": suffix_of(shown)[1:], "rows": table.count()}
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
        kind = suffix_of(target.strip().strip("\"'"))
        if kind not in _WRITTEN:
            problem = f"its ending must be one of {', '.join(_WRITTEN)}"
            raise InvalidArguments((FieldProblem("target", problem, repr(target[:60])),))
        if overwrite and not self._allow_overwrite:
            raise ToolRefused("Files may not be overwritten here; give the name of a new file.")
        place = self._roots.new_place(target, "target")
        with self._roots.created(place, overwrite) as stream, opened_table(self._roots, path, sheet, stream) as table:
            rows = _write_sheet(table, stream) if kind == ".xlsx" else _copy(table, stream, kind)
        return {"path": self._roots.shown(place), "rows": rows, "columns": [column.name for column in table.columns]}

    def _lines(self, path: str, first: int, most: int) -> dict[str, Any]:
        place = self._roots.find(path)
        shown = self._roots.shown(place)
        with self._roots.opened(place) as file:
            reader = self._reader(file.stream, shown)
            page = [clipped(line.rstrip("\r\n"), _LINE) for line in itertools.islice(reader, first, first + most)]
            more = bool(reader.readline(1))
        if not page and first:
            raise ToolFailed(f"{shown} has no line after the first {first}.")
        result: dict[str, Any] = {"path": shown, "offset": first}
        while len(page) > 1 and sum(map(len, page)) > _PAGE:
            page.pop()
            more = True
        if more:
            result["more"] = f"There are more lines; read on with offset={first + len(page)}."
        return result | {"text": "\n".join(page)}

    def _count(self, place: Place) -> int:
        with self._roots.opened(place) as file:
            return sum(piece.count(b"\n") for piece in iter(lambda: file.stream.read(1_000_000), b""))

    def _reader(self, stream: BinaryIO, shown: str) -> io.TextIOWrapper:
        sample = stream.read(65536)
        stream.seek(0)
        encoding = encoding_of(sample)
        if encoding is None:
            raise ToolRefused(f"{shown} is no text file.")
        return io.TextIOWrapper(stream, encoding, "replace")


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return clipped(value, _CELL)
    return clipped(str(value), _CELL) if isinstance(value, list | dict) and len(str(value)) > _CELL else value


def _copy(table: Table, stream: BinaryIO, kind: str) -> int:
    copied = table.raw(f"COPY data TO '{descriptor_path(stream)}' ({_FORMATS[kind]}, USE_TMP_FILE false)").fetchall()
    return int(copied[0][0])


def _write_sheet(table: Table, stream: BinaryIO) -> int:
    """Text stays text: a cell that begins with = is written as a string, never as a formula."""
    try:
        import openpyxl
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    except ImportError as error:
        raise ToolUnavailable('Excel files need the extra "files": pip install "opposable[files]".') from error
    if (count := table.count()) > _MOST_SHEET_ROWS:
        raise ToolFailed(f"{table.shown} has {count:,} rows; a sheet may get {_MOST_SHEET_ROWS:,}. Convert it to CSV.")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("data")

    def written(value: Any) -> Any:
        if not isinstance(value, str):
            return value if isinstance(value, int | float | None) or hasattr(value, "isoformat") else str(value)
        made = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("", value)[:32_767])
        made.data_type = "s"
        return made

    sheet.append([written(column.name) for column in table.columns])
    cursor = table.raw("SELECT * FROM data")
    with told(table.shown):
        while rows := cursor.fetchmany(1000):
            for row in rows:
                sheet.append([written(value) for value in row])
    book.save(stream)
    return count
