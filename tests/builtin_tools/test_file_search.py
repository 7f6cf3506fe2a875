"""Names and text are found in both languages, and files are read in pages."""

import pytest

from opposable.builtin_tools.file_search import FileSearch
from opposable.domain.errors import InvalidArguments, ToolFailed, ToolRefused


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "calculator.md").write_text("# Title\n\nThe Calculator adds.\nUse the calculator daily.\n")
    (tmp_path / "docs" / "guide.md").write_text("A guide.\nSee the calculator page.\n")
    (tmp_path / "notes-zh.md").write_text("第一行\n平均值由计算器求出。\n", encoding="utf-8")
    (tmp_path / "gbk.txt").write_bytes("旧文件：平均值是三。\n".encode("gb18030"))
    (tmp_path / "mark.csv").write_bytes("\ufeffname,城市\nMara,柏林\n".encode())
    (tmp_path / "wide.txt").write_bytes("Straße in Köln, ＡＰＩ密钥\n".encode("utf-16"))
    (tmp_path / "program.bin").write_bytes(b"calculator\0\1\2")
    (tmp_path / ".hidden").write_text("calculator\n")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "x.js").write_text("calculator\n")
    return tmp_path


def test_matches_have_a_stable_order(folder):
    assert FileSearch([folder]).file_search("CALCULATOR") == {
        "query": "CALCULATOR",
        "total_matches": 4,
        "files": ["docs/calculator.md", "docs/guide.md"],
        "matches": [
            {"path": "docs/calculator.md", "text": "(the file's name matches)"},
            {"path": "docs/calculator.md", "line": 3, "text": "The Calculator adds."},
            {"path": "docs/calculator.md", "line": 4, "text": "Use the calculator daily."},
            {"path": "docs/guide.md", "line": 2, "text": "See the calculator page."},
        ],
    }


def test_limit_is_shared_between_files(folder):
    result = FileSearch([folder]).file_search("calculator", limit=2)
    assert result["total_matches"] == 4
    assert [match["path"] for match in result["matches"]] == ["docs/calculator.md", "docs/guide.md"]


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("平均值", ["gbk.txt", "notes-zh.md"]),
        ("「计算器」", ["notes-zh.md"]),
        ("'calculator daily'", ["docs/calculator.md"]),
        ("城市", ["mark.csv"]),
        ("STRASSE", ["wide.txt"]),
        ("api密钥", ["wide.txt"]),
        ("*.csv", ["mark.csv"]),
        ("guide.md", ["docs/guide.md"]),
        ("docs/g", ["docs/guide.md"]),
    ],
)
def test_files_are_found_in_both_languages_and_several_encodings(folder, query, files):
    assert FileSearch([folder]).file_search(query)["files"] == files


def test_words_of_a_phrase_are_searched_in_one_line(folder):
    result = FileSearch([folder]).file_search("page calculator")
    assert result["matches"] == [{"path": "docs/guide.md", "line": 2, "text": "See the calculator page."}]
    assert result["notes"] == ["The whole phrase occurs nowhere; these lines have all of its words."]


@pytest.mark.parametrize("root_dir", ["docs", "./docs", "/docs", "docs/", "docs/guide.md"])
def test_root_dir_narrows_the_search(folder, root_dir):
    result = FileSearch([folder]).file_search("page", root_dir=root_dir)
    assert result["files"] == ["docs/guide.md"]


@pytest.mark.parametrize("root_dir", [None, "", ".", "./", "/"])
def test_without_a_folder_everything_is_searched(folder, root_dir):
    assert FileSearch([folder]).file_search("第一行", root_dir=root_dir)["files"] == ["notes-zh.md"]


def test_result_without_matches_reports_what_was_searched(folder):
    assert FileSearch([folder]).file_search("xylophone", root_dir="docs") == {
        "query": "xylophone",
        "total_matches": 0,
        "files": [],
        "matches": [],
        "message": "Nothing found for 'xylophone': names and text of 2 files in docs were searched.",
    }


def test_large_file_is_skipped_and_reported(folder):
    (folder / "large.txt").write_text("needle\n" * 300_000)
    result = FileSearch([folder], max_file_bytes=2_000_000).file_search("needle")
    assert result["total_matches"] == 0
    assert result["notes"] == ["Not searched, larger than 2 MB: large.txt"]


def test_slow_search_stops_and_reports_partial_results(folder):
    result = FileSearch([folder], timeout_seconds=0).file_search("calculator")
    assert result["notes"] == ["Partial: the search was stopped after 0 seconds."]


def test_snippet_of_a_long_line_contains_the_match(folder):
    (folder / "long.txt").write_text("a" * 5000 + " needle " + "b" * 5000)
    (match,) = FileSearch([folder]).file_search("needle")["matches"]
    assert len(match["text"]) < 170
    assert " needle " in match["text"]


@pytest.mark.parametrize("query", ["", "  ", "''", "x" * 501])
def test_empty_query_is_reported(folder, query):
    with pytest.raises(InvalidArguments, match="query: give a word or phrase"):
        FileSearch([folder]).file_search(query)


@pytest.mark.parametrize("limit", [-5, 0, 10**9])
def test_limit_is_clamped(folder, limit):
    assert 1 <= len(FileSearch([folder]).file_search("calculator", limit=limit)["matches"]) <= 100


def test_undecodable_file_name_is_replaced(folder):
    try:
        (folder / "bad\udcff.txt").write_text("needle")
    except OSError:
        pytest.skip("this file system takes text names only")
    assert FileSearch([folder]).file_search("needle")["files"] == ["bad\ufffd.txt"]


def test_file_is_read_page_by_page(folder):
    (folder / "count.txt").write_text("".join(f"line {n}\n" for n in range(1, 8)))
    search = FileSearch([folder])
    assert search.read_file("count.txt", start_line=3, lines=2) == {
        "path": "count.txt",
        "start_line": 3,
        "end_line": 4,
        "more": "The file goes on after line 4; read on with start_line=5.",
        "text": "line 3\nline 4",
    }
    assert search.read_file("count.txt", start_line=6) == {
        "path": "count.txt",
        "start_line": 6,
        "end_line": 7,
        "text": "line 6\nline 7",
    }
    with pytest.raises(ToolFailed, match="has only 7 lines"):
        search.read_file("count.txt", start_line=8)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("gbk.txt", "旧文件：平均值是三。"),
        ("mark.csv", "name,城市\nMara,柏林"),
        ("wide.txt", "Straße in Köln, ＡＰＩ密钥"),
    ],
)
def test_files_are_read_in_their_encoding(folder, path, text):
    assert FileSearch([folder]).read_file(path)["text"] == text


def test_empty_file_has_no_lines(folder):
    (folder / "empty.txt").touch()
    assert FileSearch([folder]).read_file("empty.txt") == {
        "path": "empty.txt",
        "start_line": 1,
        "end_line": 0,
        "text": "",
    }


def test_long_lines_are_whole(folder):
    paragraph = "每一段都在同一行。" * 900
    (folder / "article.md").write_text(f"# 标题\n{paragraph}\n{paragraph}\n")
    first = FileSearch([folder]).read_file("article.md")
    assert (first["text"], first["end_line"]) == (f"# 标题\n{paragraph}", 2)
    assert FileSearch([folder]).read_file("article.md", 3)["text"] == paragraph


def test_page_size_is_bounded(folder):
    (folder / "one-line.txt").write_text("x" * 3_000_000)
    (folder / "many.txt").write_text(("y" * 400 + "\n") * 5000)
    search = FileSearch([folder])
    assert len(search.read_file("one-line.txt")["text"]) == 12_000
    result = search.read_file("many.txt", lines=10**6)
    assert len(result["text"]) < 13_000
    assert (
        result["more"]
        == f"The file goes on after line {result['end_line']}; read on with start_line={result['end_line'] + 1}."
    )


def test_binary_file_is_refused(folder):
    with pytest.raises(ToolRefused, match=r"program\.bin is not a text file"):
        FileSearch([folder]).read_file("program.bin")
