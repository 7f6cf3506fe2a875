"""What the commands share: consoles, common options, and the parsing of input."""

import contextlib
import difflib
import functools
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from dotenv import dotenv_values
from pydantic import ValidationError
from pydantic_settings import SettingsError
from rich.console import Console

from opposable.cli.rendering import shorten, style_text
from opposable.domain.errors import BadInput, OpposableError
from opposable.domain.json_text import check_unique_keys, parse_json
from opposable.domain.specs import RateLimit
from opposable.domain.validation_problems import list_problems
from opposable.safety.filesystem.drafts import open_draft
from opposable.settings import Settings, is_env_file_setting

out = Console()
err = Console(stderr=True)
for _console in (out, err):  # words are wrapped whole in a terminal; lines are whole in a file or a pipe
    _console.soft_wrap = not _console.is_terminal
    if not _console.width:  # with COLUMNS=0, nothing would be printed
        _console.width = 80

OTHER_VARIABLES = {"OPPOSABLE_API_KEY", "OPPOSABLE_SERVE_KEY", "OPPOSABLE_DEBUG"}
"""Variables of Opposable that are not settings."""

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="Model, see `models list` (default: OPPOSABLE_MODEL, local)",
        show_default=False,
    ),
]
RootOption = Annotated[
    list[Path] | None,
    typer.Option("--root", help="Folder for file tools (repeatable) (default: this one)", show_default=False),
]
ToolOption = Annotated[
    list[str] | None,
    typer.Option("--tool", "-t", help="Only this tool (repeatable) (default: all without extras)", show_default=False),
]
AssistOption = Annotated[
    Literal["on", "off"] | None,
    typer.Option("--assist", help="Assistance for small models (default: by the model)", show_default=False),
]
_DATABASE_OPTION = typer.Option(
    "--db", help="Database or data file: PATH, clickhouse:///DIRECTORY, postgresql://… or mysql://…", show_default=False
)
DatabaseOption = Annotated[str | None, _DATABASE_OPTION]
RequiredDatabaseOption = Annotated[str, _DATABASE_OPTION]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Approve every tool call without a question")]
DownloadOption = Annotated[bool, typer.Option("--download", help="Download the embedded model without a question")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output")]


@contextlib.contextmanager
def redirect_tool_output() -> Iterator[None]:
    """Send what tools print to standard error while the block runs; `out` still writes to standard output."""
    out.file = sys.stdout
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        out.file = None  # type: ignore[assignment]  # the current standard output again


def read_settings(root: list[Path] | None = None, assist: Literal["on", "off"] | None = None) -> Settings:
    """Read the settings from the environment, with the folders given by --root and the choice of --assist.

    Raises:
        BadInput: A setting or a folder is invalid.
    """
    _warn_of_ignored_variables()
    try:
        settings = Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = f"OPPOSABLE_{first['loc'][0]}".upper()
        [(path, problem)] = list_problems([first])
        subject = path.partition(".")[2] or "it"
        raise BadInput(
            f"The setting {name} is invalid: {subject} {problem} (value: {shorten(repr(first['input']))})."
        ) from error
    except SettingsError as error:
        field = re.search(r'field "(\w+)"', str(error))
        name = f"OPPOSABLE_{field[1].upper()}" if field else "A list"
        raise BadInput(f'{name} is not valid JSON. Write lists as JSON, such as ["docs", "logs"].') from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The file .env in this folder cannot be read: {shorten(str(error))}.") from error
    _check_hosts(settings)
    if assist is not None:
        settings = settings.model_copy(update={"assist": assist == "on"})
    if not root:
        return settings
    for folder in root:
        if not folder.is_dir():
            raise BadInput(f"The folder {folder} does not exist. Pass an existing folder to --root.")
    return settings.model_copy(update={"roots": tuple(root)})


def _check_hosts(settings: Settings) -> None:
    """Check the settings that list hosts. Raises: `BadInput` for an entry that is no host."""
    for name in ("private_hosts", "api_hosts"):
        if not getattr(settings, name):
            continue
        from opposable.safety.network.ssrf_guard import SsrfGuard  # lazy: start-up time

        try:
            SsrfGuard(getattr(settings, name))
        except BadInput as error:
            raise BadInput(f"The setting OPPOSABLE_{name.upper()} is invalid: {error}") from error


@functools.cache
def _warn_of_ignored_variables() -> None:
    """Warn once of settings that `.env` cannot set, and of variables that resemble a setting but are none.

    Other variables may be secrets of tools.
    """
    names = {f"OPPOSABLE_{name.upper()}" for name in Settings.model_fields} | OTHER_VARIABLES
    file_variables: dict[str, str | None] = {}
    with contextlib.suppress(OSError, UnicodeDecodeError):  # reported with the settings
        file_variables = dotenv_values(".env")
    for name, value in sorted(file_variables.items()):
        is_effective = is_env_file_setting(name.removeprefix("OPPOSABLE_").lower(), value) or name in os.environ
        if name in names and value and not is_effective:
            warn(f"{name} in .env is ignored, because the file may come from others. Set it in the environment.")
    for name in sorted({*os.environ, *file_variables} - names):
        suffix = name.removeprefix("OPPOSABLE_")
        suffixes = [known.removeprefix("OPPOSABLE_") for known in names]
        if suffix != name and (similar := difflib.get_close_matches(suffix, suffixes, n=2, cutoff=0.8)):
            suggestions = " or ".join(f"OPPOSABLE_{other}" for other in similar)
            warn(f"{name} is not a setting. Did you mean {suggestions}?")


def warn(sentence: str) -> None:
    """Print a warning."""
    err.print(style_text((f"Warning: {sentence}", "yellow")))


def read_text(argument: str) -> str:
    """Return the argument, or the text of standard input if the argument is a dash.

    Raises:
        BadInput: Standard input is closed or not UTF-8.
    """
    if argument != "-":
        return argument
    if sys.stdin is None:
        raise BadInput("Standard input is closed. Pass the text instead of -.")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"Standard input is not UTF-8 text (invalid byte at position {error.start + 1}).") from error


def require_database(url: str | None) -> str:
    """Return the database of --db. Raises: `BadInput` if none is given."""
    if not url:
        raise BadInput(
            "No database is given. Pass one: --db PATH, --db clickhouse:///DIRECTORY, "
            "--db postgresql://USER:PASSWORD@HOST/DATABASE, or --db mysql://USER:PASSWORD@HOST/DATABASE."
        )
    return url


def read_file(path: Path) -> bytes:
    """Return the content of a file. Raises: `BadInput` if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {error.strerror}.") from error


def require_new_file(path: Path) -> None:
    """Check that an output file can be created.

    Raises:
        BadInput: The file exists, or its folder does not.
    """
    if path.exists():
        raise BadInput(f"{path} already exists. Pass another file, or move it away.")
    if not path.parent.is_dir():
        raise BadInput(f"The folder {path.parent} does not exist. Create it, or pass another file.")


def write_file(path: Path, text: str, *, replace: bool = False) -> None:
    """Write a text file as a whole. Raises: `OpposableError` if it cannot be written, or exists without `replace`."""
    try:
        with open_draft(path, replace=replace) as draft:
            draft.write(text.encode("utf-8", "replace"))
    except OSError as error:
        raise OpposableError(f"Cannot write {path}: {error.strerror}.") from error


def parse_rate(text: str) -> RateLimit | None:
    """Parse a rate limit, CALLS/SECONDS; None for "".

    Raises:
        BadInput: The text is not a rate limit.
    """
    if not text:
        return None
    match = re.fullmatch(r"([1-9]\d{0,8})/([1-9]\d{0,6})", text)
    if match is None:
        raise BadInput(f"{text!r} is not a rate limit. Pass CALLS/SECONDS, such as 60/60.")
    return RateLimit(calls=int(match[1]), seconds=float(match[2]))


def parse_json_arguments(text: str) -> dict[str, Any]:
    """Parse the arguments of a call, given as JSON.

    Raises:
        BadInput: The text is not a JSON object, or has a key twice.
    """
    raw = text.encode("utf-8", "replace")
    check_unique_keys(raw, "the arguments")
    try:
        value = parse_json(raw)
    except ValueError as error:
        raise BadInput(
            f'The arguments are not JSON ({error}). Pass an object such as \'{{"text": "hello"}}\'.'
        ) from error
    if not isinstance(value, dict):
        raise BadInput('The arguments must be a JSON object, such as \'{"text": "hello"}\'.')
    return value
