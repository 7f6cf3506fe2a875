"""How the program ends: exit codes, and one sentence for each error."""

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from tests.cli.program import (
    NOWHERE,
    TESTED_PACKAGE,
    Terminal,
    assert_one_sentence,
    needs_posix,
    respond_endlessly,
    run_program,
    start_program,
)
from tests.models.chat_server import (
    build_delta,
    chat_server,
    respond_events,
    respond_json,
    respond_text,
)
from tests.tools.mcp.odd import RAW_SERVER_SCRIPT, write_tools
from tests.waiting import wait_until

from opposable.cli.errors import report_error
from opposable.domain.errors import OpposableError

pytestmark = pytest.mark.anyio


@needs_posix
@pytest.mark.parametrize("json_too", [False, True])
async def test_an_interrupted_task_ends_with_130(tmp_path: Path, json_too: bool) -> None:
    async with chat_server(respond_endlessly) as server:
        process = await start_program(
            tmp_path, "run", "go", "--model", f"{server.url}#m", *(["--json"] if json_too else [])
        )
        await wait_until(lambda: bool(server.bodies))
        assert process.stdout is not None
        shown = b"" if json_too else await asyncio.wait_for(process.stdout.readuntil(b"word1 "), 20)
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 130
    if json_too:
        assert orjson.loads(out) == {"error": {"kind": "interrupted", "message": "Stopped."}}
        assert err == b""
    else:
        assert shown == b"word0 word1 "
        assert err == b"Stopped.\n"


@needs_posix
async def test_an_interruption_of_an_import_changes_no_exit_code(tmp_path: Path) -> None:
    code = """
import sys
import opposable.cli
from opposable.__main__ import main

def run():
    try:
        exec("raise KeyboardInterrupt")  # as while a data class is imported
    except KeyboardInterrupt:
        sys.exit(129)

opposable.cli.main = run
main()
"""
    (tmp_path / "interrupted.py").write_text(code)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "interrupted"), cwd=tmp_path, env=os.environ | TESTED_PACKAGE
    )
    assert await process.wait() == 129


@needs_posix
async def test_a_function_that_does_not_end_does_not_delay_the_end_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(
        'import time\n\ndef wait() -> str:\n    """Wait."""\n    print("waiting", flush=True)\n    time.sleep(60)\n'
    )
    assert (await run_program(tmp_path, "tools", "add", "waiting.py", "--yes")).code == 0
    process = await start_program(tmp_path, "tools", "call", "wait")
    assert process.stderr is not None
    assert await asyncio.wait_for(process.stderr.readline(), 20) == b"waiting\n"
    process.send_signal(signal.SIGINT)
    out, err = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, out, err) == (130, b"", b"Stopped.\n")


@needs_posix
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_a_stopped_command_ends_the_servers_that_it_started(tmp_path: Path, number: int, code: int) -> None:
    server = f"{sys.executable} {RAW_SERVER_SCRIPT} {write_tools(tmp_path / 'tools.json', 'busy')}"
    assert (await run_program(tmp_path, "tools", "add-mcp", server, "--name", "raw")).code == 0
    process = await start_program(tmp_path, "tools", "call", "raw.busy")
    await wait_until(lambda: (tmp_path / "busy.pid").exists(), seconds=30)
    process.send_signal(number)
    out, err = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, out, err) == (code, b"", b"Stopped.\n")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "busy.pid").read_text()), 0)


@needs_posix
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_second_signal_ends_a_command_whose_tool_catches_its_cancellation(
    tmp_path: Path, number: int, code: int
) -> None:
    (tmp_path / "stubborn.py").write_text(
        "import asyncio\n\nasync def stay() -> str:\n    while True:\n        print('running', flush=True)\n"
        "        try:\n            await asyncio.sleep(60)\n        except asyncio.CancelledError:\n            pass\n"
    )
    assert (await run_program(tmp_path, "tools", "add", "stubborn.py", "--yes")).code == 0
    process = await start_program(tmp_path, "tools", "call", "stay")
    assert process.stderr is not None
    for _ in range(2):
        assert await asyncio.wait_for(process.stderr.readline(), 30) == b"running\n"
        process.send_signal(number)
    out, err = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, out, err.replace(b"running\n", b"")) == (code, b"", b"Stopped.\n")


@needs_posix
async def test_words_are_whole_in_a_terminal_and_lines_are_whole_in_a_pipe(tmp_path: Path) -> None:
    piped = await run_program(tmp_path, "run", "x", "--model", "nope")
    assert piped.err.count("\n") == 1
    terminal = Terminal()
    await terminal.open(tmp_path, "run", "x", "--model", "nope")
    await terminal.shows("prefix.")
    assert await terminal.close() == 2
    assert max(map(len, terminal.seen.splitlines())) <= 80
    assert " ".join(re.sub(r"\x1b\[[0-9;]*m", "", terminal.seen).split()) == " ".join(piped.err.split())


@needs_posix
@pytest.mark.parametrize("args", ["--help", "tools list", "tools show calculator", "models list --json"])
async def test_a_closed_pipe_causes_no_traceback(tmp_path: Path, args: str) -> None:
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


@needs_posix
async def test_a_pipe_closed_during_an_answer_causes_no_traceback(tmp_path: Path) -> None:
    async with chat_server(respond_endlessly) as server:
        process = await start_program(tmp_path, "run", "go", "--model", f"{server.url}#m")
        assert process.stdout is not None
        assert process.stderr is not None
        assert (await process.stdout.read(6)).startswith(b"word0")
        process.stdout._transport.close()  # type: ignore[attr-defined]  # asyncio has no other way to close a reader
        err = await asyncio.wait_for(process.stderr.read(), 20)
        assert (await process.wait(), err) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("args", ["tools list", "tools list --json"])
async def test_a_full_disk_is_reported(tmp_path: Path, args: str) -> None:
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
    assert err == b"Error: The operating system reported: [Errno 28] No space left on device.\n"


BAD = {
    "no such database": (("ask", "x", "--db", "none.db"), 2, "File `none.db` does not exist. Use duckdb:///path"),
    "no database": (("ask", "x"), 2, "No database is given. Pass one: --db"),
    "broken database": (
        ("ask", "x", "--db", "broken.sqlite"),
        2,
        "SQLite cannot read `broken.sqlite`; the file may be damaged",
    ),
    "empty database": (("ask", "x", "--db", "empty.db"), 2, "`empty.db` is empty"),
    "a text file": (("ask", "x", "--db", "a.txt"), 2, "`a.txt` is not a DuckDB or SQLite database"),
    "a directory": (("ask", "x", "--db", "."), 2, "`.` is a folder without data files"),
    "another kind of database": (("ask", "x", "--db", "oracle://x/y"), 2, "`oracle:` databases are not supported"),
    "no PostgreSQL server": (
        ("ask", "x", "--db", "postgresql://me:pw@127.0.0.1:9/shop"),
        1,
        "Cannot connect to the PostgreSQL server at 127.0.0.1: ",
    ),
    "no MySQL server": (
        ("ask", "x", "--db", "mysql://me:pw@127.0.0.1:9/shop"),
        1,
        "Cannot read the MySQL database at 127.0.0.1: ",
    ),
    "a wrong URL of a server": (("ask", "x", "--db", "postgresql://me:pw@127.0.0.1:x/shop"), 2, "URL"),
    "chat without its database": (("chat", "--db", "none.db"), 2, "File `none.db` does not exist"),
    "tools of no database": (("tools", "list", "--db", "none.db"), 2, "File `none.db` does not exist"),
    "unknown model": (("run", "x", "-m", "gpt"), 2, "There is no model named 'gpt'. Use one of these forms: local"),
    "no model's name": (("run", "x", "-m", "openai:"), 2, "There is no model named 'openai:'"),
    "missing key": (
        ("run", "x", "-m", "openai:o"),
        2,
        "openai:o needs an API key. Set the environment variable OPENAI_AP",
    ),
    "URL without a name": (
        ("run", "x", "-m", "http://127.0.0.1:9/v1"),
        2,
        "is not the name of a model. Write the base U",
    ),
    "URL without a host": (("run", "x", "-m", "http://#m"), 2, "is not the name of a model"),
    "wrong port": (("run", "x", "-m", "http://127.0.0.1:99999/v1#m"), 1, "is not a URL. Use one such as http://"),
    "no model server": (("run", "x", "-m", NOWHERE), 1, "Cannot reach the model server at http://127.0.0.1:9/v1/"),
    "no such host": (("run", "x", "-m", "http://nosuch.invalid/v1#m"), 1, "Cannot reach the model server at"),
    "no such tool": (("tools", "call", "calculater"), 2, "no tool named 'calculater'. Did you mean calculator?"),
    "no such tool to show": (("tools", "show", "file-serch"), 2, "Did you mean file_search? The tools are: echo, calc"),
    "no such tool to offer": (
        ("run", "x", "-t", "zzz", "-m", NOWHERE),
        2,
        "There is no tool named 'zzz'. The tools ar",
    ),
    "no JSON": (("tools", "call", "echo", "{text: hi}"), 2, "The arguments are not JSON ("),
    "no object": (("tools", "call", "echo", '["hi"]'), 2, "The arguments must be a JSON object, such as"),
    "a key twice": (
        ("tools", "call", "echo", '{"text": "a", "text": "b"}'),
        2,
        "the arguments, line 1: text is defined twice: ",
    ),
    "empty question": (("run", " \n", "-m", NOWHERE), 2, "The task is empty. Describe in a sentence what to do."),
    "no question": (("ask", " ", "--db", "shop.sqlite"), 2, "The question is empty. Ask it in a sentence."),
    "no such root": (
        ("run", "x", "--root", "none", "-m", NOWHERE),
        2,
        "The folder none does not exist. Pass an existing",
    ),
    "no GGUF file": (("run", "x", "-m", "local:none.gguf"), 2, "Cannot read the model file none.gguf: No such file"),
    "a GGUF file cut short": (
        ("run", "x", "-m", "local:short.gguf"),
        1,
        "llama.cpp cannot load short.gguf: the file ma",
    ),
    "text as GGUF": (("run", "x", "-m", "local:a.txt"), 2, "a.txt is not a GGUF file (missing magic bytes). Pass"),
    "half a character": (("ask", "x", "--db", b"\xff.db"), 2, ".db` does not exist. Use duckdb:///path"),
    "half a character in a tool": (("tools", "show", b"n\xff"), 2, "There is no tool named 'n"),
    "unknown command": (("rum", "x"), 2, "No such command 'rum'. Did you mean 'run'? See --help."),
    "unknown option": (("run", "x", "--modle", "m"), 2, "No such option"),
    "a word for a number": (
        ("tools", "search", "x", "--number", "abc"),
        2,
        "'--number' / '-n': it must be a whole number.",
    ),
    "a number out of range": (
        ("agents", "list", "-n", "0"),
        2,
        "'--number' / '-n': it must be at least 1. See --help.",
    ),
    "a wrong choice": (
        ("runs", "list", "--status", "x"),
        2,
        "Invalid value for '--status': 'x' is not one of 'queued'",
    ),
    "missing argument": (("tools", "call"), 2, "Missing argument 'NAME'."),
}


@pytest.mark.parametrize("what", BAD)
async def test_invalid_input_is_reported_in_one_sentence(workspace: Path, what: str) -> None:
    args, code, sentence = BAD[what]
    await assert_one_sentence(workspace, args, code, sentence)


@pytest.mark.parametrize("what", ["a text file", "no model server", "no MySQL server", "half a character", "no JSON"])
async def test_invalid_input_is_reported_as_json_with_the_option(workspace: Path, what: str) -> None:
    args, code, sentence = BAD[what]
    done = await run_program(workspace, *args, "--json")
    kinds = {"no model server": "model_unavailable", "no MySQL server": "database_unavailable"}
    kind = kinds.get(what, "bad_input")
    assert done.json == {"error": {"kind": kind, "message": done.json["error"]["message"]}}
    assert sentence in done.json["error"]["message"]
    assert (done.code, done.err) == (code, "")


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
        (respond_json({"hello": "world"}), "returned neither text nor a call"),
        (respond_events(build_delta(content=""), build_delta("stop")), "returned neither text nor a call"),
    ],
    ids=["wrong key", "unknown model", "wrong path", "a web page", "no completion", "silence"],
)
async def test_a_useless_answer_of_a_server_is_reported_without_the_key(tmp_path: Path, answer, sentence: str) -> None:
    async with chat_server(answer) as server:
        args = ("run", "x", "-m", f"{server.url}#m")
        await assert_one_sentence(tmp_path, args, 1, sentence, env={"OPPOSABLE_API_KEY": "sk-very-secret"})
    assert server.headers[0]["Authorization"] == "Bearer sk-very-secret"


@pytest.mark.skipif(sys.platform != "linux", reason="fills the backlog of a socket")
async def test_a_silent_address_is_reported_in_time(tmp_path: Path) -> None:
    import socket

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        full = [socket.socket() for _ in range(3)]
        for one in full:
            one.setblocking(False)
            one.connect_ex(silent.getsockname())
        done = await run_program(tmp_path, "run", "x", "-m", f"http://127.0.0.1:{silent.getsockname()[1]}/v1#m")
        for one in full:
            one.close()
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert done.seconds < 20


async def test_a_bug_is_reported_in_one_sentence_too(tmp_path: Path) -> None:
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
        "Please report it. With OPPOSABLE_DEBUG=1, the same command prints a traceback.\n",
    )
    assert ends[1][1].startswith("Traceback ")


def test_a_file_that_cannot_be_written_is_an_error_of_the_system(capsys: pytest.CaptureFixture[str]) -> None:
    error = OpposableError("Cannot write a.json: No space left on device.")
    error.__cause__ = OSError()
    assert report_error(error, Console(stderr=True), json=True) == 1
    assert orjson.loads(capsys.readouterr().out)["error"]["kind"] == "system_error"


@needs_posix
async def test_closed_standard_streams_give_their_numbers_to_no_file(tmp_path: Path) -> None:
    code = """
import os
from rich.console import Console
from opposable.cli.errors import run_and_exit
for descriptor in range(3):
    os.close(descriptor)
run_and_exit(lambda: 100 + os.open(os.devnull, os.O_RDONLY), Console(stderr=True))
"""
    program = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=tmp_path)
    assert await program.wait() >= 103


@needs_posix
async def test_json_for_a_closed_standard_output_is_an_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m opposable tools list --json >&-"
    program = await asyncio.create_subprocess_shell(
        command, cwd=tmp_path, env={**os.environ, **TESTED_PACKAGE}, stderr=asyncio.subprocess.PIPE
    )
    _, err = await program.communicate()
    assert (program.returncode, err) == (2, b"Error: Standard output is closed. --json prints on it.\n")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows deletes no working directory")
async def test_a_deleted_working_directory_is_reported(tmp_path: Path) -> None:
    command = f'mkdir gone && cd gone && rmdir ../gone && "{sys.executable}" -m opposable tools list'
    process = await asyncio.create_subprocess_shell(command, cwd=tmp_path, stderr=asyncio.subprocess.PIPE)
    _, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 1
    assert err == b"Error: The working directory does not exist anymore. Change to another one.\n"
