"""Files are read, described and converted inside the roots only."""

import sys

import openpyxl
import pytest
from tests.builtin_tools.rows import create_data_folder

from opposable.builtin_tools.data_files.file_processor import FileProcessor
from opposable.domain.call_context import NO_CONTEXT
from opposable.domain.errors import InvalidArguments, ToolError, ToolFailed, ToolRefused
from opposable.tools.function import tools_from_object


@pytest.fixture
def folder(tmp_path):
    return create_data_folder(tmp_path)


@pytest.fixture
def files(folder):
    return FileProcessor([folder])


@pytest.mark.parametrize("name", ["sales.csv", "mark.csv", "gbk.csv", "wide.csv"])
def test_rows_are_read_in_any_encoding(files, name):
    assert files.read(name, offset=1, limit=2) == {
        "path": name,
        "offset": 1,
        "columns": ["城市", "date", "amount", "units"],
        "more": "There are more rows; read on with offset=3.",
        "rows": [["北京", "2024-01-02", 20.0, 2], ["上海", "2024-01-03", 30.0, 3]],
    }


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("城市,金额\n上海,1\n北京,2\n合计\n", ["城市", "金额"], [["上海", 1], ["北京", 2], ["合计", None]]),
        ("a;b;c\n1;2\n3;4;5\n", ["a", "b", "c"], [[1, 2, None], [3, 4, 5]]),
        ("a,b\n1,2\n3,4,注\n", ["a", "b", "column2"], [[1, 2, None], [3, 4, "注"]]),
        ('a,b,c\n"x\ny",2,3\nz,4\n', ["a", "b", "c"], [["x\ny", 2, 3], ["z", 4, None]]),
        ("销售报表\n\n城市,金额\n上海,1\n", ["城市", "金额"], [["上海", 1]]),
        ("comment\nhello, world\nfoo\n", ["comment"], [["hello, world"], ["foo"]]),
    ],
)
def test_rows_with_fewer_or_more_cells_are_read(files, folder, text, columns, rows):
    (folder / "ragged.csv").write_text(text)
    read = files.read("ragged.csv")
    assert (read["columns"], read["rows"]) == (columns, rows)


@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        (["02/01/2025", "03/01/2025"], ["02/01/2025", "03/01/2025"]),  # the first of a month, or days of January
        (["01/02/25", "02/03/25"], ["01/02/25", "02/03/25"]),
        (["01.02.25", "31.12.24"], ["01.02.25", "31.12.24"]),
        (["1/2/2025 10:00:05", "1/3/2025 11:00:07"], ["1/2/2025 10:00:05", "1/3/2025 11:00:07"]),
        (["01/02/2025", "13/02/2025"], ["2025-02-01", "2025-02-13"]),
        (["01/02/2025", "02/13/2025"], ["2025-01-02", "2025-02-13"]),
        (["01.02.2025", "02.03.2025"], ["2025-02-01", "2025-03-02"]),
        (["2025/1/2", "2025/11/12"], ["2025-01-02", "2025-11-12"]),
    ],
)
def test_dates_with_more_than_one_reading_are_text(files, folder, dates, expected):
    (folder / "dates.csv").write_text(f"day's,iso,n\n{dates[0]},2025-01-02,1\n{dates[1]},2025-01-03,2\n")
    rows = files.read("dates.csv")["rows"]
    assert [row[0] for row in rows] == expected
    assert [row[1][:10] for row in rows] == ["2025-01-02", "2025-01-03"]


@pytest.mark.parametrize(("last", "first_day"), [("02/02/2025", "01/02/2025"), ("13/02/2025", "2025-02-01")])
def test_a_file_of_dates_without_a_header_has_all_its_rows(files, folder, last, first_day):
    (folder / "dates.csv").write_text(f"01/02/2025,Bonn\n{last},Ulm\n")
    assert [row[1] for row in files.read("dates.csv")["rows"]] == ["Bonn", "Ulm"]
    assert files.read("dates.csv")["rows"][0][0] == first_day


@pytest.mark.parametrize(
    ("text", "columns", "count"),
    [
        ("name,2023,2024\nx,1,2\ny,3,4\n", ["name", "2023", "2024"], 2),
        ("2024;2023\n1;2\n", ["2024", "2023"], 1),
        ("Report\n\nname,2023,2024\nx,1.5,2.5\ny,,0.1\n", ["name", "2023", "2024"], 2),
        ("day,2023,2024\n2020-01-02,1,2\n", ["day", "2023", "2024"], 1),
        ("Ada,2023,2024\nBob,2019,2020\n", ["column0", "column1", "column2"], 2),  # from a year to the next one
        ("x,2023,5\ny,2024,6\n", ["column0", "column1", "column2"], 2),
    ],
)
def test_years_in_the_first_row_alone_are_names_of_columns(files, folder, text, columns, count):
    (folder / "pivot.csv").write_text(text)
    read = files.read("pivot.csv")
    assert (read["columns"], len(read["rows"])) == (columns, count)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_a_separator_line_for_excel_is_no_row(files, folder, encoding):
    (folder / "export.csv").write_bytes("sep=;\r\nGröße;b\r\n1;2\r\n3;4;5\r\n".encode(encoding))
    read = files.read("export.csv")
    assert (read["columns"], read["rows"]) == (["Größe", "b", "column2"], [[1, 2, None], [3, 4, 5]])


def test_rows_that_begin_with_a_hash_are_no_comments(files, folder):
    (folder / "tickets.csv").write_text("id,name\n#1,Ada\n#2,Bob\n3,C# and F#\n")
    assert files.read("tickets.csv")["rows"] == [["#1", "Ada"], ["#2", "Bob"], ["3", "C# and F#"]]
    (folder / "tickets.csv").write_text("# exported today\nid,name\n1,Ada\n2,C#\n")
    assert files.read("tickets.csv")["rows"] == [[1, "Ada"], [2, "C#"]]


def test_a_cell_may_have_megabytes(files, folder):
    (folder / "long.csv").write_text('a,b\n1,"' + "x,\n" * 700_000 + '"\n2,z\n')
    assert [(row[0], row[1][:3]) for row in files.read("long.csv")["rows"]] == [(1, "x,\n"), (2, "z")]


def test_a_row_that_is_too_long_is_reported(files, folder):
    (folder / "long.csv").write_text('a,b\n1,"' + "x" * 17_000_000 + '"\n2,z\n')
    with pytest.raises(ToolFailed, match="CSV Error on Line: 1: Maximum line size of 16000000 bytes exceeded"):
        files.read("long.csv")


@pytest.mark.parametrize("cell", ['"Smith, John"', '"Smith\nJohn"'])
def test_the_first_quoted_cell_may_be_far_down(files, folder, cell):
    (folder / "long.csv").write_text("id,name\n" + "1,2\n" * 30_000 + f"3,{cell}\n")  # DuckDB samples 20,480
    assert files.read("long.csv", offset=29_999)["rows"] == [[1, "2"], [3, cell.strip('"')]]


@pytest.mark.parametrize(
    ("name", "head", "row", "last", "columns", "expected"),
    [
        ("zip.csv", "zip,n\n", "99501,1\n", "06001,2\n", ["zip", "n"], [["99501", 1], ["06001", 2]]),
        ("price.csv", "n,price\n", "1,2\n", "2,-\n", ["n", "price"], [[1, "2"], [2, "-"]]),
        ("price.ndjson", "", '{"a": 1}\n', '{"a": 1.5}\n', ["a"], [[1.0], [1.5]]),
        ("event.jsonl", "", '{"a": 1}\n', '{"a": 2, "b": "x"}\n', ["a", "b"], [[1, None], [2, "x"]]),
        ("list.json", "[", '{"a": 1},\n', '{"a": "x"}]', ["a"], [["1"], ['"x"']]),
    ],
)
def test_later_rows_may_have_other_columns_and_types(files, folder, name, head, row, last, columns, expected):
    (folder / name).write_text(head + row * 30_000 + last)
    read = files.read(name, offset=29_999)
    assert (read["columns"], read["rows"]) == (columns, expected)


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
def test_the_first_chinese_cell_may_be_far_down(files, folder, encoding):
    (folder / "long.csv").write_text("id,name\n" + "1,x\n" * 30_000 + "2,城市\n", encoding=encoding)
    assert files.read("long.csv", offset=30_000)["rows"] == [[2, "城市"]]


@pytest.mark.parametrize(
    ("name", "sheet", "columns", "rows"),
    [
        ("people.json", None, ["name", "age"], [["Mara", 41], ["张三", 29]]),
        ("people.ndjson", None, ["name", "age"], [["Mara", 41], ["张三", 29]]),
        ("book.xlsx", None, ["城市", "amount"], [["上海", 10.5], ["北京", 20.0]]),
        ("book.xlsx", "second", ["x"], [[7]]),
    ],
)
def test_other_formats_are_read(files, name, sheet, columns, rows):
    result = files.read(name, sheet=sheet)
    assert (result["columns"], result["rows"]) == (columns, rows)


def test_json_may_have_a_byte_order_mark(files, folder):
    (folder / "mark.json").write_text('[{"id": 1}, {"id": 2}]', encoding="utf-8-sig")
    assert files.read("mark.json")["rows"] == [[1], [2]]


def test_lines_of_a_text_are_read_in_pages(files):
    assert files.read("notes.txt", offset=1, limit=1) == {
        "path": "notes.txt",
        "offset": 1,
        "more": "There are more lines; read on with offset=2.",
        "text": "第二行",
    }


def test_numbers_of_a_table_have_all_their_digits(files, folder):
    (folder / "money.csv").write_text("n\n1234567.89\n0.1\n")
    assert files.head("money.csv")["table"].split() == ["n", "----------", "1234567.89", "0.1"]


def test_a_title_above_a_sheet_is_skipped(files, folder):
    workbook = openpyxl.Workbook()
    for row in (["Report 2025"], [], ["region", "city", "n"], ["North", "Kiel", 1], ["", "Bremen", 2]):
        workbook.worksheets[0].append(row)
    workbook.worksheets[0].merge_cells("A1:C1")
    workbook.save(folder / "report.xlsx")
    read = files.read("report.xlsx")
    assert (read["columns"], read["rows"]) == (["region", "city", "n"], [["North", "Kiel", 1], [None, "Bremen", 2]])


def test_head_returns_a_table(files):
    assert files.head("people.json") == {
        "path": "people.json",
        "table": "name | age\n-----+----\nMara | 41\n张三 | 29",
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gbk.csv", {"encoding": "gb18030", "kind": "csv", "rows": 4}),
        (
            "people.json",
            {"encoding": "utf-8", "kind": "json", "rows": 2, "columns": {"name": "VARCHAR", "age": "BIGINT"}},
        ),
        ("book.xlsx", {"kind": "xlsx", "rows": 2, "sheets": ["销售", "second"]}),
        ("notes.txt", {"encoding": "gb18030", "kind": "text", "lines": 3}),
        ("blob.bin", {"kind": "binary", "bytes": 3}),
    ],
)
def test_info_describes_a_file(files, name, expected):
    assert expected.items() <= files.info(name).items()


@pytest.mark.parametrize(
    "target", ["new.csv", "new.tsv", "new.json", "new.ndjson", "new.jsonl", "new.parquet", "new.xlsx"]
)
def test_converted_file_has_the_same_rows(files, folder, target):
    assert files.convert("people.json", target) == {"path": target, "rows": 2, "columns": ["name", "age"]}
    assert files.read(target)["rows"] == [["Mara", 41], ["张三", 29]]
    assert not list(folder.glob(".*"))


def test_formula_text_is_written_as_text(files, folder):
    (folder / "evil.csv").write_text("a,b\n=1+1,2\n")
    files.convert("evil.csv", "evil.xlsx")
    sheet = openpyxl.load_workbook(folder / "evil.xlsx").active
    assert (sheet["A2"].value, sheet["A2"].data_type) == ("=1+1", "s")


def test_existing_file_is_overwritten_only_when_owner_and_model_allow_it(folder, files):
    before = (folder / "sales.csv").read_bytes()
    with pytest.raises(ToolFailed, match="already"):
        files.convert("people.json", "sales.csv")
    with pytest.raises(ToolRefused, match="may not be overwritten"):
        files.convert("people.json", "sales.csv", overwrite=True)
    assert (folder / "sales.csv").read_bytes() == before
    FileProcessor([folder], allow_overwrite=True).convert("people.json", "sales.csv", overwrite=True)
    assert files.read("sales.csv")["columns"] == ["name", "age"]


@pytest.mark.parametrize("target", ["../new.csv", "/etc/new.csv", "~/new.csv", "none/new.csv", "../data2/new.csv"])
def test_target_outside_the_roots_is_refused(folder, files, target):
    with pytest.raises((ToolRefused, ToolFailed)):
        files.convert("people.json", target)
    assert not list(folder.parent.glob("*.csv.*"))
    assert [path.name for path in folder.parent.glob("*.csv")] == ["secret.csv"]


def test_symbolic_link_is_not_overwritten(folder, files):
    owner = FileProcessor([folder], allow_overwrite=True)
    for overwrite in (False, True):
        with pytest.raises(ToolError):
            files.convert("people.json", "link.csv", overwrite=overwrite)
    owner.convert("people.json", "link.csv", overwrite=True)
    assert (folder.parent / "secret.csv").read_text() == "secret\n1\n"


@pytest.mark.parametrize(
    ("name", "failure", "message"),
    [
        ("../secret.csv", ToolRefused, "leads out"),
        ("link.csv", ToolRefused, "link"),
        ("sale.csv", ToolFailed, "Did you mean sales.csv"),
        ("blob.bin", ToolRefused, "is not a text file"),
        ("broken.parquet", ToolFailed, "broken.parquet cannot be read so"),
        ("broken.xlsx", ToolFailed, "is not a spreadsheet"),
    ],
)
def test_unreadable_file_is_reported(files, name, failure, message):
    with pytest.raises(failure, match=message) as raised:
        files.read(name)
    assert "/dev/fd" not in str(raised.value)


def test_unknown_sheet_and_suffix_are_reported(files):
    with pytest.raises(InvalidArguments, match="the sheets are 销售, second"):
        files.read("book.xlsx", sheet="third")
    with pytest.raises(InvalidArguments, match="its ending must be one of"):
        files.convert("people.json", "people.docx")


def test_csv_with_inconsistent_types_is_read_as_text(folder, files):
    lines = ["a,b", *(f"{n},{n}" for n in range(30_000)), "x,1", "only", ""]
    (folder / "odd.csv").write_text("\n".join(lines))
    assert files.read("odd.csv", offset=30_000)["rows"] == [["x", "1"], ["only", None]]


@pytest.mark.anyio
async def test_four_actions_are_offered_to_the_model(files):
    tools = {tool.tool_id: tool for tool in tools_from_object(files, "file_processor")}
    assert list(tools) == [
        "file_processor.convert",
        "file_processor.head",
        "file_processor.info",
        "file_processor.read",
    ]
    assert all(tool.definition.description.count(".") <= 2 for tool in tools.values())
    tool = tools["file_processor.head"]
    result = await tool.run(tool.check({"path": "people.json", "rows": "1"}), NO_CONTEXT)
    assert result["table"] == "name | age\n-----+----\nMara | 41"


def test_a_spreadsheet_with_cells_far_apart_is_reported(folder, files):
    workbook = openpyxl.Workbook()
    workbook.active["A1"] = workbook.active["XFD1048576"] = "x"
    workbook.save(folder / "far.xlsx")
    with pytest.raises(ToolFailed, match=r"far\.xlsx cannot be read: it needs too much memory"):
        files.read("far.xlsx")


def test_spreadsheets_are_read_without_the_site_packages_of_the_interpreter(files, monkeypatch):
    monkeypatch.setattr(sys, "executable", sys._base_executable)  # as where packages come from PYTHONPATH
    assert files.read("book.xlsx", sheet="second")["rows"] == [[7]]


def test_another_failure_of_the_spreadsheet_process_has_its_message(files, monkeypatch, tmp_path):
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho 'ValueError: year 0 is out of range' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(ToolFailed, match=r"book\.xlsx cannot be read: ValueError: year 0 is out of range\. Save it"):
        files.read("book.xlsx")


@pytest.mark.parametrize(
    ("content", "lines"), [(b"", 0), (b"a", 1), (b"a\nb", 2), (b"a\r\nb\r\n", 2), ("上上上\n下\n".encode("utf-16"), 2)]
)
def test_lines_of_text_are_counted_as_they_are_read(files, folder, content, lines):
    (folder / "notes.txt").write_bytes(content)
    assert files.info("notes.txt")["lines"] == lines


def test_times_with_a_zone_are_text_in_a_spreadsheet(files, folder):
    (folder / "zones.csv").write_text("at,amount\n2024-01-01T08:00:00+08:00,1\n")
    files.convert("zones.csv", "zones.xlsx")
    [[at, amount]] = list(openpyxl.load_workbook(folder / "zones.xlsx").active.iter_rows(min_row=2, values_only=True))
    assert (at[:10], at[-6:], amount) == ("2024-01-01", "+00:00", 1)
