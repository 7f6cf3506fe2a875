"""Program that converts a sheet of a spreadsheet to CSV.

It runs in a process of its own with limited memory. A file of a few kilobytes with two cells that are far apart makes
the library that reads spreadsheets allocate all cells between them, and a failed allocation ends its process.
"""

import csv
import io
import json
import sys
from contextlib import suppress
from typing import Any

MAX_MEMORY_BYTES = 2 * 2**30


def main() -> None:
    """Run `sheet_to_csv FOLDER SHEET`.

    FOLDER is where `python_calamine` is installed. SHEET is a JSON string, or null for the first sheet.

    It reads the spreadsheet from standard input and writes the CSV to standard output. The last line of standard
    error is a JSON object: `sheets` (names), `rows` (their number) and `error` ("" if the file was read).
    """
    _limit_memory()
    library_folder, sheet_json = sys.argv[1:]
    sys.path.append(library_folder)
    import python_calamine

    sheet = json.loads(sheet_json)
    report: dict[str, Any] = {"sheets": [], "rows": 0, "error": ""}
    try:
        workbook = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(sys.stdin.buffer.read()))
        report["sheets"] = workbook.sheet_names
        if sheet is None or sheet in workbook.sheet_names:
            rows = workbook.get_sheet_by_name(sheet or workbook.sheet_names[0]).to_python()
            report["rows"] = len(rows)
            table_rows = (index for index, row in enumerate(rows) if sum(value != "" for value in row) > 1)
            table = rows[next(table_rows, 0) :]  # rows of one cell above it are a title
            writer = io.TextIOWrapper(sys.stdout.buffer, "utf-8", newline="", write_through=True)
            csv.writer(writer).writerows([_to_csv_value(value) for value in row] for row in table)
    except (python_calamine.CalamineError, OSError, IndexError) as error:
        report["error"] = str(error)
    sys.stderr.write(f"{json.dumps(report)}\n")


def _limit_memory() -> None:
    with suppress(ImportError, ValueError, OSError):  # systems without this limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _to_csv_value(value: Any) -> Any:
    """Convert a cell for CSV: whole numbers without .0, dates in ISO format."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


if __name__ == "__main__":
    main()
