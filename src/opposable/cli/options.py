"""What the commands share: where they print, the options many take, and what was given, read."""

import sys
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError
from rich.console import Console

from opposable.cli.rendering import shorten
from opposable.domain.errors import BadInput
from opposable.models.factory import MODEL_NAME_FORMS
from opposable.settings import Settings

out = Console(soft_wrap=True)
err = Console(stderr=True)

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help=f"Which model: {MODEL_NAME_FORMS}. Default: OPPOSABLE_MODEL, else local.",
        show_default=False,
    ),
]
RootOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--root", help="A folder the file tools may read; may be given again. Default: this folder.", show_default=False
    ),
]
ToolOption = Annotated[
    list[str] | None,
    typer.Option("--tool", "-t", help="Offer only this tool; may be given again. Default: all.", show_default=False),
]
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--db", help="A database: duckdb:///FILE, sqlite:///FILE, postgresql://…, or just FILE.", show_default=False
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on standard output.")]


def read_settings(root: list[Path] | None = None) -> Settings:
    """The settings of the environment, with the folders given by --root. Raises: `BadInput`."""
    try:
        settings = Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = "OPPOSABLE_" + "_".join(str(step) for step in first["loc"]).upper()
        raise BadInput(f"The setting {name} is wrong: {first['msg']} (given: {first['input']!r}).") from error
    except SettingsError as error:
        raise BadInput(f'A setting is wrong ({error}); lists are written as JSON, like ["docs", "logs"].') from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The file .env in this folder cannot be read: {shorten(str(error))}.") from error
    if not root:
        return settings
    for folder in root:
        if not folder.is_dir():
            raise BadInput(f"There is no folder {folder}; --root takes a folder that exists.")
    return settings.model_copy(update={"roots": tuple(root)})


def read_text(argument: str) -> str:
    """What was given, or standard input for a dash. Raises: `BadInput`."""
    if argument != "-":
        return argument
    if sys.stdin is None:
        raise BadInput("Standard input is closed, so - has nothing to read.")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"Standard input is no UTF-8 text (its byte {error.start + 1} is wrong).") from error


def parse_json_arguments(text: str) -> dict[str, Any]:
    """The arguments of a call, given as JSON. Raises: `BadInput`."""
    try:
        value = orjson.loads(text.encode("utf-8", "replace"))
    except orjson.JSONDecodeError as error:
        raise BadInput(f'The arguments are no JSON ({error}); give an object like \'{{"text": "hello"}}\'.') from error
    if not isinstance(value, dict):
        raise BadInput('The arguments must be a JSON object like \'{"text": "hello"}\'.')
    return value
