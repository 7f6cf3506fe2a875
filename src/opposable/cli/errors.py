"""How the program ends: the exit code, and one sentence for an error.

Exit codes: 0 success; 1 failure of the model, a tool, the network or the disk; 2 invalid input; 130 interrupted;
129 and 143 stopped by SIGHUP and SIGTERM.
"""

import asyncio
import atexit
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

import typer
from pydantic import ValidationError
from rich.console import Console

from opposable.cli.rendering import shorten, style_text, to_json
from opposable.domain.errors import BadInput, OpposableError, get_error_kind
from opposable.domain.validation_problems import list_problems
from opposable.service.stop_signals import get_stop_signals
from opposable.tools.streaming import is_tool_thread_busy

INTERRUPTED = 128 + signal.SIGINT
STOP_SECONDS = 30.0
"""Seconds that a command has to end after SIGTERM or SIGHUP: a tool may catch its cancellation."""
CLEANUP_SECONDS = 5.0
"""Seconds that a command has to end its tasks and the programs that it started, after a second Ctrl-C."""

T = TypeVar("T")

_received_stop_signals: list[int] = []
_reports_interruption = threading.Lock()


def run_and_exit(command: Callable[[], int], err: Console) -> NoReturn:
    """Run `command`, which returns an exit code, and exit with it.

    An error is reported in one sentence on `err`, or as one JSON object on standard output if `--json` is given.
    """
    _open_closed_streams()
    atexit.register(_handle_signals, signal.SIG_IGN)  # Python's end is quick, and a signal would change the exit code
    for number in get_stop_signals():
        if number != signal.SIGINT and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)
    json = "--json" in sys.argv[1:]
    if json and sys.stdout is None:
        sys.exit(_print_error("bad_input", "Standard output is closed. --json prints on it.", 2, err, json=False))
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            # Characters that the terminal cannot encode become question marks; JSON is always UTF-8.
            stream.reconfigure(encoding="utf-8" if json else None, errors="replace")
    try:
        code = _run_command(command, err, json)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:  # a second Ctrl-C
        code = _report_interruption(err, json)
    except OSError as error:  # standard output is closed or full
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python reports it again at exit
        code = 1 if isinstance(error, BrokenPipeError) else report_error(error, err)
    _handle_signals(lambda number, frame: os._exit(code or 128 + number))
    if is_tool_thread_busy():  # with a function that was given up: its end would delay that of the program
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as `asyncio.run` does. A second Ctrl-C ends the program, also if a tool catches both."""
    with asyncio.Runner() as runner:
        try:
            return runner.run(main)
        except KeyboardInterrupt:
            exit_soon()
            raise


def exit_soon(seconds: float = CLEANUP_SECONDS) -> None:
    """End the interrupted program in `seconds`, whatever it waits for then."""

    def end() -> None:
        try:
            _report_interruption(Console(stderr=True), "--json" in sys.argv[1:])
            sys.stdout.flush()
        finally:
            os._exit(_get_interruption_code())

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def is_stopped() -> bool:
    """Return whether SIGTERM or SIGHUP stops the program: it also ends a chat, of which Ctrl-C stops an answer alone."""
    return bool(_received_stop_signals)


def _handle_signals(handler: Callable[[int, FrameType | None], Any] | signal.Handlers) -> None:
    for number in get_stop_signals():
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _stop(number: int, _frame: FrameType | None) -> None:
    """Stop the command as Ctrl-C does: it ends the programs that it started, and removes its temporary files."""
    _received_stop_signals.append(number)
    exit_soon(STOP_SECONDS)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts jobs in the background
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def report_error(error: Exception, err: Console, json: bool = False) -> int:
    """Report an error and return its exit code."""
    kind, sentence, code = _describe_error(error)
    return _print_error(kind, sentence, code, err, json)


def _open_closed_streams() -> None:
    """Open the null device for closed standard streams, or the next files and sockets get their numbers.

    Programs and libraries would write errors into them, and libuv aborts when one is closed.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _run_command(command: Callable[[], int], err: Console, json: bool) -> int:
    try:
        code = command()
    except Exception as error:
        if not _is_expected(error) and os.environ.get("OPPOSABLE_DEBUG") == "1":
            raise
        return report_error(error, err, json)
    return _report_interruption(err, json) if code == INTERRUPTED else code


def _report_interruption(err: Console, json: bool) -> int:
    """Report once that the program was interrupted, and return its exit code."""
    code = _get_interruption_code()
    if _reports_interruption.acquire(blocking=False):
        _print_error("interrupted", "Stopped.", code, err, json)
    return code


def _get_interruption_code() -> int:
    return 128 + _received_stop_signals[0] if _received_stop_signals else INTERRUPTED


def _print_error(kind: str, message: str, code: int, err: Console, json: bool) -> int:
    if json:
        print(to_json({"error": {"kind": kind, "message": message}}))
    elif kind in ("interrupted", "help"):
        err.print(style_text(message))
    else:
        err.print(style_text(("Error: ", "red"), message))
    return code


def _describe_error(error: Exception) -> tuple[str, str, int]:
    """Return the kind, the message and the exit code of an error."""
    match error:
        case BadInput() if _is_connection_failure(error.__cause__):
            return "database_unavailable", str(error), 1
        case BadInput():
            return get_error_kind(error), str(error), 2
        case OpposableError() if type(error) is OpposableError and error.__cause__ is not None:
            return "system_error", str(error), 1  # a file that cannot be read or written
        case OpposableError():
            return get_error_kind(error), str(error), 1
        case typer.TyperException() if error.format_message().startswith("Usage:"):  # no arguments at all
            return "help", error.format_message(), 2
        case typer.TyperException():
            problem = _describe_usage_error(error)
            return "bad_input", f"{problem}{'' if problem.endswith(('.', '?')) else '.'} See --help.", 2
        case ModuleNotFoundError() if _is_expected(error):
            return (
                "missing_package",
                f'The package {error.name} is missing. Install it: pip install "opposable[all]"',
                1,
            )
        case FileNotFoundError() if _is_expected(error) and not _has_working_directory():
            return "system_error", "The working directory does not exist anymore. Change to another one.", 1
        case OSError() if _is_expected(error):
            return "system_error", f"The operating system reported: {error}.", 1
    summary = shorten(f"{type(error).__name__}: {error}")
    hint = "Please report it. With OPPOSABLE_DEBUG=1, the same command prints a traceback."
    return "internal_error", f"Opposable itself failed ({summary}). {hint}", 1


def _has_working_directory() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _describe_usage_error(error: typer.TyperException) -> str:
    """Return the message of an invalid command line, with the problems that pydantic found in plain words."""
    if not isinstance(error, typer.BadParameter) or not isinstance(error.__cause__, ValidationError):
        return error.format_message()
    [first] = error.__cause__.errors()[:1]
    [(_, problem)] = list_problems([first])
    hint = "" if error.param is None else f" for {error.param.get_error_hint()}"
    return f"Invalid value{hint}: {'' if first['type'] == 'value_error' else 'it '}{problem}"


def _is_connection_failure(cause: BaseException | None) -> bool:
    """Return whether a PostgreSQL or MySQL server could not be reached or refused the connection."""
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(cause).__mro__}
    return not kinds.isdisjoint({"psycopg.OperationalError", "pymysql.OperationalError"})


def _is_expected(error: Exception) -> bool:
    """Return whether an error has an external cause.

    Any other error is a bug in Opposable.
    """
    if isinstance(error, ModuleNotFoundError):
        return not (error.name or "").startswith("opposable")
    return isinstance(error, OpposableError | typer.TyperException | OSError)
