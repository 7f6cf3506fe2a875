"""What a person at a terminal sees: all of it, and nothing that the terminal would obey."""

import asyncio
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
    render_chart,
    render_table,
    result_to_json,
    run_to_json,
    shorten,
    style_text,
    to_json,
)
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


def console(width: int = 200) -> Console:
    return Console(file=StringIO(), width=width, force_terminal=False)


def text_of(shown: Console) -> str:
    assert isinstance(shown.file, StringIO)
    return shown.file.getvalue()


def trace_of(*events) -> tuple[str, str]:
    """What stands on standard error and standard output after these events."""
    err, out = console(), console()
    trace = RunPrinter(err, out)
    for event in events:
        trace.show(event)
    return text_of(err), text_of(out)


def started(name: str = "echo", arguments: str = '{"text":"hi"}') -> ToolStarted:
    return ToolStarted(ToolCall.from_json("c", name, arguments))


def finished(content: str, failure=None, repairs: tuple[str, ...] = ()) -> ToolFinished:
    result = ToolResult("c", "echo", content, failure, seconds=0.5, repairs=repairs)
    return ToolFinished(ToolCall.from_json("c", "echo", "{}"), result)


def ended(text: str, reason="answer") -> RunFinished:
    return RunFinished(text, reason, NO_USAGE, 1, 0, ())


@pytest.mark.parametrize(
    ("events", "err", "out"),
    [
        ([TextDelta("Hel"), TextDelta("lo."), ended("Hello.")], "", "Hello.\n"),
        ([TextDelta("Hello.\n"), ended("Hello.")], "", "Hello.\n"),
        ([ended("said in one piece")], "", "said in one piece\n"),
        (
            [TextDelta("Let me see."), ended("The task used up its time.")],
            "",
            "Let me see.\nThe task used up its time.\n",
        ),
        ([TextDelta("a\tb\n\n  c"), ended("a\tb\n\n  c")], "", "a\tb\n\n  c\n"),
        ([RunStarted("r"), ThinkingDelta("hm"), CallDelta(0, name="echo")], "", ""),
        ([started(), finished("hi")], '→ echo{"text":"hi"}\n  ✓ hi 0.50 s\n', ""),
        ([finished("no such file", "failed")], "  ✗ failed no such file 0.50 s\n", ""),
        ([finished("hi", repairs=("a quote was added",))], "  ✓ hi 0.50 s (mended: a quote was added)\n", ""),
        ([TextDelta("I call:"), started()], '→ echo{"text":"hi"}\n', "I call:\n"),
        ([ended("Half.", "turns")], "The run ended at its limit of model replies.\n", "Half.\n"),
        ([finished("line\nline " + "x" * 300)], "  ✓ line line " + "x" * 190 + "… 0.50 s\n", ""),
    ],
)
def test_a_run_is_shown_as_it_happens(events, err: str, out: str) -> None:
    assert trace_of(*events) == (err, out)


def test_without_a_place_for_it_the_answer_is_not_shown() -> None:
    err = console()
    trace = RunPrinter(err, None)
    for event in (TextDelta("secret"), started(), finished("hi"), ended("secret")):
        trace.show(event)
    assert text_of(err) == '→ echo{"text":"hi"}\n  ✓ hi 0.50 s\n'


def test_a_line_that_stands_open_is_ended_once() -> None:
    err, out = console(), console()
    trace = RunPrinter(err, out)
    trace.show(TextDelta("half"))
    trace.end_line()
    trace.end_line()
    assert text_of(out) == "half\n"


def test_nothing_a_model_or_tool_says_is_obeyed_by_the_terminal() -> None:
    events = [TextDelta(piece) for piece in HOSTILE]
    events += [started(HOSTILE, HOSTILE), finished(HOSTILE, "failed", (HOSTILE,)), ended(HOSTILE + "!")]
    err, out = console(), console()
    colours = Console(file=StringIO(), force_terminal=True, width=200)
    for trace in (RunPrinter(err, out), RunPrinter(colours, None)):
        for event in events:
            trace.show(event)
    for cells in (render_table([HOSTILE], [[HOSTILE], [None]]), style_text(HOSTILE, (HOSTILE, "red"))):
        out.print(cells)
    shown = text_of(err) + text_of(out)
    assert not {char for char in shown if not char.isprintable() and char != "\n"}
    assert shown.count("[red]x[/red]") == 10  # markup is text
    own = text_of(colours)
    assert "\x1b[2J" not in own
    assert "␛[2J" in own


@given(st.text(st.characters(codec=None)))
def test_plain_text_has_no_character_that_is_obeyed(text: str) -> None:
    made = escape_control_characters(text)
    made.encode()
    assert all(char in "\n\t" or ord(char) >= 0x20 for char in made)
    assert not {
        char for char in made if 0x7F <= ord(char) < 0xA0 or char in "\u202a\u202b\u202c\u202d\u202e\u2066\u2069"
    }


@pytest.mark.parametrize("text", ["", "多少？", "naïve – “quoted” 🙂", "a\tb\nc", ":smile: [b]", "👨‍👩‍👧"])
def test_plain_text_leaves_the_rest_alone(text: str) -> None:
    assert escape_control_characters(text) == text


def test_a_short_text_is_one_line() -> None:
    assert shorten(" a\n  b ") == "a b"
    assert shorten("x" * 201) == "x" * 200 + "…"


def test_a_table_shows_every_cell_as_it_is() -> None:
    out = console(60)
    out.print(
        render_table(["id", "[b]名字[/b]"], [[1, ":smile:"], [2, None], [3, ""], [4, "a\nb"], [5, 0.1], [True, "\\["]])
    )
    rows = [[cell.strip() for cell in line.strip("│┃").split("│")] for line in text_of(out).splitlines() if "│" in line]
    assert rows == [["1", ":smile:"], ["2", "NULL"], ["3", ""], ["4", "a"], ["", "b"], ["5", "0.1"], ["True", "\\["]]
    assert "[b]名字[/b]" in text_of(out)


@pytest.mark.parametrize(("language", "told"), [("en", "3 of 60 rows"), ("zh", "共 60 行，只列出前 3 行")])
def test_a_long_table_says_what_it_leaves_out(language: Language, told: str) -> None:
    out = console(60)
    out.print(render_table(["n"], [[n] for n in range(60)], limit=3, language=language))
    assert text_of(out).splitlines()[3:] == ["│ 0 │", "│ 1 │", "│ 2 │", "└───┘", told]


@pytest.mark.parametrize(("language", "told"), [("en", "n by day"), ("zh", "n（按 day）")])
def test_a_chart_says_what_it_shows(language: Language, told: str) -> None:
    drawn = render_chart({"type": "bar", "x": "day", "y": ["n"]}, ["day", "n"], [["a", 1], ["b", 2]], language=language)
    assert drawn.plain.splitlines()[0] == told


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"a": (1, None, "螺母")}, {"a": [1, None, "螺母"]}),
        ({1: {"x": float("nan")}}, {"1": {"x": None}}),
        ({"big": 2**100}, {"big": 2**100}),
        ({"half": "a\udcffb"}, {"half": "a?b"}),
        (HOSTILE, HOSTILE),
    ],
)
def test_json_holds_what_was_given_and_nothing_obeyed(value, read) -> None:
    import json

    made = to_json(value)
    assert json.loads(made) == read
    assert all(char.isprintable() or char == "\n" for char in made)


def test_the_end_of_a_run_as_json() -> None:
    call = ToolFinished(
        ToolCall.from_json("c", "add", '{"a":1}'), ToolResult("c", "add", "1", seconds=0.25, repairs=("r",))
    )
    end = RunFinished("One.", "answer", Usage(7, 3, 2), 2, 1, ())
    assert orjson.loads(to_json(run_to_json(end, [call]))) == {
        "text": "One.",
        "reason": "answer",
        "turns": 2,
        "usage": {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10, "model_calls": 2},
        "cost": None,
        "tool_calls": [
            {"name": "add", "arguments": {"a": 1}, "content": "1", "failure": None, "seconds": 0.25, "repairs": ["r"]}
        ],
    }
    assert result_to_json(call.result) == {"content": "1", "failure": None, "data": None, "cut": 0, "seconds": 0.25}


# --- the bar ---


def test_a_pull_is_shown_from_its_first_word_to_its_last() -> None:
    err = console(100)
    bar = DownloadBar(err)
    with bar:
        assert text_of(err) == ""
        bar(PullProgress(1_000_000, 2_000_000, "download"))
        bar(PullProgress(2_000_000, 2_000_000, "download"))
        bar(PullProgress(2_000_000, 2_000_000, "join"))
        bar(PullProgress(2_000_000, 2_000_000, "verify"))
        done = text_of(err)
    assert text_of(err) == done
    assert [line.split(" the ")[0] for line in done.splitlines()] == ["fetching", "joining", "verifying"]


@pytest.mark.parametrize(
    ("error", "told"), [(asyncio.CancelledError(), True), (KeyboardInterrupt(), True), (RuntimeError("disk"), False)]
)
def test_a_pull_that_is_stopped_says_that_nothing_is_lost(error: BaseException, told: bool) -> None:
    err = console(100)
    bar = DownloadBar(err)
    bar(PullProgress(1, 2, "download"))
    with pytest.raises(type(error)), bar:
        raise error
    assert ("What was fetched stays; the next pull goes on from there.\n" in text_of(err)) is told


def test_a_bar_that_never_began_says_nothing() -> None:
    err = console(100)
    with pytest.raises(KeyboardInterrupt), DownloadBar(err):
        raise KeyboardInterrupt
    assert text_of(err) == ""
