"""Every command explains itself."""

from importlib.metadata import version
from pathlib import Path

import pytest
from tests.cli.program import run_program

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("command", "teaches"),
    [
        ("", "Try: opposable run 'What is the average of 12.5, 18, 7 and 30.5?'"),
        ("run", 'Example: opposable run "Which errors'),
        ("ask", 'Example: opposable ask "Which country'),
        ("chat", "Example: opposable chat --db"),
        ("tools", "List, search, show and call tools"),
        ("tools list", "Example: opposable tools list"),
        ("tools show", "Example: opposable tools show calculator"),
        ("tools call", "Example: opposable tools call calculator"),
        ("models", "download the embedded one"),
        ("models list", "Example: opposable models list"),
        ("models pull", "Example: opposable models pull"),
        ("models check", "Example: opposable models check"),
    ],
)
async def test_help_has_an_example(tmp_path: Path, command: str, teaches: str) -> None:
    done = await run_program(tmp_path, *command.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert teaches in " ".join(done.out.split())


@pytest.mark.parametrize("group", ["", "tools", "models", "keys", "eval"])
async def test_the_sentence_of_each_command_is_whole(tmp_path: Path, group: str) -> None:
    done = await run_program(tmp_path, *group.split(), "--help", env={"COLUMNS": "80"})
    assert "..." not in done.out.replace("COMMAND [ARGS]...", "")
    assert max(map(len, done.out.splitlines())) <= 80


async def test_the_version_is_printed(tmp_path: Path) -> None:
    done = await run_program(tmp_path, "--version")
    assert (done.code, done.out, done.err) == (0, f"opposable {version('opposable')}\n", "")


async def test_the_bare_command_shows_help_and_commands(tmp_path: Path) -> None:
    done = await run_program(tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: ")
    for command in ("run", "ask", "chat", "tools", "models"):
        assert f"\n  {command} " in done.err
