"""Terminal output is complete and contains no control characters."""

import asyncio
import sys
from io import StringIO

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from opposable.cli.rendering import (
    DownloadBar,
    RunPrinter,
    escape_control_characters,
    finished_run_to_json,
    render_chart,
    render_table,
    shorten,
    style_text,
    to_json,
)
from opposable.domain.errors import ModelNotFound
from opposable.domain.events import (
    CallDelta,
    RunFinished,
    RunStarted,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
)
from opposable.domain.language import Language
from opposable.domain.tools import ToolCall, ToolResult
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.embedded.weights import PullProgress

HOSTILE = "\x1b[2J\x1b]0;title\x07[red]x[/red]\x9b31m\u202e\x00\x08\x7f\r\nlast"


class TerminalFile(StringIO):
    def isatty(self) -> bool:
        return True


def create_console(width: int = 200, file: StringIO | None = None) -> Console:
    return Console(file=file or StringIO(), width=width, force_terminal=False, soft_wrap=True)


def get_text(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def print_events(*events) -> tuple[str, str]:
    """Return what standard error and standard output have after these events."""
    err, out = create_console(), create_console()
    printer = RunPrinter(err, out)
    for event in events:
        printer.show(event)
    return get_text(err), get_text(out)


def tool_started(name: str = "echo", arguments: str = '{"text":"hi"}') -> ToolStarted:
    return ToolStarted(ToolCall.from_json("c", name, arguments))


def tool_finished(content: str, failure=None, repairs: tuple[str, ...] = ()) -> ToolFinished:
    result = ToolResult("c", "echo", content, failure, seconds=0.5, repairs=repairs)
    return ToolFinished(ToolCall.from_json("c", "echo", "{}"), result)


def run_finished(text: str, reason="answer") -> RunFinished:
    return RunFinished(text, reason, NO_USAGE, 1, 0, ())


@pytest.mark.parametrize(
    ("events", "err", "out"),
    [
        ([TextDelta("Hel"), TextDelta("lo."), run_finished("Hello.")], "", "Hello.\n"),
        ([TextDelta("Hello.\n"), run_finished("Hello.")], "", "Hello.\n"),
        ([TextDelta("x" * 250_000), TextDelta("."), run_finished("x" * 250_000 + ".")], "", "x" * 250_000 + ".\n"),
        ([run_finished("said in one piece")], "", "said in one piece\n"),
        (
            [TextDelta("Let me see."), run_finished("The task used up its time.")],
            "",
            "Let me see.\nThe task used up its time.\n",
        ),
        ([TextDelta("a\tb\n\n  c"), run_finished("a\tb\n\n  c")], "", "a\tb\n\n  c\n"),
        ([RunStarted("r"), ThinkingDelta("hm"), CallDelta(0, name="echo")], "", ""),
        ([tool_started(), tool_finished("hi")], '→ echo{"text":"hi"}\n  ✓ hi 0.50 s\n', ""),
        ([tool_finished("no such file", "failed")], "  ✗ failed no such file 0.50 s\n", ""),
        ([tool_finished("hi", repairs=("a quote was added",))], "  ✓ hi 0.50 s (repaired: a quote was added)\n", ""),
        ([TextDelta("I call:"), tool_started()], '→ echo{"text":"hi"}\n', "I call:\n"),
        ([run_finished("Half.", "turns")], "The run ended at its limit of model replies.\n", "Half.\n"),
        ([tool_finished("line\nline " + "x" * 300)], "  ✓ line line " + "x" * 190 + "… 0.50 s\n", ""),
    ],
)
def test_a_run_is_printed_as_it_happens(events, err: str, out: str) -> None:
    assert print_events(*events) == (err, out)


def test_without_an_output_the_answer_is_not_printed() -> None:
    err = create_console()
    printer = RunPrinter(err, None)
    for event in (TextDelta("secret"), tool_started(), tool_finished("hi"), run_finished("secret")):
        printer.show(event)
    assert get_text(err) == '→ echo{"text":"hi"}\n  ✓ hi 0.50 s\n'


def test_an_open_line_is_ended_once() -> None:
    err, out = create_console(), create_console()
    printer = RunPrinter(err, out)
    printer.show(TextDelta("half"))
    printer.end_line()
    printer.end_line()
    assert get_text(out) == "half\n"


def test_output_of_models_and_tools_never_controls_the_terminal() -> None:
    events = [TextDelta(character) for character in HOSTILE]
    events += [
        tool_started(HOSTILE, HOSTILE),
        tool_finished(HOSTILE, "failed", (HOSTILE,)),
        run_finished(HOSTILE + "!"),
    ]
    err, out = create_console(), create_console(file=TerminalFile())
    colored = Console(file=StringIO(), force_terminal=True, width=200)
    for printer in (RunPrinter(err, out), RunPrinter(colored, None)):
        for event in events:
            printer.show(event)
    for cells in (render_table([HOSTILE], [[HOSTILE], [None]]), style_text(HOSTILE, (HOSTILE, "red"))):
        out.print(cells)
    printed = get_text(err) + get_text(out)
    assert not {char for char in printed if not char.isprintable() and char != "\n"}
    assert printed.count("[red]x[/red]") == 10  # markup is text
    own_output = get_text(colored)
    assert "\x1b[2J" not in own_output
    assert "␛[2J" in own_output


def test_a_file_or_pipe_gets_the_exact_answer() -> None:
    assert print_events(TextDelta(HOSTILE), run_finished(HOSTILE)) == ("", f"{HOSTILE}\n")


@given(st.text(st.characters(codec=None)))
def test_escaped_text_has_no_control_characters(text: str) -> None:
    escaped = escape_control_characters(text)
    escaped.encode()
    assert all(char in "\n\t" or ord(char) >= 0x20 for char in escaped)
    assert not {
        char for char in escaped if 0x7F <= ord(char) < 0xA0 or char in "\u202a\u202b\u202c\u202d\u202e\u2066\u2069"
    }


@pytest.mark.parametrize("text", ["", "多少？", "naïve – “quoted” 🙂", "a\tb\nc", ":smile: [b]", "👨‍👩‍👧"])
def test_other_characters_are_unchanged(text: str) -> None:
    assert escape_control_characters(text) == text


def test_a_shortened_text_is_one_line() -> None:
    assert shorten(" a\n  b ") == "a b"
    assert shorten("x" * 201) == "x" * 200 + "…"


def test_a_table_shows_every_cell_unchanged() -> None:
    out = create_console(60)
    out.print(
        render_table(["id", "[b]名字[/b]"], [[1, ":smile:"], [2, None], [3, ""], [4, "a\nb"], [5, 0.1], [True, "\\["]])
    )
    rows = [
        [cell.strip() for cell in line.strip("│┃").split("│")] for line in get_text(out).splitlines() if "│" in line
    ]
    assert rows == [["1", ":smile:"], ["2", "NULL"], ["3", ""], ["4", "a"], ["", "b"], ["5", "0.1"], ["True", "\\["]]
    assert "[b]名字[/b]" in get_text(out)


@pytest.mark.parametrize(("language", "note"), [("en", "3 of 60 rows"), ("zh", "共 60 行，只列出前 3 行")])
def test_a_long_table_notes_how_many_rows_it_omits(language: Language, note: str) -> None:
    out = create_console(60)
    out.print(render_table(["n"], [[n] for n in range(60)], limit=3, language=language))
    assert get_text(out).splitlines()[3:] == ["│ 0 │", "│ 1 │", "│ 2 │", "└───┘", note]


@pytest.mark.parametrize(("language", "title"), [("en", "n by day"), ("zh", "n（按 day）")])
def test_a_chart_has_a_title(language: Language, title: str) -> None:
    chart = render_chart({"type": "bar", "x": "day", "y": ["n"]}, ["day", "n"], [["a", 1], ["b", 2]], language=language)
    assert chart.plain.splitlines()[0] == title


@pytest.mark.parametrize(
    ("value", "parsed"),
    [
        ({"a": (1, None, "螺母")}, {"a": [1, None, "螺母"]}),
        ({1: {"x": float("nan")}}, {"1": {"x": None}}),
        ({"big": 2**100}, {"big": 2**100}),
        ({"set": {1}, "bytes": b"hi"}, {"set": [1], "bytes": "hi"}),
        ({"set": {1}, "big": 2**100}, {"set": [1], "big": 2**100}),
        ({"half": "a\udcffb"}, {"half": "a?b"}),
        (HOSTILE, HOSTILE),
    ],
)
def test_json_has_the_value_and_no_control_characters(value, parsed) -> None:
    import json

    text = to_json(value)
    assert json.loads(text) == parsed
    assert all(char.isprintable() or char == "\n" for char in text)


def test_the_end_of_a_run_as_json() -> None:
    call = ToolFinished(
        ToolCall.from_json("c", "add", '{"a":1}'), ToolResult("c", "add", "1", seconds=0.25, repairs=("r",))
    )
    end = RunFinished("One.", "answer", Usage(7, 3, 2), 2, 1, ())
    assert orjson.loads(to_json(finished_run_to_json(end, [call]))) == {
        "text": "One.",
        "reason": "answer",
        "turns": 2,
        "usage": {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10, "model_calls": 2},
        "cost": None,
        "tool_calls": [
            {
                "call_id": "c",
                "name": "add",
                "arguments": {"a": 1},
                "success": True,
                "result": "1",
                "failure": None,
                "seconds": 0.25,
                "attempts": 1,
                "cached": False,
                "cut": 0,
                "handle": "",
                "repairs": ["r"],
            }
        ],
    }


def test_a_download_is_shown_from_the_first_progress_to_the_last() -> None:
    err = create_console(100)
    bar = DownloadBar(err)
    with bar:
        assert get_text(err) == ""
        bar(PullProgress(1_000_000, 2_000_000, "download"))
        bar(PullProgress(2_000_000, 2_000_000, "download"))
        bar(PullProgress(2_000_000, 2_000_000, "verify"))
        done = get_text(err)
    assert get_text(err) == done
    assert [line.split(" the ")[0] for line in done.splitlines()] == ["downloading", "verifying"]


@pytest.mark.parametrize(
    ("error", "is_reported"),
    [(asyncio.CancelledError(), True), (KeyboardInterrupt(), True), (RuntimeError("disk"), False)],
)
def test_an_interrupted_download_says_that_it_can_be_resumed(error: BaseException, is_reported: bool) -> None:
    err = create_console(100)
    bar = DownloadBar(err)
    bar(PullProgress(1, 2, "download"))
    with pytest.raises(type(error)), bar:
        raise error
    assert (
        "The complete parts are stored; the next pull downloads the missing ones.\n" in get_text(err)
    ) is is_reported


def test_a_bar_without_progress_prints_nothing() -> None:
    err = create_console(100)
    with pytest.raises(KeyboardInterrupt), DownloadBar(err):
        raise KeyboardInterrupt
    assert get_text(err) == ""


def test_the_end_of_input_declines_a_download(monkeypatch):
    class ClosedTerminal(StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", ClosedTerminal(""))
    with pytest.raises(ModelNotFound, match="was not downloaded"):
        DownloadBar(Console(file=StringIO())).confirm_download(1_100_000_000)
