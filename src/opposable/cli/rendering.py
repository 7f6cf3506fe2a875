"""What a person at a terminal sees of a run: the calls as they happen, the answer, tables, progress."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import orjson
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
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
from rich.text import Text

from opposable.domain.events import DecisionMade, Event, RunFinished, StopReason, TextDelta, ToolFinished, ToolStarted
from opposable.domain.language import Language
from opposable.domain.tools import ToolResult
from opposable.models.embedded.weights import PullProgress as PullProgress

MAX_TRACE_CHARACTERS = 200
"""Characters of a result or of arguments shown in the trace."""

MAX_LABEL_CHARACTERS, MAX_BAR_CHARACTERS = 30, 40
"""Characters of a label and of the longest bar in a chart."""

_STAGE_LABELS = {"wait": "waiting for", "download": "fetching", "join": "joining", "verify": "verifying"}
_LIMIT_LABELS: dict[StopReason, str] = {
    "turns": "model replies",
    "tool_calls": "tool calls",
    "tokens": "tokens",
    "cost": "cost",
    "time": "time",
}

# What a terminal would obey instead of showing: control characters, and those that turn the direction of writing.
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
    """Shows a run's events: calls on `err`, the answer on `out` as it is written, or nowhere when `out` is None."""

    def __init__(self, err: Console, out: Console | None) -> None:
        self._err = err
        self._out = out
        self._is_line_open = False
        self._written = ""

    def show(self, event: Event) -> None:
        """Show one event."""
        if isinstance(event, TextDelta):
            self._write_text(event.text)
        elif isinstance(event, ToolStarted):
            self._print_line(("→ ", "cyan"), (shorten(event.call.name), "bold"), shorten(event.call.arguments_json))
        elif isinstance(event, ToolFinished):
            result = event.result
            mark = ("  ✓ ", "green") if result.failure is None else (f"  ✗ {result.failure} ", "red")
            mended = f" (mended: {shorten('; '.join(result.repairs))})" if result.repairs else ""
            self._print_line(mark, shorten(result.content), (f" {result.seconds:.2f} s", "dim"), (mended, "yellow"))
        elif isinstance(event, DecisionMade):
            self._print_line(("· ", "dim"), (event.action, "bold"), (f"  {shorten(event.reason)}", "dim"))
        elif isinstance(event, RunFinished):
            if not self._written.strip().endswith(event.text.strip()):
                self.end_line()
                self._write_text(event.text)
            self.end_line()
            if event.reason != "answer":
                self._print_line((f"The run ended at its limit of {_LIMIT_LABELS[event.reason]}.", "yellow"))

    def end_line(self) -> None:
        """Begin a new line if the answer stands in the middle of one."""
        if self._is_line_open and self._out is not None:
            self._out.print()
        self._is_line_open = False

    def _print_line(self, *parts: str | tuple[str, str]) -> None:
        self.end_line()
        self._err.print(style_text(*parts), soft_wrap=True)

    def _write_text(self, text: str) -> None:
        self._written = (self._written + text)[-200_000:]
        if self._out is not None:
            self._out.file.write(escape_control_characters(text))  # Console.print would turn tabs into spaces
            self._out.file.flush()
            self._is_line_open = not text.endswith("\n")


def escape_control_characters(text: str) -> str:
    """`text` with every character that a terminal would obey shown instead: what a tool or model says is not trusted."""
    return text.translate(_VISIBLE_CHARACTERS)


def style_text(*parts: str | tuple[str, str]) -> Text:
    """Parts of a line, each a text or a text with its style, made `plain`; no markup is read in them."""
    return Text.assemble(
        *(
            escape_control_characters(part) if isinstance(part, str) else (escape_control_characters(part[0]), part[1])
            for part in parts
        )
    )


def shorten(text: str) -> str:
    """`text` on one line, cut to what fits into a trace."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TRACE_CHARACTERS else f"{line[:MAX_TRACE_CHARACTERS]}…"


def render_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], limit: int = 50, *, language: Language = "en"
) -> RenderableType:
    """Rows as a table, at most `most` of them; None is shown as NULL."""
    shown = Table(show_header=True, header_style="bold")
    for column in columns:
        shown.add_column(style_text(str(column)), overflow="fold")
    for row in rows[:limit]:
        shown.add_row(*(style_text(("NULL", "dim") if cell is None else str(cell)) for cell in row))
    return shown if len(rows) <= limit else Group(shown, _render_row_limit_note(limit, len(rows), language))


def render_chart(
    spec: Mapping[str, Any],
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    limit: int = 30,
    *,
    language: Language = "en",
) -> Text:
    """The first `y` of a chart as bars of a row each, at most `most` of them; negative ones are hatched."""
    x, y = columns.index(spec["x"]), columns.index(spec["y"][0])
    shown = [
        (escape_control_characters(" ".join(str(row[x]).split()))[:MAX_LABEL_CHARACTERS], row[y] or 0)
        for row in rows[:limit]
    ]
    largest = max((abs(value) for _, value in shown), default=0) or 1
    width = max((cell_len(label) for label, _ in shown), default=0)
    title = f"{spec['y'][0]}（按 {spec['x']}）" if language == "zh" else f"{spec['y'][0]} by {spec['x']}"
    lines: list[Text] = [style_text((title, "dim"))]
    for label, value in shown:
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
    """JSON for scripts: no half characters, and nothing in it that a terminal would obey."""
    try:
        text = orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # a half character or an integer beyond 64 bits
        text = json.dumps(value, default=str, indent=2, ensure_ascii=False).encode("utf-8", "replace").decode()
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def run_to_json(run_finished: RunFinished, results: Sequence[ToolFinished]) -> dict[str, Any]:
    """The end of a run and its calls, for scripts."""
    return {
        "text": run_finished.text,
        "reason": run_finished.reason,
        "turns": run_finished.turns,
        "usage": run_finished.usage.as_json(),
        "cost": run_finished.cost,
        "tool_calls": [
            {
                "name": item.call.name,
                "arguments": dict(item.call.arguments),
                "content": item.result.content,
                "failure": item.result.failure,
                "seconds": round(item.result.seconds, 4),
                "repairs": item.result.repairs,
            }
            for item in results
        ],
    }


def result_to_json(result: ToolResult) -> dict[str, Any]:
    """What came of one call, for scripts."""
    return {
        "content": result.content,
        "failure": result.failure,
        "data": result.data,
        "cut": result.cut,
        "seconds": round(result.seconds, 4),
    }


class DownloadBar:
    """A bar for the fetching of weights, on `err`; it appears with the first `Progress` and stops with the last.

    In a `with` block it stops at the block's end too, and says that nothing is lost when the user stopped it.
    """

    def __init__(self, err: Console) -> None:
        self._err = err
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, progress: PullProgress) -> None:
        """Show how far it is."""
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

    def stop(self) -> None:
        """Leave the bar as it stands."""
        if self._bar is not None:
            self._bar.stop()
            self._bar, self._tasks = None, {}

    def __enter__(self) -> "DownloadBar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        unfinished = self._bar is not None
        self.stop()
        if unfinished and kind in (asyncio.CancelledError, KeyboardInterrupt):
            self._err.print("What was fetched stays; the next pull goes on from there.", soft_wrap=True)
