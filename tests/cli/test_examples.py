"""The commands for confirmed questions, and `ask --good`."""

from pathlib import Path

import orjson
import pytest
from tests.cli.program import Terminal, needs_posix, run_program, run_with_model
from tests.models.chat_server import build_completion

pytestmark = pytest.mark.anyio

ADD = ("examples", "add", "What does each item cost?", "SELECT name, price FROM item", "--db", "shop.sqlite")


async def list_pairs(workspace: Path) -> list[tuple[str, str]]:
    done = await run_program(workspace, "examples", "list", "--db", "shop.sqlite", "--json")
    return [(one["question"], one["sql"]) for one in done.json["examples"]]


async def test_examples_are_added_listed_and_deleted(workspace: Path) -> None:
    assert (
        await run_program(workspace, "examples", "list", "--db", "shop.sqlite")
    ).out == "No example is stored yet.\n"
    added = await run_program(workspace, *ADD)
    assert added.code == 0, added.err
    assert await list_pairs(workspace) == [("What does each item cost?", "SELECT name, price FROM item")]
    removed = await run_program(workspace, "examples", "rm", added.out.split()[0])
    assert removed.code == 0
    assert await list_pairs(workspace) == []
    again = await run_program(workspace, "examples", "rm", "abc")
    assert (again.code, "There is no example 'abc'" in again.err) == (2, True)


async def test_a_file_is_imported_whole_or_not_at_all(workspace: Path) -> None:
    lines = [
        {"question": "How many?", "sql": "SELECT count(*) FROM item"},
        {"question": "Bad", "sql": "SELECT x FROM y"},
    ]
    (workspace / "bad.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    done = await run_program(workspace, "examples", "import", "bad.jsonl", "--db", "shop.sqlite")
    assert (done.code, "The SQL of 'Bad' does not run" in done.err) == (2, True)
    assert await list_pairs(workspace) == []
    (workspace / "good.jsonl").write_bytes(orjson.dumps(lines[0]))
    done = await run_program(workspace, "examples", "import", "good.jsonl", "--db", "shop.sqlite")
    assert done.out == "Stored examples: 1.\n"
    done = await run_program(workspace, "examples", "import", "good.jsonl", "--db", "shop.sqlite", "--json")
    assert [one["question"] for one in done.json["examples"]] == ["How many?"]
    (workspace / "broken.jsonl").write_text('{"question": "a"}')
    done = await run_program(workspace, "examples", "import", "broken.jsonl", "--db", "shop.sqlite")
    assert (done.code, "line 1" in done.err) == (2, True)
    (workspace / "empty.jsonl").write_text("\n")
    done = await run_program(workspace, "examples", "import", "empty.jsonl", "--db", "shop.sqlite")
    assert (done.code, "empty.jsonl is empty" in done.err) == (2, True)


@needs_posix
async def test_an_import_shows_its_progress_in_a_terminal(workspace: Path) -> None:
    lines = [{"question": f"Item {number}?", "sql": f"SELECT {number}"} for number in range(7)]
    (workspace / "good.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    terminal = Terminal()
    await terminal.open(workspace, "examples", "import", "good.jsonl", "--db", "shop.sqlite")
    await terminal.shows("7/7")
    await terminal.shows("Stored examples: 7.")
    assert await terminal.close() == 0


async def test_the_last_answer_is_confirmed_and_shown_to_the_model(workspace: Path) -> None:
    nothing = await run_program(workspace, "ask", "--good")
    assert (nothing.code, "There is no answer to confirm" in nothing.err) == (2, True)
    reply = build_completion("```sql\nSELECT max(price) FROM item\n```")
    question = ("ask", "What is the highest price of an item?", "--db", "shop.sqlite")
    async with run_with_model(workspace, *question, answers=[reply]) as (done, _):
        assert done.code == 0, done.err
    confirmed = await run_program(workspace, "ask", "--good")
    assert confirmed.code == 0, confirmed.err
    assert await list_pairs(workspace) == [("What is the highest price of an item?", "SELECT max(price) FROM item")]
    similar = ("ask", "What is the lowest price of an item?", "--db", "shop.sqlite")
    async with run_with_model(workspace, *similar, answers=[reply]) as (done, server):
        assert done.code == 0
    assert [message["content"] for message in server.bodies[0]["messages"]][1:3] == [
        "What is the highest price of an item?",
        "```sql\nSELECT max(price) FROM item\n```",
    ]
    follow_up = (*similar, "--after", "What is the highest price of an item?")
    async with run_with_model(workspace, *follow_up, answers=[build_completion("The lowest?"), reply]) as (done, _):
        assert done.code == 0, done.err
    assert (await run_program(workspace, "ask", "--good")).code == 2
