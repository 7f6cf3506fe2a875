"""Every command explains itself."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from tests.cli.program import run_program
from typer.core import TyperGroup
from typer.testing import CliRunner

from opposable.cli import cli

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("command", "teaches"),
    [
        ("", "Example: opposable run 'What is the average of 12.5, 18, 7 and 30.5?'"),
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
    done = await run_program(tmp_path, *command.split(), "--help", forked=False)
    assert (done.code, done.err) == (0, "")
    assert teaches in " ".join(done.out.split())


@pytest.mark.parametrize("group", ["", "tools", "models", "keys", "eval"])
async def test_the_sentence_of_each_command_is_whole(tmp_path: Path, group: str) -> None:
    done = await run_program(tmp_path, *group.split(), "--help", env={"COLUMNS": "80"})
    assert "..." not in done.out.replace("COMMAND [ARGS]...", "")
    assert max(map(len, done.out.splitlines())) <= 80


def iterate_commands(group: TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from iterate_commands(command, (*path, name))
        else:
            yield (*path, name)


def test_every_command_has_an_example_on_one_line_and_names_values_in_words() -> None:
    root = typer.main.get_command(cli)
    assert isinstance(root, TyperGroup)
    paths = list(iterate_commands(root))
    assert len(paths) > 50
    for path in paths:
        text = CliRunner().invoke(cli, [*path, "--help"], terminal_width=80).output
        [example] = [line for line in text.splitlines() if line.startswith("  Example: ")]
        words = shlex.split(example.removeprefix("  Example: "))
        assert tuple(words[: len(path) + 1]) == ("opposable", *path)
        assert "......" not in text
        assert not re.search(r"<(str|int|list|path|Path)|\{[a-zA-Z]", text), path


def test_the_help_of_the_program_imports_no_command_and_has_their_sentences() -> None:
    code = "import sys; from opposable.cli import cli; cli(['--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert {"sqlalchemy", "aiohttp", "opposable.cli.run"}.isdisjoint(lines[-1].split())
    shown = dict(re.findall(r"^  ([a-z-]+) {2,}(\S.*)$", done.stdout.partition("\nCommands:\n")[2], re.MULTILINE))
    root = typer.main.get_command(cli)
    assert isinstance(root, TyperGroup)
    assert shown == {name: command.get_short_help_str(500) for name, command in root.commands.items()}


def test_commands_that_send_no_request_import_no_http_client(tmp_path: Path) -> None:
    code = "import sys; from opposable.cli import cli; cli({!r}, standalone_mode=False); sys.exit('aiohttp' in sys.modules)"
    environment = os.environ | {"OPPOSABLE_HOME": str(tmp_path)}
    for arguments in (["models", "list"], ["run", "--help"], ["serve", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", code.format(arguments)], capture_output=True, check=False, env=environment
        )
        assert done.returncode == 0, arguments


def test_a_command_imports_no_other_command(tmp_path: Path) -> None:
    code = "import sys; from opposable.cli import cli; cli(['tools', 'list', '--json'], standalone_mode=False); print(*sys.modules)"
    environment = os.environ | {"OPPOSABLE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "opposable.cli.tools" in loaded
    assert loaded & {"opposable.cli.run", "opposable.cli.serve", "opposable.cli.evals", "sqlalchemy"} == set()


async def test_the_version_is_printed(tmp_path: Path) -> None:
    done = await run_program(tmp_path, "--version", forked=False)
    assert (done.code, done.out, done.err) == (0, f"opposable {version('opposable')}\n", "")


async def test_the_bare_command_shows_help_and_commands(tmp_path: Path) -> None:
    done = await run_program(tmp_path, forked=False)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: ")
    for command in ("run", "ask", "chat", "tools", "models"):
        assert f"\n  {command} " in done.err
