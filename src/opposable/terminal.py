"""What a person at a terminal sees of a run: the calls as they happen, the answer, tables, progress."""

from collections.abc import Sequence
from typing import Any

import orjson
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table

from opposable.domain.events import Event, RunFinished, TextDelta, ToolFinished, ToolStarted
from opposable.models.weights import Progress as PullProgress

SHOWN = 200
"""Characters of a result or of arguments shown in the trace."""

_STAGES = {"wait": "waiting", "download": "fetching", "join": "joining", "verify": "verifying"}


class Trace:
    """Shows a run's events: calls on `err`, the answer on `out` as it is written.

    `out` None shows the answer's text nowhere (it is printed otherwise).
    """

    def __init__(self, err: Console, out: Console | None) -> None:
        self._err = err
        self._out = out
        self._open = False
        self._written = ""

    def show(self, event: Event) -> None:
        """Show one event."""
        if isinstance(event, TextDelta):
            self._write(event.text)
        elif isinstance(event, ToolStarted):
            self._end_line()
            self._err.print(
                f"[cyan]→[/] [bold]{escape(event.call.name)}[/]{escape(short(event.call.arguments))}", highlight=False
            )
        elif isinstance(event, ToolFinished):
            self._end_line()
            result = event.result
            mended = f" [yellow](mended: {escape('; '.join(result.repairs))})[/]" if result.repairs else ""
            mark = "[green]✓[/]" if result.failure is None else f"[red]✗ {result.failure}[/]"
            self._err.print(
                f"  {mark} {escape(short(result.content))} [dim]{result.seconds:.2f} s[/]{mended}", highlight=False
            )
        elif isinstance(event, RunFinished):
            if not self._written.strip().endswith(event.text.strip()):
                self._end_line()
                self._write(event.text)
            self._end_line()

    def _write(self, text: str) -> None:
        self._written = (self._written + text)[-200_000:]
        if self._out is not None:
            self._out.print(text, end="", markup=False, highlight=False, soft_wrap=True, emoji=False)
            self._open = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._open and self._out is not None:
            self._out.print()
        self._open = False


def short(text: str) -> str:
    """`text` on one line, cut to what fits into a trace."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], most: int = 50) -> Table:
    """Rows as a table, at most `most` of them."""
    shown = Table(show_header=True, header_style="bold")
    for column in columns:
        shown.add_column(escape(str(column)), overflow="fold")
    for row in rows[:most]:
        shown.add_row(*(escape("" if cell is None else str(cell)) for cell in row))
    if len(rows) > most:
        shown.caption = f"{most} of {len(rows)} rows"
    return shown


def as_json(value: Any) -> str:
    """JSON for scripts."""
    return orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()


def end_as_json(end: RunFinished, results: Sequence[ToolFinished]) -> dict[str, Any]:
    """The end of a run and its calls, for scripts."""
    return {
        "text": end.text,
        "reason": end.reason,
        "turns": end.turns,
        "usage": {
            "input_tokens": end.usage.input_tokens,
            "output_tokens": end.usage.output_tokens,
            "total_tokens": end.usage.total_tokens,
            "model_calls": end.usage.requests,
        },
        "tool_calls": [
            {
                "name": item.call.name,
                "arguments": orjson.loads(item.call.arguments),
                "content": item.result.content,
                "failure": item.result.failure,
                "seconds": round(item.result.seconds, 4),
                "repairs": item.result.repairs,
            }
            for item in results
        ],
    }


class PullBar:
    """A bar for the fetching of weights, on `err`; it appears with the first `Progress` and stops with the last."""

    def __init__(self, err: Console) -> None:
        self._err = err
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, now: PullProgress) -> None:
        """Show how far it is."""
        if self._bar is None:
            columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
            self._bar = Progress(TextColumn("{task.description}"), *columns, console=self._err)
            self._bar.start()
        if now.stage not in self._tasks:
            self._tasks[now.stage] = self._bar.add_task(
                f"{_STAGES[now.stage]} the embedded model", total=now.total_bytes
            )
        self._bar.update(self._tasks[now.stage], completed=now.done_bytes, total=now.total_bytes)
        if now.stage == "verify" and now.done_bytes >= now.total_bytes:
            self.stop()

    def stop(self) -> None:
        """Leave the bar as it stands."""
        if self._bar is not None:
            self._bar.stop()
            self._bar, self._tasks = None, {}
