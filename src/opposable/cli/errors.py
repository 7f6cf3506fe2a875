"""How the program ends: with an exit code, and with one sentence when something went wrong.

Exit codes: 0 done; 1 the model, a tool, the network or the disk failed; 2 what was given cannot be used; 130 stopped.
"""

import io
import os
import sys
from collections.abc import Callable
from typing import NoReturn

import typer
from rich.console import Console

from opposable.cli.rendering import shorten, style_text, to_json
from opposable.domain.errors import BadInput, OpposableError


def run_and_exit(command: Callable[[], int], err: Console) -> NoReturn:
    """Run `command`, which gives an exit code, and leave the program with it.

    What it raises is told in one sentence on `err`, or as one JSON object on standard output where --json was typed.
    """
    json = "--json" in sys.argv[1:]
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            # What the terminal cannot show becomes a question mark; JSON is UTF-8 everywhere.
            stream.reconfigure(encoding="utf-8" if json else None, errors="replace")
    try:
        code = _run_command(command, err, json)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:  # standard output itself takes no more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains about it at the exit
        code = 1 if isinstance(error, BrokenPipeError) else report_error(error, err)
    sys.exit(code)


def report_error(error: Exception, err: Console, json: bool = False) -> int:
    """Say what went wrong, and give the exit code for it."""
    kind, sentence, code = _describe_error(error)
    return _print_error(kind, sentence, code, err, json)


def _run_command(command: Callable[[], int], err: Console, json: bool) -> int:
    try:
        code = command()
    except Exception as error:
        if not _is_expected(error) and os.environ.get("OPPOSABLE_DEBUG") == "1":
            raise
        return report_error(error, err, json)
    return _print_error("Interrupted", "Stopped.", code, err, json) if code == 130 else code


def _print_error(kind: str, message: str, code: int, err: Console, json: bool) -> int:
    if json:
        print(to_json({"error": {"kind": kind, "message": message}}))
    elif kind in ("Interrupted", "Help"):
        err.print(style_text(message), soft_wrap=True)
    else:
        err.print(style_text(("Error: ", "red"), message), soft_wrap=True)
    return code


def _describe_error(error: Exception) -> tuple[str, str, int]:
    """The kind, the sentence and the exit code of an error."""
    match error:
        case BadInput():
            return type(error).__name__, str(error), 2
        case OpposableError():
            return type(error).__name__, str(error), 1
        case typer.TyperException() if error.format_message().startswith("Usage:"):  # no arguments at all
            return "Help", error.format_message(), 2
        case typer.TyperException():
            return "BadInput", f"{error.format_message()} Add --help to see what is right.", 2
        case ModuleNotFoundError() if _is_expected(error):
            return "MissingPackage", f'This needs {error.name}, which is missing: pip install "opposable[all]"', 1
        case OSError() if _is_expected(error):
            return "SystemError", f"The system refused: {error}.", 1
    said = shorten(f"{type(error).__name__}: {error}")
    hint = "Please report it; with OPPOSABLE_DEBUG=1 in the environment the same command shows where."
    return "InternalError", f"Opposable itself failed ({said}). {hint}", 1


def _is_expected(error: Exception) -> bool:
    """Whether an error says what is wrong outside; what else comes here is a mistake of ours."""
    if isinstance(error, ModuleNotFoundError):
        return not (error.name or "").startswith("opposable")
    return isinstance(error, OpposableError | typer.TyperException | OSError)
