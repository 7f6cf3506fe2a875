"""The commands for tools."""

import asyncio
from pathlib import Path

import orjson
import pytest
from tests.cli.program import run_program

pytestmark = pytest.mark.anyio


async def test_tools_are_listed_with_those_over_a_database(workspace: Path) -> None:
    builtin = ["echo", "calculator", "time", "file_search", "read_file", "log_transform"]
    listed, with_data, shown = await asyncio.gather(
        run_program(workspace, "tools", "list", "--json"),
        run_program(workspace, "tools", "list", "--json", "--db", "shop.sqlite"),
        run_program(workspace, "tools", "list"),
    )
    sql = [
        *("schema.list_columns", "schema.list_tables"),
        *("sql.auto_fix_columns", "sql.execute", "sql.refine", "sql.validate", "sql.validate_columns"),
    ]
    optional = [tool["tool_id"] for tool in listed.json["tools"]][len(builtin) :]
    assert {"python_executor", "file_processor.read", "data_analyzer.group", "web_scraper"} <= set(optional)
    assert [tool["tool_id"] for tool in listed.json["tools"]] == [*builtin, *optional]
    assert [tool["tool_id"] for tool in with_data.json["tools"]] == [*builtin, *sql, *optional]
    assert all(set(tool) == {"tool_id", "name", "description"} for tool in listed.json["tools"])
    lines = [line.split("\t") for line in shown.out.splitlines()]
    assert [tool_id for tool_id, _ in lines] == [*builtin, *optional]
    assert lines[0][1].startswith("Repeat"), lines[0]
    assert (listed.code, with_data.code, shown.code, shown.err) == (0, 0, 0, "")


@pytest.mark.parametrize("name", ["sql.execute", "schema_list_tables", "ask_data"])
async def test_a_tool_over_a_database_asks_for_one(tmp_path: Path, name: str) -> None:
    done = await run_program(tmp_path, "tools", "call", name, "{}")
    assert (done.code, done.err.startswith(f"Error: {name} needs a database")) == (2, True)


async def test_a_misspelled_tool_over_an_open_database_is_suggested(workspace: Path) -> None:
    done = await run_program(workspace, "tools", "show", "sql.exekute", "--db", "shop.sqlite")
    assert "There is no tool named 'sql.exekute'. Did you mean sql" in done.err


async def test_a_tool_is_shown_with_the_definition_for_models(tmp_path: Path) -> None:
    as_json, shown = await asyncio.gather(
        run_program(tmp_path, "tools", "show", "echo", "--json"), run_program(tmp_path, "tools", "show", "echo")
    )
    assert as_json.json == orjson.loads(shown.out)
    assert as_json.json["name"] == "echo"
    assert as_json.json["parameters"]["required"] == ["text"]


@pytest.mark.parametrize("how", ["argument", "standard input", "standard input with a byte order mark"])
async def test_a_tool_is_called_with_arguments_as_json(tmp_path: Path, how: str) -> None:
    arguments = '{"expression": "17 * 23"}'
    mark = b"\xef\xbb\xbf" if "mark" in how else b""
    args = (arguments,) if how == "argument" else ("-",)
    plain, as_json = await asyncio.gather(
        run_program(tmp_path, "tools", "call", "calculator", *args, stdin=mark + arguments.encode()),
        run_program(tmp_path, "tools", "call", "calculator", *args, "--json", stdin=mark + arguments.encode()),
    )
    assert (plain.code, plain.err) == (0, "")
    assert orjson.loads(plain.out)["result"] == as_json.json["data"]["result"] == 391
    assert (as_json.code, as_json.err, as_json.json["failure"], as_json.json["cut"]) == (0, "", None, 0)


async def test_a_failing_tool_ends_with_exit_code_1(tmp_path: Path) -> None:
    plain, as_json, wrong = await asyncio.gather(
        run_program(tmp_path, "tools", "call", "read_file", '{"path": "none.txt"}'),
        run_program(tmp_path, "tools", "call", "read_file", '{"path": "none.txt"}', "--json"),
        run_program(tmp_path, "tools", "call", "echo", '{"txt": "hi"}'),
    )
    assert (plain.code, plain.out, as_json.code, wrong.code) == (1, "", 1, 1)
    assert plain.err == f"{as_json.json['failure']}: {as_json.json['result']}\n"
    assert wrong.err.startswith("invalid_arguments: ")


async def test_a_number_beyond_64_bits_is_passed_as_written(tmp_path: Path) -> None:
    ended = await run_program(tmp_path, "tools", "call", "echo", '{"text": 12345678901234567890123}')
    assert "(given: 12345678901234567890123)" in ended.err


async def test_a_result_is_printed_whole_and_unchanged(tmp_path: Path) -> None:
    text = "a\x1b[2Jb\x9bc\u202ed\r\n\t[red]e\x00" + "0123456789" * 3000
    arguments = orjson.dumps({"text": text}).decode()
    plain, as_json = await asyncio.gather(
        run_program(tmp_path, "tools", "call", "echo", arguments),
        run_program(tmp_path, "tools", "call", "echo", arguments, "--json"),
    )
    assert plain.out == f"{text}\n"
    assert as_json.json["data"] == text
    assert not {"\x1b", "\x9b", "\u202e"} & set(as_json.out)


async def test_file_tools_are_limited_to_the_roots(workspace: Path) -> None:
    (workspace / "in").mkdir()
    (workspace / "in" / "b.txt").write_text("inside\n")
    inside, outside = await asyncio.gather(
        run_program(workspace, "tools", "call", "read_file", '{"path": "b.txt"}', "--root", "in", "--json"),
        run_program(workspace, "tools", "call", "read_file", '{"path": "../a.txt"}', "--root", "in", "--json"),
    )
    assert (inside.code, "inside" in inside.json["result"]) == (0, True)
    assert (outside.code, outside.json["failure"], outside.json["data"]) == (1, "refused", None)


NEEDS = [
    ("compute an average", "calculator"),
    ("计算平均值", "calculator"),
    ("搜索文件", "file_search"),
    ("现在几点", "time"),
    ("Wie viel ist 387 mal 52?", "calculator"),
]


@pytest.mark.parametrize(("need", "name"), NEEDS)
async def test_a_built_in_tool_is_found_by_a_need_in_any_language(tmp_path: Path, need: str, name: str) -> None:
    found = await run_program(tmp_path, "tools", "search", need, "--json")
    assert found.json["tools"][0]["name"] == name


async def test_a_search_without_a_match_lists_the_tools(tmp_path: Path) -> None:
    found = await run_program(tmp_path, "tools", "search", "!?")
    assert (found.code, found.out) == (0, "")
    assert "All tools: echo, calculator, time, " in " ".join(found.err.split())


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("execute_sql", '{"sql": "SELECT price FROM item ORDER BY 1", "database": "shop"}', "0.25"),
        ("get_schema", '{"table_name": "item"}', "note"),
        ("validate_sql", '{"sql": "SELECT price FROM item"}', '"valid":true'),
        ("schema.list_tables", '{"database": "shop"}', "item"),
    ],
)
async def test_the_sql_tools_have_further_names(workspace: Path, name: str, arguments: str, shown: str) -> None:
    done = await run_program(workspace, "tools", "call", name, arguments, "--db", "shop.sqlite")
    assert (done.code, done.err) == (0, "")
    assert shown in done.out
