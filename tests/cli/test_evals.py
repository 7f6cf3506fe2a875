"""The commands for evaluations."""

import asyncio
import signal
from pathlib import Path

import orjson
import pytest
from tests.cli.program import SQL_REPLY, needs_posix, respond_endlessly, run_with_model, start_program
from tests.models.chat_server import (
    ChatServer,
    build_completion,
    chat_server,
    respond_json,
)
from tests.waiting import wait_until
from typer.testing import CliRunner

from opposable.cli import cli
from opposable.domain.errors import BadInput

pytestmark = pytest.mark.anyio
SCENARIO_FOLDER = Path(__file__).parents[2] / "evals" / "agent_runs"


async def test_a_set_of_questions_is_evaluated_with_each_answerer(workspace: Path) -> None:
    line = {
        "id": "q1",
        "db": "shop",
        "question": "What does each item cost?",
        "gold_sql": "SELECT name, price FROM item",
    }
    (workspace / "questions.jsonl").write_bytes(orjson.dumps(line))
    args = ("eval", "sql", ".", "--only", "one prompt", "--only", "team", "--report", "r.html", "--json")
    async with run_with_model(workspace, *args, answers=[build_completion(SQL_REPLY)]) as (done, _):
        assert done.code == 0, done.err
        scores = {name: (score["accuracy"], score["executable"]) for name, score in done.json["answerers"].items()}
        assert [(row["answerer"], row["questions"], row["won"]) for row in done.json["paired"]] == [("team", "all", 1)]
    assert scores == {"one prompt": (0.0, 0.0), "team": (100.0, 100.0)}
    assert "What does each item cost?" in (workspace / "r.html").read_text()


async def interrupt_evaluation(folder: Path, server: ChatServer, *args: str) -> bytes:
    """Send Ctrl-C to an evaluation at its second request, and return what it prints."""
    process = await start_program(folder, "eval", *args, "--model", f"{server.url}#m")
    await wait_until(lambda: len(server.bodies) == 2)
    process.send_signal(signal.SIGINT)
    out, err = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, err.endswith(b"Stopped.\n")) == (130, True)
    return out


@needs_posix
async def test_an_interrupted_evaluation_shows_the_scores_so_far(workspace: Path) -> None:
    line = {"db": "shop", "question": "What does each item cost?", "gold_sql": "SELECT name, price FROM item"}
    (workspace / "questions.jsonl").write_bytes(b"\n".join(orjson.dumps(line | {"id": name}) for name in ("q1", "q2")))
    async with chat_server(build_completion("```sql\nSELECT name, price FROM item\n```"), respond_endlessly) as server:
        out = await interrupt_evaluation(workspace, server, "sql", ".", "--only", "one prompt")
    assert b"100.0" in out


@needs_posix
@pytest.mark.parametrize("what", [("runs", "--only", "bare loop", "--no-twice"), ("assistance",)])
async def test_an_interrupted_evaluation_of_runs_shows_the_scores_so_far(tmp_path: Path, what: tuple[str, ...]) -> None:
    async with chat_server(build_completion("Done."), respond_endlessly) as server:
        out = await interrupt_evaluation(tmp_path, server, *what, "--scenarios", str(SCENARIO_FOLDER))
    assert b"success %" in out


def test_a_report_that_cannot_be_written_is_reported_before_the_evaluation(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["eval", "sql", str(tmp_path), "--report", str(tmp_path / "none" / "r.html")])
    assert isinstance(done.exception, BadInput)
    assert "none of the report does not exist. Create it first." in str(done.exception)


def test_runs_are_evaluated_by_kind_and_variant():
    done = CliRunner().invoke(cli, ["eval", "runs", "--kind", "switching tool", "--only", "all guards", "--json"])
    assert done.exit_code == 0
    row = orjson.loads(done.stdout)["all guards"]
    assert (row["success %"], row["repeats"], row["failed"]) == (100.0, 0, [])


async def test_an_evaluation_without_an_answer_of_the_model_fails(workspace: Path) -> None:
    refused = respond_json({"error": {"message": "bad key"}}, status=401)
    args = ("eval", "runs", "--kind", "polling", "--only", "all guards", "--scenarios", str(SCENARIO_FOLDER), "--json")
    async with run_with_model(workspace, *args, answers=[refused]) as (done, _):
        assert (done.code, done.json["error"]["kind"]) == (1, "model_refused_key")
    answers = [build_completion("I cannot do that."), refused]
    async with run_with_model(workspace, *args, "--no-twice", answers=answers) as (done, _):
        assert done.code == 0, done.err
        assert "1 of 2 runs failed with an error of the model. The model server" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [(("--only", "some guards"), "--only takes one of 'all guards'"), (("--raw",), "Pass one with --model")],
)
def test_invalid_options_are_reported(options, message):
    done = CliRunner().invoke(cli, ["eval", "runs", *options])
    assert isinstance(done.exception, BadInput)
    assert message in str(done.exception)


async def test_the_worth_of_a_rule_is_measured_on_all_scenarios(workspace: Path) -> None:
    args = ("eval", "assistance", "--only", "follow_ups", "--scenarios", str(SCENARIO_FOLDER), "--json")
    async with run_with_model(workspace, *args, answers=[build_completion("I cannot do that.")]) as (done, _):
        assert done.code == 0, done.err
        [row] = done.json["rules"]
    assert done.json["scenarios"] >= 50
    assert (row["rule"], row["worth"]) == ("follow_ups", row["success %"] - row["without %"])


def test_an_unknown_rule_is_reported():
    done = CliRunner().invoke(cli, ["eval", "assistance", "--only", "follow_up"])
    assert "--only takes one of 'ordered_calls'" in str(done.exception)
