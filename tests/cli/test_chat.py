"""The command `chat`."""

import asyncio
import stat
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from tests.app.settings import create_settings
from tests.cli.program import (
    NOWHERE,
    Terminal,
    needs_posix,
    respond_call,
    respond_endlessly,
    respond_text_deltas,
    run_program,
    run_with_model,
)
from tests.models.chat_server import ChatServer, chat_server, respond_json

from opposable.cli import chat as chat_commands
from opposable.domain.errors import BadInput
from opposable.domain.messages import user_message

pytestmark = pytest.mark.anyio


async def open_chat(folder: Path, server: ChatServer) -> Terminal:
    """Start a chat with the model of a server in a terminal."""
    terminal = Terminal()
    await terminal.open(folder, "chat", "--model", f"{server.url}#m")
    return terminal


@needs_posix
@pytest.mark.parametrize("is_answering", [False, True])
async def test_sigterm_ends_the_chat(tmp_path: Path, is_answering: bool) -> None:
    async with chat_server(respond_endlessly) as server:
        terminal = await open_chat(tmp_path, server)
        await terminal.shows("> ")
        if is_answering:
            terminal.type("question\n")
            await terminal.shows("word1 ")
        assert terminal.process is not None
        terminal.process.terminate()
        await terminal.shows("Stopped.")
        assert await terminal.close() == 143


@needs_posix
async def test_a_conversation_in_a_terminal(tmp_path: Path) -> None:
    answers = [
        *(respond_call("echo", text="one"), respond_text_deltas("First \x1b]0;gotcha\x07answer.")),
        respond_endlessly,
        respond_text_deltas("Third answer."),
    ]
    async with chat_server(*answers) as server:
        terminal = await open_chat(tmp_path, server)
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


async def test_a_conversation_through_a_pipe_continues_after_errors(tmp_path: Path) -> None:
    answers = [respond_json({"error": {"message": "broken"}}, status=400), respond_text_deltas("better")]
    stdin = b"one\n\n" + b"x" * 8_000_001 + b"\nbad \xff byte\n/exit\nnot read\n"
    async with run_with_model(tmp_path, "chat", answers=answers, stdin=stdin) as (done, server):
        assert (done.code, done.out) == (0, "better\n")
    lines = done.err.splitlines()
    assert lines[0] == "m · 6 tools · /help · Ctrl-C stops an answer, Ctrl-D ends"
    assert lines[1].startswith("Error: The model server at ")
    assert lines[2].startswith("Error: The task has 8,000,001 characters")
    assert len(lines) == 3
    assert server.bodies[-1]["messages"][1:] == [{"role": "user", "content": "bad � byte"}]


async def test_a_conversation_without_input_ends(tmp_path: Path) -> None:
    done = await run_program(tmp_path, "chat", "-m", NOWHERE)
    assert (done.code, done.out, done.err.count("\n")) == (0, "", 1)


async def test_a_conversation_over_a_database(workspace: Path) -> None:
    answers = [respond_call("sql_execute", sql="SELECT count(*) AS n FROM item"), respond_text_deltas("Two.")]
    async with run_with_model(workspace, "chat", "--db", "shop.sqlite", answers=answers, stdin=b"How many?\n") as (
        done,
        server,
    ):
        assert (done.code, done.out) == (0, "Two.\n")
    assert '"rows":[[2]]' in server.bodies[1]["messages"][-1]["content"]


def read_requests(server) -> list[list[tuple[str, str]]]:
    return [[(m["role"], m["content"]) for m in body["messages"]] for body in server.bodies]


async def test_commands_are_followed_and_not_sent_to_the_model(tmp_path: Path) -> None:
    stdin = b"/help\n/tools\n/model\n/nonsense\nhello\n/save talk.md\n/save talk.json\n/new\nagain\n/exit\nnever\n"
    answers = [respond_text_deltas("Hi."), respond_text_deltas("Again.")]
    async with run_with_model(tmp_path, "chat", "--system", "Be brief.", answers=answers, stdin=stdin) as (
        done,
        server,
    ):
        assert (done.code, done.out) == (0, "Hi.\nAgain.\n")
    assert read_requests(server) == [
        [("system", "Be brief."), ("user", "hello")],
        [("system", "Be brief."), ("user", "again")],
    ]
    assert (tmp_path / "talk.md").read_text() == "## You\n\nhello\n\n## Model\n\nHi.\n"
    assert [m["content"] for m in orjson.loads((tmp_path / "talk.json").read_bytes())] == ["hello", "Hi."]
    for shown in (
        "/save FILE",
        "calculator",
        "There is no command /nonsense. /help lists",
        "A new conversation begins.",
    ):
        assert shown in done.err
    assert done.err.count("m · 6 tools · /help") == 2


async def test_a_path_is_a_message_and_no_command(tmp_path: Path) -> None:
    stdin = b"/var/log/app.log\n"
    async with run_with_model(tmp_path, "chat", answers=[respond_text_deltas("Hi.")], stdin=stdin) as (_, server):
        assert read_requests(server)[0][-1] == ("user", "/var/log/app.log")


async def test_a_message_can_have_several_lines(tmp_path: Path) -> None:
    stdin = b'one\\\ntwo\n"""\nthree\n\nfour\n"""\n"""five\nsix"""\n"""seven"""\n"""\nunfinished\n'
    async with run_with_model(tmp_path, "chat", answers=[respond_text_deltas("Hi.")], stdin=stdin) as (_, server):
        asked = [content for role, content in read_requests(server)[-1] if role == "user"]
    assert asked == ["one\ntwo", "three\n\nfour", "five\nsix", "seven"]


@needs_posix
async def test_pasted_lines_are_one_message(tmp_path: Path) -> None:
    async with chat_server(respond_text_deltas("Hi.")) as server:
        terminal = await open_chat(tmp_path, server)
        await terminal.shows("> ")
        terminal.type("\x1b[200~one\ntwo\n/exit\x1b[201~")
        await terminal.shows("/exit")
        terminal.type("\n")
        await terminal.shows("Hi.")
        await terminal.shows("> ")
        terminal.type("\x04")
        assert await terminal.close() == 0
    assert read_requests(server)[0][-1] == ("user", "one\ntwo\n/exit")


@needs_posix
async def test_a_second_ctrl_c_while_a_tool_does_not_stop_ends_the_conversation(tmp_path: Path) -> None:
    (tmp_path / "tidying.py").write_text(
        "import asyncio\n\nasync def tidy_up() -> str:\n    try:\n        await asyncio.sleep(60)\n"
        "    finally:\n        while True:\n            try:\n                await asyncio.sleep(60)\n"
        "            except asyncio.CancelledError:\n                pass\n"
    )
    home = {"OPPOSABLE_HOME": str(tmp_path / ".local/share/opposable")}  # where a terminal without the variable looks
    assert (await run_program(tmp_path, "tools", "add", "tidying.py", "--yes", env=home)).code == 0
    async with chat_server(respond_call("tidy_up"), respond_text_deltas("late answer")) as server:
        terminal = await open_chat(tmp_path, server)
        await terminal.shows("> ")
        terminal.type("go\n")
        await terminal.shows("calling tidy_up")
        terminal.type("\x03")
        await asyncio.sleep(0.5)
        terminal.type("\x03")
        await terminal.shows("Stopped.")
        assert (await terminal.close(), "> " in terminal.seen) == (130, False)


@needs_posix
async def test_a_spinner_turns_while_the_model_thinks(tmp_path: Path) -> None:
    async def respond_late(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(1)
        return await respond_text_deltas("Hi.")(request)

    async with chat_server(respond_late) as server:
        terminal = await open_chat(tmp_path, server)
        await terminal.shows("> ")
        terminal.type("hello\n")
        await terminal.shows("⠙")
        await terminal.shows("Hi.")
        await terminal.shows("> ")
        terminal.type("\x04")
        assert await terminal.close() == 0


@needs_posix
async def test_a_save_that_fails_leaves_the_saved_file_and_no_other(tmp_path: Path) -> None:
    import resource

    session = object.__new__(chat_commands._Session)
    session.history, session._saved_paths = [user_message("first")], set()
    session._save(str(tmp_path / "a.json"))
    saved = (tmp_path / "a.json").read_bytes()
    session.history = [user_message("x" * 100_000)]
    _, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard_limit))  # as on a full disk
    try:
        for name in ("a.json", "b.json"):
            with pytest.raises(BadInput, match="Cannot write"):
                session._save(str(tmp_path / name))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard_limit, hard_limit))
    with pytest.raises(BadInput, match="Cannot write"):
        session._save(str(tmp_path / "a.json" / "c.json"))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"a.json": saved}


async def test_a_saved_conversation_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    stdin = (
        b"/save a.json\none\n/save README.md\n/save a.json\ntwo\n/save a.json\n/new\n"
        b"/load\n/load no.json\n/load README.md\n/load a.json\nthree\n"
    )
    async with run_with_model(tmp_path, "chat", answers=[respond_text_deltas("Hi.")], stdin=stdin) as (done, server):
        asked = [content for role, content in read_requests(server)[-1] if role == "user"]
    assert asked == ["one", "two", "three"]
    assert (tmp_path / "README.md").read_text() == "mine"
    assert [line for line in done.err.splitlines() if line.startswith("Error")] == [
        "Error: The conversation is empty. Ask something before /save.",
        "Error: README.md exists already. Save to another file.",
        "Error: No file is given. Pass one that /save wrote: /load FILE.json",
        "Error: There is no file no.json.",
        "Error: README.md is not a conversation. Pass a .json file that /save wrote.",
    ]
    assert "4 earlier messages" in done.err


async def test_a_file_that_cannot_be_used_ends_no_conversation(tmp_path: Path) -> None:
    forms = ("{}", '[{"role": "user", "content": 5}]')
    for number, text in enumerate(forms):
        (tmp_path / f"{number}.json").write_text(text)
    stdin = b"one\n/save ~unknown-ann/a.md\n/save .\n/load ~unknown-ann/a.json\n/load 0.json\n/load 1.json\ntwo\n/save a.md\n"
    async with run_with_model(tmp_path, "chat", answers=[respond_text_deltas("Hi.")], stdin=stdin) as (done, server):
        assert [content for role, content in read_requests(server)[-1] if role == "user"] == ["one", "two"]
    assert [line.partition(":")[2][1:24] for line in done.err.splitlines() if line.startswith("Error")] == [
        "Cannot write ~unknown-a",
        "Cannot write .: PosixPa",
        "~unknown-ann/a.json is ",
        "0.json is not a convers",
        "1.json is not a convers",
    ]
    assert (tmp_path / "a.md").read_text().count("Hi.") == 2


def test_half_of_an_emoji_is_saved_as_a_question_mark(tmp_path: Path) -> None:
    settings = create_settings(tmp_path)
    session = object.__new__(chat_commands._Session)
    session.history, session._saved_paths = [user_message("Hi \ud83d.")], set()
    for name in ("a.md", "a.json"):
        session._save(str(tmp_path / name))
        assert b"Hi ?." in (tmp_path / name).read_bytes()
    chat_commands.save_last_conversation(settings, session.history)
    assert chat_commands.load_last_conversation(settings) == [user_message("Hi ?.")]


async def test_the_model_can_be_changed_and_a_wrong_name_changes_nothing(tmp_path: Path) -> None:
    async with chat_server(respond_text_deltas("From the other.")) as other:
        stdin = f"one\n/model gtp-5\n/model {other.url}#o\ntwo\n".encode()
        async with run_with_model(tmp_path, "chat", answers=[respond_text_deltas("Hi.")], stdin=stdin) as (done, _):
            assert done.out == "Hi.\nFrom the other.\n"
        assert "There is no model named 'gtp-5'" in done.err
        assert "o · 6 tools · 2 earlier messages" in done.err
        assert [content for _, content in read_requests(other)[0]][1:] == ["one", "Hi.", "two"]


async def test_the_last_conversation_is_continued(tmp_path: Path) -> None:
    nothing = await run_program(tmp_path, "chat", "--continue", "-m", NOWHERE)
    assert (nothing.code, nothing.err) == (2, "Error: No conversation is stored yet. Leave --continue out.\n")
    answers = [respond_call("echo", text="one"), respond_text_deltas("First.")]
    async with run_with_model(tmp_path, "chat", answers=answers, stdin=b"first\n"):
        pass
    file = tmp_path / "cache" / "last_chat.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    async with run_with_model(tmp_path, "chat", "-c", answers=[respond_text_deltas("Second.")], stdin=b"second\n") as (
        done,
        server,
    ):
        assert done.out == "Second.\n"
    assert "4 earlier messages" in done.err
    assert [role for role, _ in read_requests(server)[0][1:]] == ["user", "assistant", "tool", "assistant", "user"]
    file.write_text('[{"role": 1}, 2]')
    damaged = await run_program(tmp_path, "chat", "-c", "-m", NOWHERE)
    assert (damaged.code, damaged.err.count("\n")) == (2, 1)


@needs_posix
async def test_an_answer_is_rendered_as_markdown_with_whole_words(tmp_path: Path) -> None:
    words = " ".join(f"word{n}" for n in range(40))
    answer = respond_text_deltas("## Ti", "tle\n\nSome **bold** ", f"text.\n\n{words}\n\n```\n\nx = 1\n```\n")
    async with chat_server(answer) as server:
        terminal = await open_chat(tmp_path, server)
        await terminal.shows("> ")
        terminal.type("hi\n")
        await terminal.shows("Title")
        await terminal.shows("text.")
        await terminal.shows("word11\r\nword12")
        await terminal.shows("x = 1")
        assert "**" not in terminal.seen
        await terminal.shows("> ")
        terminal.type("\x04")
        assert await terminal.close() == 0
