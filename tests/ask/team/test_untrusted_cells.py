"""Cells of a database are displayed as text in a terminal, in JSON and in HTML reports."""

import io
import sqlite3
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from tests.ask.hostile import HOSTILE_NAMES

from opposable.app.ask import answer_to_json
from opposable.ask.team.factory import open_team
from opposable.cli.rendering import (
    RunPrinter,
    escape_control_characters,
    render_chart,
    render_table,
    style_text,
    to_json,
)
from opposable.domain.answers import DataAnswer
from opposable.domain.events import DataAnswered
from opposable.domain.usage import Usage
from opposable.evals.text_to_sql.datasets import EvalQuestion
from opposable.evals.text_to_sql.harness import SqlScore, SqlScoreSheet
from opposable.evals.text_to_sql.report import render_report
from opposable.models.scripted import ScriptedModel
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio

CELLS = (
    *HOSTILE_NAMES,
    *(
        "\x1b]0;title\x07",
        "\x1b[2J\x1b[1;1H",
        "\x9b31m",
        "\u2066turned\u2069",
        "a\rb",
        "a\bb",
        "half \ud83d",
        "[red]x[/red]",
        ":smile:",
    ),
    *("![x](http://127.0.0.1/?q=1)", "[link=http://127.0.0.1]x[/link]", "</pre><script>alert(1)</script>", "&lt;b&gt;"),
    *('"><svg/onload=alert(1)>', "javascript:alert(1)", "<!--", "=cmd|' /C calc'!A0"),
)
CONTROL_CHARACTERS = {
    chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
} - {"\n"}


@pytest.fixture
async def answers(tmp_path: Path) -> list[DataAnswer]:
    """What the team answers from such cells: a table of them, one of them, and an error that quotes them."""
    path = tmp_path / "cells.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE cells (cell TEXT, n INTEGER)")
        rows = [(cell.encode("utf-8", "replace").decode(), at) for at, cell in enumerate(CELLS)]
        connection.executemany("INSERT INTO cells VALUES (?, ?)", rows)
    connection.close()
    database = await open_database(str(path))
    data_answers: list[DataAnswer] = []
    for sql in (
        "SELECT cell, n + 1 AS n FROM cells LIMIT 150",
        *(f"SELECT cell FROM cells WHERE n = {at}" for at in range(0, len(CELLS), 5)),
        *(
            f"SELECT '{cell.replace(chr(39), chr(39) * 2)}' AS \"{cell.replace(chr(34), chr(34) * 2)}\""
            for cell in CELLS[::4]
        ),
        "EXPLAIN \x1b[31mred",
    ):
        async with open_team(ScriptedModel(f"```sql\n{sql}\n```"), database) as team:
            data_answers += [event.answer async for event in team.stream("Which?") if isinstance(event, DataAnswered)]
    await database.close()
    return data_answers


async def test_control_characters_are_not_written_to_a_terminal(answers: list[DataAnswer]):
    assert answers[0].chart is not None
    out = io.StringIO()
    console = Console(file=out, width=100, color_system=None)
    for answer in answers:
        console.print(style_text(("SQL", "bold"), f"  {answer.sql}"))
        console.print(render_table(answer.columns, answer.rows))
        if answer.chart:
            console.print(render_chart(answer.chart, answer.columns, answer.rows))
        console.print(style_text(*answer.assumptions, *answer.corrections))
        out.write(escape_control_characters(answer.text))
    assert not CONTROL_CHARACTERS & set(out.getvalue())
    assert "[red]x[/red]" in out.getvalue()
    assert ":smile:" in out.getvalue()


async def test_json_escapes_control_characters_and_preserves_every_value(answers: list[DataAnswer]):
    for answer in answers:
        text = to_json(answer_to_json(answer, Usage()))
        assert not CONTROL_CHARACTERS & set(text)
        assert orjson.loads(text)["rows"] == [list(row) for row in answer.rows]


async def test_the_trace_of_a_run_contains_no_control_characters(tmp_path: Path):
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE a (b TEXT)")
        connection.executemany(
            "INSERT INTO a VALUES (?)", [(cell.encode("utf-8", "replace").decode(),) for cell in CELLS]
        )
    connection.close()
    err, out = io.StringIO(), io.StringIO()
    shown = RunPrinter(Console(file=err, color_system=None), Console(file=out, color_system=None))
    database = await open_database(str(path))
    replies = ("```sql\nSELECT \x1b[31mb FROM \x1b]0;x\x07a\n```", "```sql\nSELECT b FROM a\n```")
    async with open_team(ScriptedModel(*replies), database) as team:
        async for event in team.stream("Which \x1b[31m?"):
            shown.show(event)
    await database.close()
    assert not CONTROL_CHARACTERS & set(err.getvalue() + out.getvalue())


class Tags(HTMLParser):
    """The tags and attributes a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[str, tuple[str, ...]]] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_report_of_failures_contains_no_markup_from_data(tmp_path: Path):
    scores = [
        SqlScore(
            EvalQuestion(cell, "db", cell, cell, cell),
            cell,
            False,
            False,
            cell,
            Usage(),
            0.0,
            (cell,),
            ((cell,),),
            ((cell,),),
        )
        for cell in CELLS
    ]
    page = Tags()
    page.feed(render_report({"<b>team</b>": SqlScoreSheet(scores)}))
    assert {tag for tag, _ in page.seen} == {
        "meta",
        "title",
        "style",
        "h1",
        "h2",
        "table",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "p",
        "pre",
    }
    assert {attributes for _, attributes in page.seen} == {(), ("charset",), ("class",)}
    assert "</pre><script>alert(1)</script>" in "".join(page.text)
