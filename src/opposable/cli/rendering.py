"""Terminal output: the events of a run, the answer, tables, charts, progress bars."""

import asyncio
import json
import re
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import orjson
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.status import Status
from rich.table import Table
from rich.text import Text

from opposable.cli.markdown import MarkdownPrinter
from opposable.domain.errors import ModelNotFound
from opposable.domain.events import DecisionMade, Event, RunFinished, StopReason, TextDelta, ToolFinished, ToolStarted
from opposable.domain.json_forms import call_to_json, event_to_json, result_to_json
from opposable.domain.json_text import dump_json
from opposable.domain.language import Language
from opposable.domain.text_normalization import shorten_text
from opposable.models.embedded.weights import PullProgress
from opposable.tools.result_text import encode_value

MAX_TRACE_CHARACTERS = 200
"""Characters of a result or of arguments shown in the trace."""

MAX_LABEL_CHARACTERS, MAX_BAR_CHARACTERS = 30, 40
"""Characters of a label and of the longest bar in a chart."""

_STAGE_LABELS = {"wait": "waiting for", "download": "downloading", "verify": "verifying"}
_STOP_MESSAGES: dict[StopReason, str] = {
    "no_answer": "The run ended without an answer.",
    "repeats": "The run ended because its calls made no progress.",
    "turns": "The run ended at its limit of model replies.",
    "tool_calls": "The run ended at its limit of tool calls.",
    "tokens": "The run ended at its limit of tokens.",
    "cost": "The run ended at its limit of cost.",
    "time": "The run ended at its limit of time.",
    "length": "The answer was cut off at the maximum length of a reply.",
    "content_filter": "The answer was cut off by the provider's content filter.",
    "incomplete": "The answer is incomplete: the model's stream broke off.",
}

# Characters that control a terminal: control characters, and those that change the direction of text.
_VISIBLE_CHARACTERS: dict[int, str | None] = {
    **{code: chr(0x2400 + code) for code in range(0x20)},
    **dict.fromkeys((*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000)), "�"),
    0x7F: "␡",
    ord("\r"): None,
    ord("\n"): "\n",
    ord("\t"): "\t",
}
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class RunPrinter:
    """Prints the events of a run: calls on `err`, the answer on `out` as it streams.

    With `out` None, the answer is not printed. In a terminal, the answer is rendered as Markdown, and a spinner shows
    that the model or a tool is working. With `is_quiet`, nothing but the spinner is shown.
    """

    def __init__(self, err: Console, out: Console | None, *, is_quiet: bool = False) -> None:
        self._err = err
        self._out = out
        self._is_quiet = is_quiet
        self._markdown = MarkdownPrinter(out) if out is not None and out.is_terminal else None
        self._status: Status | None = None
        self._is_line_open = False
        self._written_texts: list[str] = []

    def wait(self, activity: str = "thinking") -> None:
        """Show a spinner and what is waited for, until something is printed."""
        if self._status is None and self._err.is_terminal:
            self._status = self._err.status(style_text((activity, "dim")))
            self._status.start()

    def __enter__(self) -> "RunPrinter":
        return self

    def __exit__(self, *_: object) -> None:
        self.end_line()

    def show(self, event: Event) -> None:
        """Print one event."""
        if self._is_quiet:
            return
        if isinstance(event, TextDelta):
            self._write_text(event.text)
        elif isinstance(event, ToolStarted):
            self._print_line(("→ ", "cyan"), (shorten(event.call.name), "bold"), shorten(event.call.arguments_json))
            self.wait(f"calling {shorten(event.call.name)}")
        elif isinstance(event, ToolFinished):
            result = event.result
            mark = ("  ✓ ", "green") if result.failure is None else (f"  ✗ {result.failure} ", "red")
            repairs = f" (repaired: {shorten('; '.join(result.repairs))})" if result.repairs else ""
            self._print_line(mark, shorten(result.content), (f" {result.seconds:.2f} s", "dim"), (repairs, "yellow"))
            self.wait()
        elif isinstance(event, DecisionMade):
            self._print_line(("· ", "dim"), (event.action, "bold"), (f"  {shorten(event.reason)}", "dim"))
        elif isinstance(event, RunFinished):
            if not "".join(self._written_texts).strip().endswith(event.text.strip()):
                self.end_line()
                self._write_text(event.text)
            self.end_line()
            if event.reason != "answer":
                self._print_line((_STOP_MESSAGES[event.reason], "yellow"))

    def end_line(self) -> None:
        """Start a new line if the answer is in the middle of one, and remove the spinner."""
        if self._status is not None:
            self._status.stop()
            self._status = None
        if self._markdown is not None:
            self._markdown.end()
        elif self._is_line_open and self._out is not None:
            write_text(self._out, "\n")  # Console.print would end the program where a pipe is closed
        self._is_line_open = False

    def _print_line(self, *parts: str | tuple[str, str]) -> None:
        self.end_line()
        self._err.print(style_text(*parts))

    def _write_text(self, text: str) -> None:
        if self._status is not None:
            self.end_line()
        self._written_texts.append(text)
        if self._markdown is not None:
            self._markdown.write(escape_control_characters(text))
        elif self._out is not None:
            write_text(self._out, text)
            self._is_line_open = not text.endswith("\n")


def write_text(out: Console, text: str) -> None:
    """Write text of a tool or model: exactly into a file or pipe, without control characters into a terminal."""
    is_terminal = out.is_terminal or out.file.isatty()
    out.file.write(escape_control_characters(text) if is_terminal else text)  # Console.print would replace tabs
    out.file.flush()


def escape_control_characters(text: str) -> str:
    """Replace characters that control the terminal by visible ones.

    Output of tools and models is untrusted.
    """
    return text.translate(_VISIBLE_CHARACTERS)


def style_text(*parts: str | tuple[str, str]) -> Text:
    """Join parts of a line, each a text or a pair of text and style.

    Control characters and markup are escaped.
    """
    return Text.assemble(
        *(
            escape_control_characters(part) if isinstance(part, str) else (escape_control_characters(part[0]), part[1])
            for part in parts
        )
    )


def shorten(text: str) -> str:
    """Return `text` on one line, shortened for the trace."""
    return shorten_text(" ".join(text.split()), MAX_TRACE_CHARACTERS)


def render_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], limit: int = 50, *, language: Language = "en"
) -> RenderableType:
    """Render at most `limit` rows as a table; None is shown as NULL."""
    table = Table(show_header=True, header_style="bold")
    for column in columns:
        table.add_column(style_text(str(column)), overflow="fold")
    for row in rows[:limit]:
        table.add_row(*(style_text(("NULL", "dim") if cell is None else str(cell)) for cell in row))
    return table if len(rows) <= limit else Group(table, _render_row_limit_note(limit, len(rows), language))


def render_chart(
    spec: Mapping[str, Any],
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    limit: int = 30,
    *,
    language: Language = "en",
) -> Text:
    """Render the first `y` of a chart as horizontal bars, at most `limit`.

    Negative bars are hatched.
    """
    x, y = columns.index(spec["x"]), columns.index(spec["y"][0])
    bars = [
        (escape_control_characters(" ".join(str(row[x]).split()))[:MAX_LABEL_CHARACTERS], row[y] or 0)
        for row in rows[:limit]
    ]
    largest = max((abs(value) for _, value in bars), default=0) or 1
    width = max((cell_len(label) for label, _ in bars), default=0)
    title = f"{spec['y'][0]}（按 {spec['x']}）" if language == "zh" else f"{spec['y'][0]} by {spec['x']}"
    lines: list[Text] = [style_text((title, "dim"))]
    for label, value in bars:
        eighths = round(abs(value) / largest * MAX_BAR_CHARACTERS * 8)
        bar = "░" * (eighths // 8) if value < 0 else "█" * (eighths // 8) + "▏▎▍▌▋▊▉"[eighths % 8 - 1 : eighths % 8]
        number = f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"
        lines.append(style_text(f"{label}{' ' * (width - cell_len(label))}  ", (bar or "▏", "cyan"), f" {number}"))
    if len(rows) > limit:
        lines.append(_render_row_limit_note(limit, len(rows), language))
    return Text("\n").join(lines)


def _render_row_limit_note(shown: int, total: int, language: Language) -> Text:
    return style_text(
        (f"共 {total} 行，只列出前 {shown} 行" if language == "zh" else f"{shown} of {total} rows", "dim")
    )


def to_json(value: Any) -> str:
    """Return JSON without lone surrogates and characters that control a terminal; other values as models get them."""
    try:
        text = orjson.dumps(value, default=encode_value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # a lone surrogate, an integer beyond 64 bits, or deep nesting
        try:
            text = json.dumps(value, default=encode_value, indent=2, ensure_ascii=False)
        except RecursionError:
            text = dump_json(value, default=encode_value).decode()
        text = text.encode("utf-8", "replace").decode()
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def finished_run_to_json(run_finished: RunFinished, results: Sequence[ToolFinished]) -> dict[str, Any]:
    """Return the JSON form of the end of a run, with its calls and their results."""
    _, form = event_to_json(run_finished) or ("", {})
    calls = [
        {**result_to_json(event.result), **call_to_json(event.call)}  # the call has the same id and name
        for event in results
    ]
    return {**form, "tool_calls": calls}


def is_terminal() -> bool:
    """Return whether a person can answer a question."""
    return sys.stdin is not None and sys.stdin.isatty()


def confirm(err: Console, question: str) -> bool:
    """Ask a person, and return whether the answer is yes."""
    err.print(style_text((question, "yellow")), end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes", "是", "好")


def create_progress(err: Console) -> Progress:
    """Create the display of tasks with their numbers of completed and of all steps, and the time."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=err)


class DownloadBar:
    """A progress bar on `err` for the download of weights, shown from the first progress to the last.

    `allow_download` starts the download without a question. As a context manager, it also stops at the end of the
    block. After an interruption, it says that the download can be resumed.
    """

    def __init__(self, err: Console, *, allow_download: bool = False) -> None:
        self._err = err
        self._allow_download = allow_download
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, progress: PullProgress) -> None:
        """Show the progress."""
        if self._bar is None:
            columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
            self._bar = Progress(TextColumn("{task.description}"), *columns, console=self._err)
            self._bar.start()
        if progress.stage not in self._tasks:
            self._tasks[progress.stage] = self._bar.add_task(
                f"{_STAGE_LABELS[progress.stage]} the embedded model", total=progress.total_bytes
            )
        self._bar.update(self._tasks[progress.stage], completed=progress.done_bytes, total=progress.total_bytes)
        if progress.stage == "verify" and progress.done_bytes >= progress.total_bytes:
            self.stop()

    def confirm_download(self, size_bytes: int) -> None:
        """Ask before a download; a script must pass --download.

        Raises:
            ModelNotFound: The user declines, or there is no terminal to ask at.
        """
        size = f"{size_bytes / 1e9:.1f} GB"
        if self._allow_download:
            return
        if not is_terminal():
            raise ModelNotFound(
                f"The embedded model is not on this machine. Download it ({size}, once) with: opposable models pull. "
                "Or pass --download, or another model with --model."
            )
        question = f"The embedded model is not on this machine. Download it now ({size}, once)? [y/N] "
        if not confirm(self._err, question):
            raise ModelNotFound(
                "The embedded model was not downloaded. Pass another model with --model, see `models list`."
            )

    def stop(self) -> None:
        """Stop the bar, which stays visible."""
        if self._bar is not None:
            self._bar.stop()
            self._bar, self._tasks = None, {}

    def __enter__(self) -> "DownloadBar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_unfinished = self._bar is not None
        self.stop()
        if is_unfinished and kind in (asyncio.CancelledError, KeyboardInterrupt):
            self._err.print("The complete parts are stored; the next pull downloads the missing ones.")
