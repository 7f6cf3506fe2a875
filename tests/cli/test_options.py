"""Settings, standard input and arguments are checked."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.program import NOWHERE, assert_one_sentence, needs_posix, run_program

from opposable.cli.options import write_file
from opposable.domain.errors import OpposableError

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ({"OPPOSABLE_TURNS": "abc"}, "The setting OPPOSABLE_TURNS is invalid: "),
        (
            {"OPPOSABLE_TURNS": "9" * 5000},
            "OPPOSABLE_TURNS is invalid: it must be a whole number of fewer digits (value: ",
        ),
        ({"OPPOSABLE_ROOTS": "[1]"}, "0 must be the path of a file or folder (value: 1)."),
        ({"OPPOSABLE_RETENTION_DAYS": "999999"}, "OPPOSABLE_RETENTION_DAYS is invalid: it must be at most 36500"),
        ({"OPPOSABLE_SECONDS": "soon"}, "The setting OPPOSABLE_SECONDS is invalid: "),
        ({"OPPOSABLE_PRICES": '{"m": 1}'}, "The setting OPPOSABLE_PRICES is invalid: m must be a list (value: 1)."),
        ({"OPPOSABLE_ROOTS": "docs"}, 'Write lists as JSON, such as ["docs", "logs"].'),
        ({"OPPOSABLE_ROOTS": '["/no/folder"]'}, "Create it, or pass another one, as in OPPOSABLE_ROOTS."),
        ({"OPPOSABLE_ROOTS": "[]"}, "as in OPPOSABLE_ROOTS."),
        (
            {"OPPOSABLE_PRIVATE_HOSTS": '["http://x:80/"]'},
            "OPPOSABLE_PRIVATE_HOSTS is invalid: 'http://x:80/' is a URL. Write its host alone, as host or host:port.",
        ),
        ({"OPPOSABLE_API_HOSTS": '["*"]'}, "The setting OPPOSABLE_API_HOSTS is invalid: '*' is not a target."),
        ({"OPPOSABLE_MODEL": "nothing"}, "There is no model named 'nothing'."),
    ],
)
async def test_an_invalid_setting_is_reported_by_name(tmp_path: Path, env: dict[str, str], sentence: str) -> None:
    await assert_one_sentence(tmp_path, ("run", "x"), 2, sentence, env=env)


@needs_posix
async def test_a_store_in_the_folder_of_an_unknown_user_is_reported(tmp_path: Path) -> None:
    env = {"OPPOSABLE_DATABASE_URL": "sqlite:///~unknown-ann/a.db"}
    sentence = "The user of the path ~unknown-ann/a.db does not exist."
    await assert_one_sentence(tmp_path, ("keys", "list"), 2, sentence, env=env)
    assert sentence in (await run_program(tmp_path, "doctor", env=env)).out


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"OPPOSABLE_TURNS=abc\n", "The setting OPPOSABLE_TURNS is invalid: "),
        (b"OPPOSABLE_TURNS=1\nOPPOSABLE_MODEL=nothing\n", "There is no model named 'nothing'."),
        (b"OPPOSABLE_MODEL=\xff\xfe\n", "The file .env in this folder cannot be read: "),
    ],
)
async def test_an_invalid_env_file_is_reported(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / ".env").write_bytes(content)
    await assert_one_sentence(tmp_path, ("run", "x"), 2, sentence)


async def test_a_setting_that_a_command_does_not_use_is_checked(tmp_path: Path) -> None:
    env = {"OPPOSABLE_PRIVATE_HOSTS": '["http://x"]'}
    await assert_one_sentence(tmp_path, ("keys", "list"), 2, "'http://x' is a URL.", env=env)


@pytest.mark.parametrize(
    ("stdin", "sentence"),
    [
        (b"x" * 8_000_001, "The task has 8,000,001 characters; the maximum is 8,000,000."),
        ("很".encode() * 8_000_001, "The task has 8,000,001 characters; the maximum is 8,000,000."),
        (b"what\xff", "Standard input is not UTF-8 text (invalid byte at position 5)."),
        (b"", "The task is empty. Describe in a sentence what to do."),
    ],
    ids=["too long", "too long in Chinese", "no UTF-8", "nothing"],
)
async def test_a_task_from_standard_input_is_checked(tmp_path: Path, stdin: bytes, sentence: str) -> None:
    await assert_one_sentence(tmp_path, ("run", "-", "-m", NOWHERE), 2, sentence, stdin=stdin)


async def test_a_misspelt_variable_is_a_warning_and_an_unrelated_one_is_not(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPPOSABLE_TURN=5\nOTHER=x\n")
    env = {"OPPOSABLE_SECOND": "x", "OPPOSABLE_DATABSE_URL": "x", "OPPOSABLE_CRM_TOKEN": "x", "OPPOSABLE_DEBUG": "0"}
    env["OPPOSABLE_MODLE"] = "x"
    done = await run_program(tmp_path, "keys", "list", "--json", env=env)
    assert (done.code, done.json) == (0, {"keys": []})
    assert done.err.splitlines() == [
        "Warning: OPPOSABLE_DATABSE_URL is not a setting. Did you mean OPPOSABLE_DATABASE_URL?",
        "Warning: OPPOSABLE_MODLE is not a setting. Did you mean OPPOSABLE_MODULES or OPPOSABLE_MODEL?",
        "Warning: OPPOSABLE_SECOND is not a setting. Did you mean OPPOSABLE_SECONDS?",
        "Warning: OPPOSABLE_TURN is not a setting. Did you mean OPPOSABLE_TURNS?",
    ]


@needs_posix
def test_a_file_that_cannot_be_written_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    import resource

    write_file(tmp_path / "a.txt", "first", replace=True)
    _, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard_limit))  # as on a full disk
    try:
        for name in ("a.txt", "b.txt"):
            with pytest.raises(OpposableError, match=f"Cannot write .*{name}: File too large"):
                write_file(tmp_path / name, "x" * 100_000, replace=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard_limit, hard_limit))
    with pytest.raises(OpposableError, match=r"Cannot write .*a.txt: File exists"):
        write_file(tmp_path / "a.txt", "second")
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"a.txt": "first"}


async def test_a_terminal_without_columns_loses_no_error(tmp_path: Path) -> None:
    await assert_one_sentence(tmp_path, ("tools", "show", "nope"), 2, "no tool named 'nope'", env={"COLUMNS": "0"})


@needs_posix
def test_the_output_follows_the_width_of_the_terminal() -> None:
    import fcntl
    import pty
    import termios

    code = """
import fcntl, struct, termios
from opposable.cli.options import out
for width in (50, 120):
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    print(out.width)
"""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 50, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-c", code]
    subprocess.run(command, stdin=terminal, stdout=terminal, stderr=terminal, env=env | {"TERM": "xterm"}, check=True)
    assert os.read(screen, 1_000).split() == [b"50", b"120"]
